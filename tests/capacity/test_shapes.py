"""Shapes of traffic: what was put in is found and named, and chance alone is not."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.capacity import shapes
from capwatch.capacity.shapes import Burst, Hints, bursts, season
from capwatch.record import Floats

MONDAY = 1_790_553_600.0  # 2026-09-28
DAY = 86_400
CLOCK = MONDAY + 9 * 3600
"""Nine o'clock."""


def poisson(rate: Floats | float, seconds: int, seed: int = 7) -> Floats:
    """Counts of single seconds by chance."""
    return np.random.default_rng(seed).poisson(np.broadcast_to(rate, seconds)).astype(np.float64)


def with_burst(rate: float, hours: int, begin: float, seconds: int, factor: float) -> Floats:
    """Traffic from Monday 08:00 on, with a burst that begins at a time."""
    counts = poisson(rate, hours * 3600)
    at = int(begin - (CLOCK - 3600))
    counts[at : at + seconds] += poisson(rate * (factor - 1), seconds, seed=8)
    return counts


def only(found: list[Burst]) -> Burst:
    """The one that there is."""
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("rate", [0.05, 1.0, 8.0, 40.0, 400.0])
def test_chance_is_no_burst(rate: float) -> None:
    """A week of Poisson arrivals has none, however many or few they are."""
    assert bursts(poisson(rate, 7 * DAY), MONDAY) == []


def test_bursty_traffic_is_the_usual() -> None:
    """Counts that vary ten times as much as by chance are no bursts, as long as they always do."""
    rng = np.random.default_rng(7)
    assert bursts(rng.negative_binomial(8 / 9, 0.1, 2 * DAY).astype(np.float64), MONDAY) == []


@pytest.mark.parametrize(
    ("rate", "seconds", "factor"), [(40.0, 20, 10.0), (8.0, 30, 5.0), (8.0, 600, 3.0), (0.5, 300, 6.0), (400.0, 5, 2.5)]
)
def test_a_burst_is_found_where_it_is(rate: float, seconds: int, factor: float) -> None:
    """Begin, end and what came more, whatever its length and the rate."""
    begin = CLOCK + 437
    one = only(bursts(with_burst(rate, 3, begin, seconds, factor), CLOCK - 3600))
    slack = 2 if rate > 1 else 60  # that of the scale over which it shows
    assert one.begin == pytest.approx(begin, abs=slack)
    assert one.end == pytest.approx(begin + seconds, abs=slack)
    assert one.extra == pytest.approx(rate * (factor - 1) * seconds, rel=0.25)
    assert (one.shape, one.stayed) == ("step", False)


def test_a_level_that_stays() -> None:
    """A level that stays is one burst, and is told to stay."""
    counts = poisson(8.0, 4 * 3600)
    counts[5000:] += poisson(24.0, len(counts) - 5000, seed=8)
    one = only(bursts(counts, MONDAY + 123))
    assert one.begin == pytest.approx(MONDAY + 5123, abs=2)
    assert (one.stayed, one.shape) == (True, "step")


@pytest.mark.parametrize(
    ("begin", "shape"), [(0, "on_the_hour"), (900 + 40, "on_the_hour"), (-30, "on_the_hour"), (300, "step")]
)
def test_on_the_hour(begin: float, shape: str) -> None:
    """Within a minute of a quarter of an hour, and sharp."""
    assert only(bursts(with_burst(8.0, 3, CLOCK + begin, 120, 5.0), CLOCK - 3600)).shape == shape


def test_bursts_do_not_hide_each_other() -> None:
    """A job that runs every hour for a week is found every time but the first, which is its own usual rate."""
    counts = poisson(8.0, 7 * DAY)
    for hour in range(24 * 7):
        counts[hour * 3600 : hour * 3600 + 90] += poisson(72.0, 90, seed=hour)
    found = bursts(counts, MONDAY)
    assert [one.shape for one in found] == ["on_the_hour"] * 168
    assert [round((one.begin - MONDAY) / 3600) for one in found] == list(range(168))


