"""Numbers with units: what is read, what is refused, and that writing and reading are inverse."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.config import units

FINITE = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30.0),
        ("5m", 300.0),
        ("8min", 480.0),
        ("1h", 3600.0),
        ("2d", 172800.0),
        ("12.25s", 12.25),
        ("60ms", 0.06),
        (".5s", 0.5),
        ("1.5e2 s", 150.0),
        (0, 0.0),
        ("0", 0.0),
    ],
)
def test_duration(text: str | float, seconds: float) -> None:
    """A duration is its number times its unit, as the nearest float."""
    assert units.duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("140GB", 140_000_000_000),
        ("0.25MiB", 262_144),
        ("16MiB", 16_777_216),
        ("3.35TB", 3_350_000_000_000),
        ("1kB", 1000),
        ("1KB", 1000),
        ("512", 512),
        (7, 7),
        ("2.5B", 2.5),
    ],
)
def test_size(text: str | float, size: float) -> None:
    """GB is a power of ten, GiB a power of two, a bare number is bytes."""
    assert units.size(text) == size


@pytest.mark.parametrize(
    ("text", "value"), [("0.01", 0.01), ("1%", 0.01), (0.01, 0.01), ("0.1 %", 0.001), ("103%", 1.03)]
)
def test_share(text: str | float, value: float) -> None:
    """A share is written as it is or in percent, and is not bounded here."""
    assert units.share(text) == value


@pytest.mark.parametrize(("text", "value"), [("0.5/min", 0.5 / 60), ("2/s", 2.0), (2.0, 2.0), ("36 / h", 0.01)])
def test_rate(text: str | float, value: float) -> None:
    """A rate is per second, where it does not say otherwise."""
    assert units.rate(text) == value


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("60", units.Stage(60)),
        ("12*0.7", units.Stage(12, factor=0.7)),
        ("10@0.15", units.Stage(10, visits=0.15)),
        ("10@15%", units.Stage(10, visits=0.15)),
        ("29*0.7@2", units.Stage(29, factor=0.7, visits=2)),
    ],
)
def test_stage(text: str, stage: units.Stage) -> None:
    """A stage is a rate, times a factor after a star, over visits after an at sign."""
    assert units.stage(text) == stage


def test_stage_capacity() -> None:
    """Capacity in user requests is rate × factor / visits (the published chain of limits)."""
    chain = [units.stage(text).capacity_rps for text in ("12*0.7", "45", "60", "10@0.15")]
    assert chain == pytest.approx([8.4, 45, 60, 66.666667])


@pytest.mark.parametrize(
    ("parser", "text", "error"),
    [
        (units.duration, "30", "found '30' without a unit; write 30s for seconds (possible: ms, s, m, min, h, d)"),
        (units.duration, 30, "found '30' without a unit; write 30s for seconds (possible: ms, s, m, min, h, d)"),
        (units.duration, "5w", "found '5w' with the unknown unit 'w'; possible: ms, s, m, min, h, d"),
        (
            units.duration,
            "",
            "found nothing; possible is a duration such as 500ms, 30s, 5m, 8min, 1h, 2d, not negative",
        ),
        (
            units.size,
            "1gb",
            "found '1gb' with the unknown unit 'gb'; possible: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, KB",
        ),
        (units.share, "1 in 4", "found '1 in 4'; possible is a share such as 0.01 or 1%"),
        (units.rate, "2 s", "found '2 s'; possible is a rate such as 2, 2/s or 0.5/min"),
        (units.rate, "2/y", "found '2/y' with the unknown unit 'y'; possible: ms, s, m, min, h, d"),
        (units.number, "5x", "found '5x'; possible is a number without a unit"),
        (
            units.number,
            "9" * 70,
            "found '" + "9" * 40 + "…'; possible is a number such as 4 or 0.5, not negative",
        ),
        (units.stage, "10@", "found '10@'; possible is a rate greater than 0 such as 60, 12*0.7 or 10@0.15"),
        (units.stage, "0", "found '0'; possible is a rate greater than 0 such as 60, 12*0.7 or 10@0.15"),
    ],
)
def test_refused(parser: Callable[[str | float], object], text: str | float, error: str) -> None:
    """A refusal says what was found and what is possible."""
    with pytest.raises(ValueError, match="found") as caught:
        parser(text)
    assert str(caught.value) == error


@pytest.mark.parametrize("parser", [units.number, units.duration, units.size, units.share, units.rate, units.stage])
@pytest.mark.parametrize(
    "text", ["nan", "inf", "-1", "-1s", "1_0", "0x10", "1e400", "٣", float("nan"), float("inf"), -1.0]
)
def test_no_number(parser: Callable[[str | float], object], text: str | float) -> None:
    """NaN, infinity, negative numbers and other spellings of digits are refused by every parser."""
    with pytest.raises(ValueError, match="found"):
        parser(text)


@pytest.mark.parametrize("parser", [units.number, units.duration, units.size, units.share, units.rate, units.stage])
@given(text=st.text(st.sampled_from("0123456789.eE+-/%@* smhdkKMGTiBan\n"), max_size=80))
def test_only_value_errors(parser: Callable[[str | float], object], text: str) -> None:
    """Whatever is given, a parser raises nothing but ValueError."""
    with suppress(ValueError):
        parser(text)


@given(FINITE)
def test_shown_duration_is_the_same(seconds: float) -> None:
    """A duration that is written and read again is the same float."""
    assert units.duration(units.show_duration(seconds)) == seconds


@given(st.integers(0, 2**62))
def test_shown_size_is_the_same(size: int) -> None:
    """A size that is written and read again is the same number."""
    assert units.size(units.show_size(size)) == size


@given(st.builds(units.Stage, *[st.floats(1e-90, 1e90)] * 3))
def test_shown_stage_is_the_same(stage: units.Stage) -> None:
    """A stage that is written and read again is the same."""
    assert units.stage(units.show_stage(stage)) == stage
