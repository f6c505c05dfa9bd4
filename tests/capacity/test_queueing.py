"""Erlang's formulas: against the sum itself, against numerical integrals, and against a simulation by events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.capacity import knee
from capwatch.capacity.queueing import (
    _inverse_at_fraction,
    erlang_b,
    erlang_c,
    hayward_late_share,
    hayward_mean_wait,
    late_share,
    mean_wait,
    peakedness,
    variability,
    wait_quantile,
)
from tests.capacity import premises

servers_ = st.integers(1, 3000)
busy = st.floats(0.01, 0.9999)


@given(servers_, busy)
def test_two_routes_to_erlang_c_agree(servers: int, utilisation: float) -> None:
    """The recursion and the sum in logarithms, to 1e-9."""
    expected = premises.erlang_c(servers, servers * utilisation)
    assert erlang_c(servers, servers * utilisation) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("utilisation", [0.9, 0.99, 0.999, 0.9999])
def test_a_hundred_thousand_servers(utilisation: float) -> None:
    """No overflow, no loss: the two routes agree to 1e-9 there, too."""
    load = 100_000 * utilisation
    assert erlang_c(100_000, load) == pytest.approx(premises.erlang_c(100_000, load), rel=1e-9, abs=1e-300)


@given(st.integers(150, 5000), st.floats(0.5, 1.5))
def test_a_late_start_of_the_recursion_changes_nothing(servers: int, utilisation: float) -> None:
    """Erlang B is that of the recursion from no server on, to 1e-12."""
    load, blocking = servers * utilisation, 1.0
    for k in range(1, servers + 1):
        blocking = load * blocking / (k + load * blocking)
    assert erlang_b(servers, load) == pytest.approx(blocking, rel=1e-12)


@pytest.mark.parametrize("servers", [0.96875, 1.96875, 12.0])
def test_next_to_no_load_keeps_nobody_waiting(servers: float) -> None:
    """The smallest load there is, whose powers are beyond a float."""
    assert erlang_c(servers, 5e-324) == pytest.approx(0.0, abs=1e-300)


@given(st.floats(0.1, 2000), st.floats(0, 3000))
def test_erlang_c_is_a_probability(servers: float, load: float) -> None:
    """For any number of servers, whole or not, and any load; 1 from the servers' number on."""
    found = erlang_c(servers, load)
    assert 0 <= found <= 1
    assert (found == 1) or load < servers


@given(st.floats(0.5, 500), st.floats(0.05, 0.95), st.floats(1.001, 1.5))
def test_erlang_c_rises_with_load_and_falls_with_servers(servers: float, utilisation: float, more: float) -> None:
    """Also between whole numbers of servers."""
    load = servers * utilisation
    assert erlang_c(servers, load) <= erlang_c(servers, load * more) + 1e-12
    assert erlang_c(servers, load) >= erlang_c(servers * more, load) - 1e-12


@pytest.mark.parametrize("utilisation", [0.0, 0.3, 0.99])
def test_one_server_keeps_waiting_whom_it_is_busy_for(utilisation: float) -> None:
    """C(1, ρ) = ρ."""
    assert erlang_c(1, utilisation) == pytest.approx(utilisation)


@pytest.mark.parametrize("load", [0.01, 0.5, 1.99, 2.01, 10.24, 140.0])
@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.99])
def test_a_fraction_of_a_server_is_the_integral(fraction: float, load: float) -> None:
    """1/B_f = ∫ e^(−x) (1 + x/a)^f dx over x ≥ 0, by Simpson's rule."""
    x = np.linspace(0, 50, 1_000_001)
    values = np.exp(-x) * (1 + x / load) ** fraction
    integral = (values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()) * x[1] / 3
    assert _inverse_at_fraction(fraction, load) == pytest.approx(integral, rel=1e-9)


@given(st.integers(1, 600), st.lists(st.floats(0, 700), min_size=1, max_size=20))
def test_a_curve_is_its_points(servers: int, loads: list[float]) -> None:
    """Many rates at once give what each gives alone."""
    expected = [erlang_c(servers, load) for load in loads]
    assert knee.erlang_c(servers, np.array(loads)).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-300)


