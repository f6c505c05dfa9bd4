"""The simulator: the published cells to the digit, and what must hold for any pool."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.capacity.queueing import mean_wait, variability
from capwatch.capacity.simulate import Pool, Row
from tests.capacity.premises import AFTER, BEFORE, simulated

OPEN = {
    8.0: ("8.0505 8.0494 0.825 1.7375 2.3109 0.02425", "1.019 1.912 4.904"),
    10.5: ("10.5663 10.5640 0.9711 2.2946 3.9030 0.2488", "1.919 2.825 5.787"),
    11.5: ("11.5726 11.5698 1.6221 5.3804 9.4197 1.1142", "5.034 6.214 8.171"),
    12.5: ("12.5789 12.1165 95.640 169.240 179.328 90.335", "169.1 170.0 172.8"),
}
"""Offered rate → arrivals/s, completions/s, p50, p95, p99, mean wait; p95 of policy, order, long."""


def as_printed(values: Iterable[float | None], cells: str) -> bool:
    """Whether values round to cells, each to as many digits as it has."""
    return all(
        value is not None and abs(value - float(cell)) <= 0.5000001 * 10.0 ** -len(cell.partition(".")[2])
        for value, cell in zip(values, cells.split(), strict=True)
    )


def p95(row: Row) -> list[float | None]:
    """Of each class."""
    return [figures.p95 if figures else None for figures in row.classes.values()]


@pytest.mark.parametrize("rate", OPEN)
def test_the_published_cells_of_open_loops(rate: float) -> None:
    """All of a row, to as many digits as are printed."""
    row, (cells, classes) = simulated(BEFORE, 12, rate), OPEN[rate]
    one = row.all
    assert as_printed((row.arrival_rate, row.completion_rate, one.p50, one.p95, one.p99, one.mean_wait), cells)
    assert as_printed(p95(row), classes)


@pytest.mark.parametrize(
    ("workers", "cells"), [(12, "12.1207 0.825 1.7375 1.7375"), (24, "12.1207 1.825 2.7875 3.1875")]
)
def test_the_published_cells_of_closed_loops(workers: int, cells: str) -> None:
    """Completions, p50, p95, p99; a closed loop has no rate of arrivals of its own."""
    row = simulated(BEFORE, 12, workers, closed=True)
    assert as_printed((row.completion_rate, row.all.p50, row.all.p95, row.all.p99), cells)
    assert row.arrival_rate is None


@pytest.mark.parametrize(
    ("replicas", "cells", "classes"),
    [
        (12, "8.0505 8.0489 0.9593 4.75 5.5593 0.2861", "2.190 3.091 6.163"),
        (100, "8.0505 8.0489 0.825 4.75 4.75 0", "0.825 1.7375 4.75"),
    ],
)
def test_the_drifted_mix_is_longer_and_queues(replicas: int, cells: str, classes: str) -> None:
    """On 100 replicas nobody waits and the pooled p95 stays 4.75 s: composition. Policy shows the queue of 12."""
    row = simulated(AFTER, replicas, 8.0)
    one = row.all
    assert as_printed((row.arrival_rate, row.completion_rate, one.p50, one.p95, one.p99, one.mean_wait), cells)
    assert as_printed(p95(row), classes)


def test_arrivals_go_on_rising_past_capacity_and_completions_do_not() -> None:
    """12 replicas do 12.10/s of this mix."""
    row = simulated(BEFORE, 12, 12.5)
    assert row.arrival_rate is not None
    assert row.arrival_rate > 12.5
    assert row.completion_rate == pytest.approx(12 / 0.992, rel=2e-3)


mixes = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 5)), min_size=1, max_size=4).map(
    lambda classes: {str(i): (share / sum(one for one, _ in classes), work) for i, (share, work) in enumerate(classes)}
)


@settings(max_examples=30)
@given(mixes, st.integers(1, 20), st.floats(0.1, 20), st.integers(1, 300), st.integers(0, 10**6))
def test_classes_make_up_the_whole(
    mix: dict[str, tuple[float, float]], replicas: int, rate: float, requests: int, seed: int
) -> None:
    """Every request is in one class, waits add up, nobody is faster than the work, and chance is the seed's."""
    pool = Pool(mix, replicas)
    for row, again in (
        (pool.open(rate, requests, seed), pool.open(rate, requests, seed)),
        (pool.closed(replicas + 1, requests, seed), pool.closed(replicas + 1, requests, seed)),
    ):
        drawn = [figures for figures in row.classes.values() if figures is not None]
        assert row == again
        assert sum(figures.requests for figures in drawn) == requests
        waited = sum(figures.requests * figures.mean_wait for figures in drawn)
        assert waited == pytest.approx(requests * row.all.mean_wait, abs=1e-6)
        assert all(figures.p50 >= mix[name][1] - 1e-6 for name, figures in row.classes.items() if figures is not None)
        assert row.completion_rate <= replicas / min(seconds for _, seconds in mix.values()) * (1 + 1e-9)


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_fixed_work_waits_half_as_long_as_random_work(utilisation: float) -> None:
    """M/D/1: Allen-Cunneen with Cs² = 0 is exact for one server (Pollaczek and Khinchine)."""
    row = Pool({"all": (1.0, 1.0)}, 1).open(utilisation, 200_000, 7)
    assert row.all.mean_wait == pytest.approx(mean_wait(1, utilisation, 1.0, variability(1, 0)), rel=0.05)


def test_a_class_that_nobody_drew_has_no_figures() -> None:
    """Absent, not 0."""
    assert Pool({"all": (1.0, 1.0), "none": (0.0, 1.0)}, 1).open(0.5, 100, 7).classes["none"] is None
