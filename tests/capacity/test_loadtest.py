"""Open and closed loops are told apart by what arrivals find, and a test's limits are read from its log."""

from __future__ import annotations

from heapq import heapreplace

import numpy as np
import pytest

from capwatch.capacity.loadtest import loop, rest, slo_break
from tests.capacity.premises import waits

Pair = tuple[np.ndarray, np.ndarray]


def opened(rate: float, servers: int, n: int = 20_000, seed: int = 7) -> Pair:
    """Poisson arrivals, exponential service of mean 1: arrivals and ends."""
    generator = np.random.default_rng(seed)
    gaps, services = generator.exponential(1 / rate, n), generator.exponential(1.0, n)
    started = np.cumsum(gaps)
    return started, started + waits(gaps, services, servers) + services


def closed(workers: int, servers: int, think: float = 0.0, n: int = 20_000) -> Pair:
    """Workers that send again when answered, after the time they need for it; exponential service of mean 1."""
    generator = np.random.default_rng(7)
    ready, free = [0.0] * workers, [0.0] * servers
    started, finished = np.empty(n), np.empty(n)
    for i, service in enumerate(generator.exponential(1.0, n).tolist()):
        now = ready[0]
        end = max(now, free[0]) + service
        heapreplace(free, end)
        heapreplace(ready, end + think)
        started[i], finished[i] = now, end
    return started, finished


@pytest.mark.parametrize(("rate", "servers"), [(0.5, 1), (0.9, 1), (8, 12), (11.5, 12), (14, 12), (200, 1000)])
def test_chance_is_an_open_loop(rate: float, servers: int) -> None:
    """Idle, busy, overloaded: arrivals find nearly what there is on average."""
    found = loop(*opened(rate, servers))
    assert found.verdict == "open"
    assert found.deficit is not None
    assert -0.1 < found.deficit < 0.6


@pytest.mark.parametrize("think", [0.0, 0.005, 0.05])
@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (2, 12), (12, 12), (24, 12), (200, 50)])
def test_workers_are_a_closed_loop(workers: int, servers: int, think: float) -> None:
    """Whether servers or workers are short, and though a client takes a moment to send."""
    found = loop(*closed(workers, servers, think))
    assert found.verdict == "closed"
    assert found.deficit == pytest.approx(1, abs=0.15)


def test_stages_of_workers_are_a_closed_loop() -> None:
    """1, 4, 16 and 64 workers one after the other."""
    started, finished, at = [], [], 0.0
    for workers in (1, 4, 16, 64):
        begin, end = closed(workers, 12, n=3000)
        started.append(begin + at)
        finished.append(end + at)
        at = float(finished[-1].max())
    assert loop(np.concatenate(started), np.concatenate(finished)).verdict == "closed"


@pytest.mark.parametrize(("service", "verdict"), [(0.8, "open"), (10.5, "open"), (1.0, "closed")])
def test_a_metronome_is_open_unless_it_ticks_with_the_ends(service: float, verdict: str) -> None:
    """Constant gaps say nothing by what they find; one that starts exactly when the last one ends is a worker."""
    at = np.arange(2000.0)
    assert loop(at, at + service).verdict == verdict


def test_order_does_not_matter() -> None:
    """A log is in the order of ends."""
    started, finished = opened(8, 12)
    order = np.argsort(finished)
    assert loop(started[order], finished[order]) == loop(started, finished)


def test_few_requests_are_unclear() -> None:
    """No verdict on 100."""
    assert loop(*opened(8, 12, n=100)).verdict == "unclear"


def test_the_rate_at_which_the_objective_breaks() -> None:
    """Stages of 2, 3, 8 and 10/s on 6 servers: good is a wait under 0.5 s, and beyond 6/s the queue grows."""
    rng = np.random.default_rng(7)
    gaps = np.concatenate([rng.exponential(1 / rate, int(rate * 600)) for rate in (2, 3, 8, 10)])
    waited = waits(gaps, rng.exponential(1.0, len(gaps)), 6)
    found = slo_break(np.cumsum(gaps), waited < 0.5, 60, 0.9)
    assert found.kept is not None
    assert found.broken is not None
    assert 2.5 < found.kept < found.broken < 8


def test_an_objective_that_held_or_never_did() -> None:
    """No rate is made up."""
    at = np.arange(0.0, 100.0, 0.1)
    assert (slo_break(at, at >= 0, 10, 0.99).broken, slo_break(at, at < 0, 10, 0.99).kept) == (None, None)
    assert (slo_break(at[:0], at[:0] < 0, 10, 0.99).kept, rest(at[:0], at[:0])) == (None, None)


@pytest.mark.parametrize(("rate", "drained"), [(6, True), (14, False)])
def test_a_queue_that_stands_at_the_end(rate: float, drained: bool) -> None:
    """Under capacity the last requests take as long as the first; over it the queue is still there."""
    found = rest(*opened(rate, 12, n=5000))
    assert found is not None
    assert found.drained is drained
