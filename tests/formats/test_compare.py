"""The rules by which expected and found results are compared (formats README, section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from .compare import compare, differences


def record(**fields: object) -> dict[str, object]:
    """A line that is a record."""
    return {"line": 1, "outcome": "record", "record": fields}


@pytest.mark.parametrize(
    ("name", "expected", "got"),
    [
        ("started_at", 100.0, 100.0009),
        ("duration_s", 2.0, 1.9991),
        ("prompt_tokens", 1530, 1530.0),
        ("kv_utilisation", 0.5, 0.5000009),
        ("ttft_s", None, None),
        ("prompt_tokens", {"any": [None, 33]}, 33),
        ("cache_hit", False, False),
    ],
)
def test_what_agrees(name: str, expected: object, got: object) -> None:
    """Times within a millisecond, numbers within 1e-6, the rest exactly, null is absent, any is any."""
    assert compare(record(**{name: expected}), record(**{name: got})) == []


@pytest.mark.parametrize(
    ("name", "expected", "got"),
    [
        ("started_at", 100.0, 100.0011),
        ("prompt_tokens", 1530, 1530.01),
        ("ttft_s", None, 0.1),
        ("ttft_s", 0.1, None),
        ("tenant", "acme", "Acme"),
        ("cache_hit", True, 1),
        ("status", 1, True),
        ("status", {"any": [200, 499]}, 0),
    ],
)
def test_what_differs(name: str, expected: object, got: object) -> None:
    """Each way to be wrong is one difference, which names field and values."""
    assert compare(record(**{name: expected}), record(**{name: got})) == [f"{name} {got!r} instead of {expected!r}"]


def test_fields_not_expected_are_not_looked_at_unless_exact() -> None:
    """A golden pair is exact, a shared sample is not."""
    assert compare(record(), record(tenant="acme")) == []
    assert compare(record(), record(tenant="acme"), exact=True) == ["tenant 'acme' instead of nothing"]


def test_a_line_without_an_outcome_is_not_judged() -> None:
    """The facts leave it open."""
    assert compare({"line": 1}, {"line": 1, "outcome": "drop"}) == []


def test_an_outcome_is_the_expected_one_or_one_of_a_list() -> None:
    """Of a list any will do."""
    got = {"line": 1, "outcome": "skip", "reason": "blank line"}
    assert compare({"line": 1, "outcome": ["skip", "drop"]}, got) == []
    assert compare({"line": 1, "outcome": "drop"}, got) == ["outcome 'skip' (blank line) instead of ['drop']"]


def test_several_records_are_compared_in_order() -> None:
    """One missing is a difference."""
    expected = {"line": 1, "outcome": "record", "records": [{"tenant": "a"}, {"tenant": "b"}]}
    assert compare(expected, expected) == []
    assert compare(expected, record(tenant="a")) == ["1 records instead of 2"]


def test_of_a_poll_only_the_last_sample_is_compared() -> None:
    """`match: last`."""
    got = {"line": 1, "outcome": "record", "records": [{"running": 1}, {"running": 2}]}
    assert compare({**record(running=2), "match": "last"}, got) == []


@pytest.mark.parametrize(
    ("how", "got", "agrees"),
    [
        ("no-year", 1772529300.0 - 365 * 86400, True),
        ("no-year", 1772529300.0 - 1.0, False),
        ("time-of-day", 1772529300.0 - 3 * 86400, True),
        ("time-of-day", 1772529300.0 - 1.0, False),
    ],
)
def test_a_time_without_year_or_date(how: str, got: float, agrees: bool) -> None:
    """What the log does not have is not compared."""
    assert (compare({**record(at=1772529300.0), "at_match": how}, record(at=got)) == []) is agrees


def test_a_record_may_stand_at_any_of_its_lines() -> None:
    """`lines`: printed at one of them, the others are not judged."""
    expected: list[dict[str, Any]] = [
        {"line": 1},
        {**record(tenant="a"), "line": 2, "lines": [1, 2], "outcome": "record"},
    ]
    got = [record(tenant="a"), {"line": 2, "outcome": "skip", "reason": ""}]
    assert differences(expected, got) == []
    assert len(differences(expected, [{**one, "outcome": "skip"} for one in got])) == 1


def test_every_line_has_a_result() -> None:
    """A missing line is a difference before any other."""
    assert differences([{"line": 1}, {"line": 2}], [{"line": 1, "outcome": "skip"}]) == ["lines [1] instead of [1, 2]"]


def test_a_page_holds_its_samples_in_any_order() -> None:
    """`page`: one of the samples."""
    got = [{"line": 1, "outcome": "record", "records": [{"running": 1}, {"running": 2}]}]
    assert differences([{"page": True, "record": {"running": 2}}], got) == []
    assert len(differences([{"page": True, "record": {"running": 3}}], got)) == 1
