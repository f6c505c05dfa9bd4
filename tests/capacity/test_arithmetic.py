"""Laws of the smaller pieces: ceilings, promises, spikes, buckets, bursts, evenness."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.capacity import balance, lengths, quota, sizing, slots
from capwatch.capacity.budget import oversubscription, takes
from capwatch.capacity.bursts import bursts, distorted, overload_seconds
from capwatch.capacity.rounding import whole
from capwatch.capacity.spike import spike

decimals = st.decimals("0.001", "99999", places=3).map(float)
counts_ = st.lists(st.integers(0, 50), min_size=1, max_size=200).map(lambda one: np.array(one, float))


@given(decimals, decimals, decimals)
def test_a_ceiling_is_that_of_the_decimals_as_they_were_typed(up: float, factor: float, down: float) -> None:
    """By exact fractions; only what is within a billionth above a whole number may be taken for it."""
    exact = Fraction(repr(up)) * Fraction(repr(factor)) / Fraction(repr(down))
    over = exact - math.floor(exact)
    if not 0 < over <= max(Fraction(1), exact) * Fraction(1, 10**9):
        assert whole(up * factor / down) == math.ceil(exact)


@given(st.integers(1, 100_000), st.sampled_from([0.1, 0.3, 0.7, 1.1, 1.5]), st.sampled_from([0.55, 0.65, 0.7, 0.9]))
def test_a_whole_quotient_stays_whole(n: int, burst: float, target: float) -> None:
    """N × target × burst over target × burst is n."""
    assert whole(n * target * burst / (target * burst)) == n


@given(st.floats(1, 1e6), st.floats(1, 1e4), st.floats(0.05, 1), st.floats(1, 5), st.integers(1, 9))
def test_each_promise_costs_at_least_as_much(
    demand: float, replica: float, target: float, burst: float, zones: int
) -> None:
    """And after the loss of a zone what is left carries the burst at the target."""
    found = sizing.promises(demand, replica, target, burst, zones)
    assert found.base <= found.burst <= found.zonal == found.per_zone * (zones if zones > 1 else 1)
    left = found.zonal - (found.per_zone if zones > 1 else 0)
    assert sizing.headroom(found.zonal, found.burst, found.zonal - left) >= 0


@given(st.floats(0.1, 100), st.floats(0.1, 100), st.floats(0, 1000), st.floats(0.1, 200), st.floats(0, 60))
def test_a_spike_keeps_its_requests(to: float, capacity: float, ready: float, after: float, patience: float) -> None:
    """What comes until it has drained is what was served; what is shed and what may wait are the backlog."""
    found = spike(to, capacity, ready, after, patience)
    if found.clear_at is not None and found.backlog:
        served = capacity * ready + after * (found.clear_at - ready)
        assert to * found.clear_at == pytest.approx(served)
    assert found.shed is not None
    assert found.backlog - found.shed == pytest.approx(min(found.backlog, capacity * patience), abs=1e-6)


@given(
    st.floats(0.1, 10),
    st.floats(0.1, 50),
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 20)), max_size=40).map(sorted),
)
def test_a_bucket_lets_no_more_through_than_flowed_in(
    rate: float, burst: float, asked: list[tuple[float, float]]
) -> None:
    """Burst + rate × time bounds what is taken; the level stays within 0 and burst; a larger bucket is no stricter."""
    decisions, bucket = takes(rate, burst, asked)
    taken = sum(amount for (_, amount), through in zip(asked, decisions, strict=True) if through)
    elapsed = asked[-1][0] - asked[0][0] if asked else 0
    assert taken <= burst + rate * elapsed + 1e-6
    assert 0 <= bucket.level <= burst


def brute(counts: list[float]) -> tuple[int, float]:
    """Longest run over twice the usual, and largest rise, one second after the other."""
    usual = sorted(counts)[min(len(counts) - 1, len(counts) // 2)] or sum(counts) / len(counts)
    run = longest = 0
    for count in counts:
        run = run + 1 if count > 2 * usual else 0
        longest = max(longest, run)
    return longest, max([0.0, *(b - a for a, b in pairwise(counts))])


@given(counts_)
def test_bursts_are_what_one_counts_by_hand(counts: np.ndarray) -> None:
    """Runs and ramps second by second; p99 over median by the agreed rule; the mean where the median is 0."""
    found = bursts(counts)
    assert found is not None
    assert (found.longest_s, found.max_ramp) == brute(counts.tolist())
    ranked = sorted(counts.tolist())
    p99, median = (ranked[min(len(ranked) - 1, int(q * len(ranked)))] for q in (0.99, 0.5))
    usual = median or float(counts.mean())
    assert found.p99_to_usual == (p99 / usual if usual else None)
    assert found.by_mean == (median == 0)


def test_no_seconds_have_no_bursts() -> None:
    """Absent, not 0; where nothing came there is no ratio."""
    assert bursts(np.array([])) is None
    quiet = bursts(np.zeros(10))
    assert quiet is not None
    assert (quiet.p99_to_usual, quiet.longest_s, quiet.max_ramp) == (None, 0, 0)


@given(st.floats(1, 100), st.integers(1, 300))
def test_a_coarse_window_shows_the_mean(factor: float, burst: int) -> None:
    """What is left of a burst is the mean of the window over its usual second."""
    seconds = np.ones(300)
    seconds[:burst] = factor
    assert distorted(factor, burst, 300) == pytest.approx(seconds.mean())


@given(counts_, st.integers(0, 60))
def test_overload_is_counted_strictly(cost: np.ndarray, replicas: int) -> None:
    """A second that is just full is not over."""
    assert overload_seconds(cost, replicas) == sum(one > replicas for one in cost.tolist())


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30))
def test_fairness_and_imbalance_tell_the_same_story(values: list[float]) -> None:
    """Jain's index is 1/(1 + CV²), between 1/n and 1."""
    found, spread = balance.fairness(np.array(values)), balance.imbalance(np.array(values))
    assert found is not None
    assert spread is not None
    assert found == pytest.approx(1 / (1 + spread**2))
    assert 1 / len(values) - 1e-9 <= found <= 1 + 1e-9