@settings(max_examples=25)
@given(st.floats(0, 60), st.floats(0.5, 0.99), st.floats(0.1, 5))
def test_the_tail_adds_up_to_the_mean(wait: float, utilisation: float, stretch: float) -> None:
    """∫ P(wait > t) dt is the mean wait, with the stretch as well; the tail falls with time."""
    rate = 20 * utilisation / 3
    times = np.linspace(0, 400 * stretch / (20 / 3 - rate) / 10, 2001)
    shares = np.array([late_share(20, rate, 3.0, float(t), stretch) for t in times])
    area = float(((shares[1:] + shares[:-1]) / 2 * np.diff(times)).sum())
    assert area == pytest.approx(mean_wait(20, rate, 3.0, stretch), rel=1e-3)
    assert late_share(20, rate, 3.0, wait, stretch) >= late_share(20, rate, 3.0, wait + 1, stretch)


@given(st.floats(0.5, 0.99), st.floats(0.5, 0.9999), st.floats(0.1, 5))
def test_a_quantile_is_where_the_tail_is_its_rest(utilisation: float, quantile: float, stretch: float) -> None:
    """P(wait > t_q) = 1 − q, or less where t_q is 0."""
    rate = 20 * utilisation / 3
    wait = wait_quantile(20, rate, 3.0, quantile, stretch)
    late = late_share(20, rate, 3.0, wait, stretch)
    assert late == pytest.approx(1 - quantile) if wait else late <= 1 - quantile + 1e-12


@pytest.mark.parametrize("rate", [2.0, 2.5])
def test_overload_keeps_everybody_waiting(rate: float) -> None:
    """From a = c on: probability 1, and no finite mean or quantile."""
    assert late_share(4, rate, 2.0, 1000) == 1
    assert (mean_wait(4, rate, 2.0), wait_quantile(4, rate, 2.0, 0.5)) == (math.inf, math.inf)


def error(values: np.ndarray) -> float:
    """Four standard errors of the mean of correlated values, from means of 100 batches."""
    batches = values[: len(values) // 100 * 100].reshape(100, -1).mean(axis=1)
    return float(4 * batches.std(ddof=1) / 10)


@pytest.mark.parametrize(("servers", "utilisation"), [(1, 0.7), (12, 0.8), (32, 0.9), (100, 0.95)])
def test_erlang_c_is_what_a_simulation_finds(servers: int, utilisation: float) -> None:
    """P(wait > 0), the mean wait and the late share of 200,000 requests, each within its error."""
    generator = np.random.default_rng(servers)
    rate, n = servers * utilisation, 200_000
    waits = premises.waits(generator.exponential(1 / rate, n), generator.exponential(1.0, n), servers)[10_000:]
    for found, expected in (
        (waits > 0, erlang_c(servers, rate)),
        (waits, mean_wait(servers, rate, 1.0)),
        (waits > 0.1, late_share(servers, rate, 1.0, 0.1)),
    ):
        assert abs(found.mean() - expected) <= error(found.astype(float))


def test_bursty_arrivals_need_hayward() -> None:
    """32 slots at 0.8 with Ca² 4: the stretched tail is less than half of what is late, Hayward within a quarter."""
    generator, service, n = np.random.default_rng(7), 12.25, 150_000
    rate = 0.8 * 32 / service
    gaps = premises.spread_like(generator, 1 / rate, 4.0, n)
    waits = premises.waits(gaps, generator.exponential(service, n), 32)[10_000:]
    late = float((waits > 0.5).mean())
    assert late_share(32, rate, service, 0.5, variability(4, 1)) < late / 2
    assert hayward_late_share(32, rate, service, 0.5, peakedness(4)) == pytest.approx(late, rel=0.25)
    assert hayward_mean_wait(32, rate, service, peakedness(4)) == pytest.approx(float(waits.mean()), rel=0.3)
