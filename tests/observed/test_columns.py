"""Series over time: counts stay exact over gaps, restarts and births."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.observed.columns import Columns, any_of, buckets, quantile, selector

STEPS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(("told", "gap", "restart"))), min_size=2, max_size=30)


@given(STEPS)
def test_a_counter_adds_up(steps: list[tuple[int, str]]) -> None:
    """Over gaps, and restarts between two values, what it added since its first value is what was counted."""
    shown: list[float] = []
    value = counted = pending = 0
    for added, what in steps:
        if what == "restart" and shown and shown[-1] > added:  # one that shows: the new value is below the old
            value = 0
        value, pending = value + added, pending + added
        shown.append(np.nan if what == "gap" else float(value))
        if what != "gap":
            counted, pending = counted + pending * any(one >= 0 for one in shown[:-1]), 0
    told = Columns(np.arange(float(len(shown))), [{}], np.array([shown]))
    assert np.nansum(told.rises().values) == counted


def test_a_late_series_begins_at_0() -> None:
    """A tenant that comes while others are told counts from its first request on; one there from the start does not."""
    told = Columns(np.arange(3.0), [{"tenant": "old"}, {"tenant": "new"}], np.array([[50.0, 51, 53], [np.nan, 4, 4]]))
    assert np.nansum(told.rises().by("tenant")["new",]) == 4
    assert np.nansum(told.rises().by("tenant")["old",]) == 3


def test_a_server_that_was_down() -> None:
    """What is first seen after everything was silent may have been there before: it adds nothing at once."""
    told = Columns(np.arange(4.0), [{"a": "1"}, {"a": "2"}], np.array([[1.0, np.nan, 3, 4], [np.nan, np.nan, 9, 10]]))
    assert np.nansum(told.rises().values, axis=1).tolist() == [3, 1]


def test_series_of_several_instances() -> None:
    """They are added up after the rises, so that one that goes away takes nothing with it."""
    labels = [{"pool": "a", "instance": "1"}, {"pool": "a", "instance": "2"}]
    told = Columns(np.arange(3.0), labels, np.array([[10.0, 20, 30], [5.0, 6, np.nan]]))
    assert told.rises().by("pool")["a",].tolist() == [11, 10]


def test_no_series() -> None:
    """Nothing found is nothing, not an error."""
    none = Columns(np.arange(3.0), (), np.empty((0, 3)))
    assert none.rises().by("pool") == {}
    assert np.isnan(none.total()).all()
    bounds, counts = buckets(none)
    assert quantile(bounds, counts.sum(axis=1), 0.5) is None


@pytest.mark.parametrize(
    ("counts", "q", "expected"),
    [
        ([0, 0, 0], 0.5, None),
        ([10, 10, 10], 0.5, 0.5),
        ([0, 10, 10], 0.0, 1.0),
        ([0, 10, 20], 0.99, 2.0),
    ],
)
def test_quantiles_of_buckets(counts: list[float], q: float, expected: float | None) -> None:
    """None of nothing; from 0 in the first bucket; the last finite bound beyond it."""
    assert quantile(np.array([1.0, 2.0, np.inf]), np.array(counts, np.float64), q) == expected


def test_what_is_asked_for() -> None:
    """Values are quoted as PromQL wants them."""
    assert selector("m", pool='x"\\\n') == r'm{pool="x\"\\\n"}'
    assert any_of(("a", "b")) == '{__name__=~"a|b"}'