def test_nothing_is_neither_fair_nor_balanced() -> None:
    """Absent, not 0."""
    assert (balance.fairness(np.zeros(3)), balance.imbalance(np.zeros(3)), balance.imbalance(np.array([]))) == (
        None,
    ) * 3


def test_a_lognormal_is_found_again() -> None:
    """Mean and median of 200,000 lognormal lengths give their σ and p99 within 2 %."""
    drawn = np.exp(0.8 * np.random.default_rng(7).standard_normal(200_000)) * 1000
    sigma = lengths.sigma(float(drawn.mean()), float(np.median(drawn)))
    assert sigma == pytest.approx(0.8, rel=0.02)
    fitted = lengths.quantile(float(np.median(drawn)), sigma or 0, 0.99)
    assert abs(lengths.misfit(fitted, float(np.quantile(drawn, 0.99))) or 0) < 0.02


@given(st.floats(1, 100), st.integers(1, 64), st.floats(0.5, 30), st.floats(0.001, 0.5))
def test_a_usable_rate_is_the_largest_that_does(rate: float, n: int, service: float, late: float) -> None:
    """A thousandth less keeps the target, a thousandth more does not."""
    demand = slots.Demand(rate, n, service, 0.5, late)
    usable = slots.usable_rate(demand)
    shares = [slots.Demand(usable * one, n, service, 0.5, late).late_at(1) for one in (0.999, 1.001)]
    assert shares[0] < late <= shares[1]


def test_budgets_and_quotas() -> None:
    """A ratio that nobody judges; a quota's rest, and when it is gone at a steady growth."""
    assert oversubscription([2.0, 4.0], 12) == 0.5
    assert quota.headroom(1_100_000, 1_000_000) == pytest.approx(-0.1)
    days = quota.exhausted_in(768_000, 11_600, 1_000_000)
    assert days == pytest.approx(20)
    assert quota.headroom(768_000 + 11_600 * (days or 0), 1_000_000) == pytest.approx(0)
