"""The simulation: the reference scenario's numbers, its queue, its memory, and the same run from the same seed."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from capwatch.demo import truth
from capwatch.demo.draw import LIMIT, Rows
from capwatch.demo.simulation import Simulation
from capwatch.demo.workload import KV_TOKENS, RATE, REPLICAS, SCENARIOS, SLOTS, TENANTS, after, before

BEGIN = 1_767_225_600.0
HOURS = 3
SECONDS = HOURS * 3600.0


def lived(scenario: str, change_after: float, seed: int = 1) -> Rows:
    """Everything that ends in three hours."""
    return Simulation(scenario, seed, BEGIN, change_after).until(BEGIN + SECONDS)


@pytest.fixture(scope="module")
def usual() -> Rows:
    """Three hours of the usual mix."""
    return lived("quiet", SECONDS)


@pytest.fixture(scope="module")
def changed() -> Rows:
    """Three hours of 80/12/8."""
    return lived("new-tenant", 0.0)


def test_the_reference_mixes() -> None:
    """85/14/1 costs 0.992 replica-seconds a request and fills 12 replicas by 66 %, 80/12/8 costs 1.2485 and 83 %."""
    told = [(round(one.cost, 4), round(one.utilisation, 3)) for one in (before("new-tenant"), after("new-tenant"))]
    assert told == [(0.992, 0.661), (1.2485, 0.832)]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_shares_add_up(scenario: str) -> None:
    """All requests are somebody's, before and after."""
    sums = [sum(tenant.share for tenant in work(scenario).tenants) for work in (before, after)]
    assert sums == pytest.approx([1.0, 1.0])


def test_cost_and_utilisation_are_the_workload_s(usual: Rows, changed: Rows) -> None:
    """What was drawn costs what the mix says, within the chance of 86,000 requests (standard error 0.3 %)."""
    costs = [float(np.nanmean(truth.cost(rows))) for rows in (usual, changed)]
    busy = [truth.utilisation(rows, SECONDS) for rows in (usual, changed)]
    assert costs == pytest.approx([0.992, 1.2485], rel=0.012)
    assert busy == pytest.approx([0.661, 0.832], rel=0.015)


def test_occupied_slots_are_the_utilisation(usual: Rows) -> None:
    """A request holds a slot for four times its cost, so that a busy slot is a busy quarter of a replica."""
    assert truth.busy(usual, BEGIN, BEGIN + SECONDS) == pytest.approx(truth.utilisation(usual, SECONDS), rel=0.005)


def test_the_sweep_is_little_s_law(usual: Rows) -> None:
    """In flight, swept over time, is arrival rate times residence (Little 1961), up to the edges of the stretch."""
    swept = sum(truth.in_flight(usual, BEGIN, BEGIN + SECONDS).values())
    law = len(usual) / SECONDS * float((usual.ended - usual.arrived).mean())
    assert swept == pytest.approx(law, rel=1e-9)


def test_queueing_arises(usual: Rows, changed: Rows) -> None:
    """At 66 % nearly nobody waits; at 83 %, with the KV cache full of long prompts, one in eight waits over 0.5 s."""
    late = [float((rows.queue > 0.5).mean()) for rows in (usual, changed)]
    assert (late[0] < 0.002, 0.08 < late[1] < 0.18) == (True, True), late


def test_preemptions_arise(usual: Rows, changed: Rows) -> None:
    """The KV cache is too small for what grows in it when the mix has changed, and hardly ever before."""
    lost = [float(rows.preempted.mean()) for rows in (usual, changed)]
    assert (lost[0] < 0.001, lost[1] > 0.01) == (True, True), lost


def test_nobody_overtakes(changed: Rows) -> None:
    """Who arrives first is taken up first."""
    rows = changed.take(np.argsort(changed.number))
    started = rows.started[rows.fate != LIMIT]
    assert np.diff(started).min() >= 0


def test_a_replica_has_four_slots_and_one_cache(changed: Rows) -> None:
    """At no moment does a replica run more than four sequences, or hold more prompt tokens than its KV cache."""
    served = changed.take(changed.replica >= 0)
    prompts = served.computed + served.cached
    for replica in range(REPLICAS):
        here = served.replica == replica
        # Who ends makes room for who begins at that moment; floats of epoch seconds are exact to 0.2 µs.
        order = np.argsort(np.concatenate([served.ended[here], served.started[here] + 1e-6]))
        sequences = np.cumsum(np.repeat([-1, 1], here.sum())[order])
        tokens = np.cumsum(np.concatenate([-prompts[here], prompts[here]])[order])
        assert (sequences.max() <= SLOTS, tokens.max() <= KV_TOKENS) == (True, True)


def test_the_newcomer_comes_with_the_change() -> None:
    """The new tenant has no request before the change, and a seventh of those after it."""
    rows = lived("new-tenant", SECONDS / 2)
    its = rows.tenant == TENANTS.index("acme")
    later = rows.arrived >= BEGIN + SECONDS / 2
    assert (its & ~later).sum() == 0
    assert its[later].mean() == pytest.approx(1 / 7, rel=0.05)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_rate_tells_nothing(scenario: str) -> None:
    """Requests a second are the same before and after the change."""
    rows = lived(scenario, SECONDS / 2)
    rates = np.histogram(rows.arrived, [BEGIN, BEGIN + SECONDS / 2, BEGIN + SECONDS])[0] / (SECONDS / 2)
    assert rates == pytest.approx([RATE, RATE], rel=0.02)


def test_the_same_seed_is_the_same_run() -> None:
    """A seed gives the same requests to the last bit, and another seed gives others."""
    one, same, other = (Simulation("new-tenant", seed, BEGIN, 60.0).until(BEGIN + 300) for seed in (5, 5, 6))
    assert [np.array_equal(a, b) for a, b in zip(astuple(one), astuple(same), strict=True)] == [True] * 14
    assert not np.array_equal(one.arrived[:100], other.arrived[:100])


def test_asking_often_changes_nothing() -> None:
    """Asked every second or once, the simulation tells of the same requests."""
    often = Simulation("new-tenant", 5, BEGIN, 60.0)
    parts = Rows.join(*(often.until(BEGIN + second) for second in range(1, 301)))
    once = Simulation("new-tenant", 5, BEGIN, 60.0).until(BEGIN + 300)
    assert [np.array_equal(a, b) for a, b in zip(astuple(parts), astuple(once), strict=True)] == [True] * 14


def test_statistics_are_the_rows_own() -> None:
    """Running, waiting and tokens a second of all replicas are what the requests themselves say."""
    simulation = Simulation("new-tenant", 2, BEGIN, 0.0)
    at = BEGIN + 1800
    simulation.until(at)
    told = simulation.statistics(at)
    rows = Simulation("new-tenant", 2, BEGIN, 0.0).until(at + 600)
    rows = rows.take(rows.replica >= 0)
    here = (rows.arrived + rows.gateway <= at) & (rows.ended > at)
    waiting = here & (rows.started > at)
    flow = truth.in_flight(rows, at - 10, at)
    assert sum(one.running for one in told) == (here & ~waiting).sum()
    assert sum(one.waiting for one in told) == waiting.sum()
    assert sum(one.output_tokens_per_s for one in told) <= flow["decode"] * 40 + 1e-6  # 160 / SLOTS a sequence
    assert sum(one.prompt_tokens_per_s for one in told) == pytest.approx(flow["prefill"] * 1000)  # 4000 / SLOTS