def test_a_swelling_is_not_on_the_hour() -> None:
    """What takes ten minutes to rise was started by no clock."""
    counts = poisson(8.0, 3 * 3600)
    counts[3540:5400] += poisson(np.linspace(8, 90, 1860), 1860, seed=8)
    assert only(bursts(counts, CLOCK - 3600)).shape == "step"


@pytest.mark.parametrize(("parts", "shape"), [((0.9, 0.1), "on_the_hour"), ((0.25,) * 4, "step")])
def test_many_tenants_have_no_common_clock(parts: tuple[float, ...], shape: str) -> None:
    """On the hour one tenant has most of the rise."""
    counts = with_burst(8.0, 3, CLOCK + 5, 120, 5.0)
    slots = counts.reshape(-1, 300).sum(axis=1)
    tenants = np.outer(np.full(len(parts), 1 / len(parts)), np.full(len(slots), 2400.0))
    tenants[:, 12] += np.array(parts) * (slots[12] - 2400)
    assert only(bursts(counts, CLOCK - 3600, Hints(tenants=tenants))).shape == shape


def test_retries_are_self_made() -> None:
    """Where more than half of what came more was sent again, even on the hour."""
    counts = with_burst(8.0, 3, CLOCK + 5, 120, 5.0)
    resent = np.full(36, 10.0)
    resent[12] += 0.7 * 8 * 4 * 120
    one = only(bursts(counts, CLOCK - 3600, Hints(resent=resent)))
    assert one.shape == "self_made"
    assert "of what came more was sent again" in one.why
    assert only(bursts(counts, CLOCK - 3600, Hints(resent=np.full(36, 10.0)))).shape == "on_the_hour"


def test_failures_first_are_self_made() -> None:
    """Failures in the five minutes before it; failures during it alone are what a burst does to a service."""
    counts = with_burst(8.0, 3, CLOCK + 5, 120, 5.0)
    first, then = np.full(36, 12.0), np.full(36, 12.0)
    first[11] = 600
    then[12] = 600
    assert only(bursts(counts, CLOCK - 3600, Hints(failed=first))).shape == "self_made"
    assert only(bursts(counts, CLOCK - 3600, Hints(failed=then))).shape == "on_the_hour"


def test_what_every_day_has_is_seasonal() -> None:
    """A swelling at the same time of four days of five; one of a single day is a step."""
    counts = poisson(4.0, 5 * DAY)
    for day, begin in enumerate((30_000, 30_400, 30_100, 50_000, 29_800)):
        at = day * DAY + begin
        counts[at : at + 600] += poisson(np.linspace(4, 40, 600), 600, seed=day)
    found = {int((one.begin - MONDAY) // DAY): one.shape for one in bursts(counts, MONDAY)}
    assert found == {0: "seasonal", 1: "seasonal", 2: "seasonal", 3: "step", 4: "seasonal"}


def test_a_season() -> None:
    """A smooth day of a factor of three is a season and no burst; a flat week is neither."""
    hours = np.arange(3 * DAY) / 3600 % 24
    counts = poisson(8 + 4 * np.cos((hours - 15) / 12 * np.pi), 3 * DAY)
    found = season(counts, MONDAY)
    assert found is not None
    assert (found.busiest_hour in (14, 15), found.quietest_hour in (2, 3)) == (True, True)
    assert found.ratio == pytest.approx(3, rel=0.05)
    assert found.explained > 0.95
    assert bursts(counts, MONDAY) == []
    assert season(poisson(8.0, 3 * DAY), MONDAY) is None
    assert season(counts[: DAY + 5], MONDAY) is None


def test_too_little_to_tell() -> None:
    """Less than the half hour that says what is usual, or nothing at all."""
    assert bursts(np.full(1700, 3.0), MONDAY) == []
    assert bursts(np.zeros(7200), MONDAY) == []
    assert season(np.zeros(0), MONDAY) is None
    assert shapes.season(np.zeros(3 * DAY), MONDAY) is None
