"""The agreed scenarios G1 to G14, as far as they are arithmetic.

G11 to G14 are about alarms: the detector's tests hold them. Here stand the parts that no detector is needed for: in
G12, that the effects of longer prompts and of more cache hits cancel (test_effects), and all of G1 to G10.
"""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.capacity import kv, little, sizing, slots, work
from capwatch.capacity.budget import takes
from capwatch.capacity.bursts import bursts, distorted
from capwatch.capacity.effects import Cells, effects
from capwatch.capacity.regions import regions
from capwatch.capacity.spike import spike
from tests.capacity.premises import AFTER, BEFORE, COSTS, LENGTHS, PREFILL, simulated


def p95(shares: tuple[float, ...], replicas: int, name: str) -> float:
    """Of a class at 8/s."""
    figures = simulated(shares, replicas, 8.0).classes[name]
    assert figures is not None
    return figures.p95


def test_g1_the_usual_mix() -> None:
    """Cost 0.992, utilisation 66.1 %, p95 1.74 s, throughput 8.05/s."""
    cost = work.mean(BEFORE, COSTS)
    row = simulated(BEFORE, 12, 8.0)
    assert (round(cost, 3), round(work.utilisation(8, cost, 12), 3)) == (0.992, 0.661)
    assert (round(row.all.p95, 2), round(row.completion_rate, 2)) == (1.74, 8.05)


def test_g2_the_drifted_mix() -> None:
    """Cost +25.9 %, 83.2 % busy; long is 130 % of the net rise; pooled p95 by composition, policy by queueing."""
    before, after = work.mean(BEFORE, COSTS), work.mean(AFTER, COSTS)
    assert (round(after / before - 1, 3), round(work.utilisation(8, after, 12), 3)) == (0.259, 0.832)
    prompts, outputs = map(np.array, zip(*LENGTHS.values(), strict=True))
    then, now = (Cells(np.array(shares), prompts, np.zeros(3), outputs) for shares in (BEFORE, AFTER))
    mix = effects(then, now, PREFILL, 160.0).mix
    assert mix.round(4).tolist() == [-0.0412, -0.0348, 0.3325]
    assert round(mix[2] / (after - before), 2) == 1.3
    assert [round(simulated(AFTER, n, 8.0).all.p95, 2) for n in (12, 100)] == [4.75, 4.75]
    assert [round(p95(*where), 2) for where in ((BEFORE, 12, "policy"), (AFTER, 12, "policy"))] == [1.02, 2.19]
    assert [round(simulated(mix_, 12, 8.0).all.mean_wait, 3) for mix_ in (BEFORE, AFTER)] == [0.024, 0.286]


def test_g3_deeper_retrieval() -> None:
    """All of the rise is prompts; 15 replicas; KV by running sequences 63.5 %, by all in flight 97.9 %."""
    one = np.ones(1)
    shallow, deep = (Cells(one, one * prompt, one * 0, one * 100) for prompt in (1500, 2700))
    found = effects(shallow, deep, PREFILL, 160.0)
    assert [float(each.sum().round(9)) for each in found] == [0, 0.3, 0, 0]
    assert sizing.needed(8 * 1.3, 1, 0.7) == 15
    assert [round(little.in_flight(8, w) / 12, 2) for w in (5, 16)] == [3.33, 10.67]
    running = (little.in_flight(8, 16) - 45) / 12
    held = [kv.demand_tokens(*live) / 30_500 for live in ((40 / 12, 1600), (running, 2800), (128 / 12, 2800))]
    assert [round(share, 3) for share in held] == [0.175, 0.635, 0.979]


def test_g4_phases() -> None:
    """2, 8, 6, 84 in flight, 100 in all, no residual."""
    visits = {"a": little.Visit(0.1), "b": little.Visit(0.4), "c": little.Visit(2, 0.15), "d": little.Visit(4.2)}
    found = little.by_phase(20, visits)
    assert list(found.values()) == pytest.approx([2, 8, 6, 84])
    assert little.residual(sum(found.values()), 20, little.residence(list(visits.values()))) == pytest.approx(0)


def test_g5_the_spike() -> None:
    """1,360 wait, the last for 113 s, gone at 321 s; with 18 standing 340 and 19 s; a cap of 10 s sheds 1,240."""
    found, standing = spike(20, 12, 170, 29, 10), spike(20, 18, 170, 29)
    assert (found.backlog, round(found.last_wait), round(found.clear_at or 0), found.shed) == (1360, 113, 321, 1240)
    assert (standing.backlog, round(standing.last_wait)) == (340, 19)


def test_g6_slots() -> None:
    """1.70/s each, 24 isolated, 17 pooled, 16 naive with 9.5 % late, 20 in all."""
    fleet = slots.Demand(40, 32, 12.25, 0.5, 0.01)
    pooled = slots.pooled(fleet)
    assert round(slots.usable_rate(fleet), 2) == 1.70
    assert (slots.isolated(fleet), pooled, slots.naive(fleet)) == (24, 17, 16)
    assert round(fleet.late_at(16), 3) == 0.095
    assert pooled + slots.burst_adder(40, pooled, 0.5 / 60, 480) + 1 == 20


def test_g7_a_burst_of_twenty_seconds() -> None:
    """Ratio 10, 20 s, ramp 360; five minutes show 1.6 times."""
    counts = np.full(300, 40.0)
    counts[100:120] = 400
    found = bursts(counts)
    assert found is not None
    assert (found.p99_to_usual, found.longest_s, found.max_ramp) == (10, 20, 360)
    assert counts.mean() / 40 == distorted(10, 20, 300) == 1.6


def test_g8_the_bucket() -> None:
    """True, false, true; 0.5 left."""
    decisions, bucket = takes(2, 6, [(0, 4.75), (0, 4.75), (2, 4.75)])
    assert (decisions, bucket.level) == ([True, False, True], 0.5)


def test_g9_promises_and_regions() -> None:
    """12, 18, 27; one pool 29, two regions with spares 31, three 33."""
    assert sizing.promises(800, 100, 0.7, 1.5, 3) == sizing.Promises(12, 18, 27, 9)
    found = regions(20, 1, 0.7, {"eu": 0.3, "us": 0.7, "ap": 0.03}, 1)
    assert (found.pooled, found.regions["eu"] + found.regions["us"], found.total) == (29, 31, 33)


def test_g10_completions_at_overload() -> None:
    """12.12/s at 12.5/s offered; the other cells are in test_simulate."""
    assert round(simulated(BEFORE, 12, 12.5).completion_rate, 2) == 12.12
