"""Evidence from sums is the evidence of single requests: a slow loop over requests is the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.drift.channels import CLUSTER_HITS, CLUSTER_SIGMAS, DOWN, MOST_SHARE, UP, channels, evidence, priors
from capwatch.drift.frame import dense
from capwatch.drift.reference import cell
from capwatch.drift.rows import Rows
from capwatch.drift.scale import cusum
from capwatch.drift.ticks import TICK_S
from capwatch.record import Floats

from .sample import LATER, model, rows, ticks

FIRST, COUNT = LATER // TICK_S, 30


def found(**changes: float) -> tuple[dict[tuple[str, float, int], Floats], Rows]:
    """Evidence of half an hour by (family, size, place), and its requests."""
    some = rows(LATER, COUNT * TICK_S, 3, **changes)
    reference = model().reference
    frame = dense(ticks(some), reference, FIRST, COUNT, np.zeros(len(reference.layout.owners)))
    chosen = channels(reference, UP)
    sums, _ = evidence(frame, reference, chosen)
    return {(one.family, one.size, one.place): sums[:, i] for i, one in enumerate(chosen)}, some


def test_lengths_are_gaussian_likelihood_ratios_of_each_request() -> None:
    """δ(x − μ)/σ² − δ²/2σ² summed over the requests of a tick, μ and σ those of the request's tenant and class."""
    sums, some = found()
    reference = model().reference
    level = reference.level["log_computed"]
    variance = (
        reference.spread["log_computed"] ** 2 * reference.shock["log_computed"] * reference.common["log_computed"]
    )
    offset = reference.offset["log_computed"][cell(np.array([FIRST]))[0]]
    expected = np.zeros(COUNT)
    for at, tenant, klass, computed in zip(some.at, some.tenant, some.klass, some.computed, strict=True):
        s2 = variance[tenant, klass]
        expected[int(at // TICK_S) - FIRST] += (
            0.2 * (np.log(computed) - level[tenant, klass] - offset) / s2 - 0.2**2 / 2 / s2
        )
    assert sums["computed", 0.2, -1] == pytest.approx(expected)


def test_class_shares_are_judged_inside_each_tenant() -> None:
    """hits·ln r + misses·ln((1 − rq)/(1 − q)) for each tenant, hits of a burst bounded."""
    sums, some = found(long=0.1)
    reference = model().reference
    expected = np.zeros(COUNT)
    for tick in range(COUNT):
        for tenant in range(4):
            mine = (some.tenant == tenant) & (some.at // TICK_S == FIRST + tick)
            n, hits = mine.sum(), (mine & (some.klass == 1)).sum()
            q = reference.klass[cell(np.array([FIRST + tick]))[0], tenant, 1]
            hits = min(hits, n * q + CLUSTER_SIGMAS * np.sqrt(n * q) + CLUSTER_HITS)
            r = min(6.0, MOST_SHARE / q)
            expected[tick] += hits * np.log(r) + (n - hits) * np.log((1 - r * q) / (1 - q))
    assert sums["class", 6.0, 1] == pytest.approx(expected)


def test_evidence_points_to_what_has_changed() -> None:
    """With a drift its own channel rises, without it falls: the sign is all that a CUSUM lives from."""
    quiet, _ = found()
    for changes, key in (
        ({"prompt": 1.8}, ("computed", 0.5, -1)),
        ({"output": 1.4}, ("output", 0.2, -1)),
        ({"long": 0.15}, ("class", 6.0, 1)),
        ({"newcomer": 0.06}, ("tenant", 8.0, model().reference.layout.unseen)),
        ({"long": 0.15}, ("log_cost", 0.2, -1)),
    ):
        drifted, _ = found(**changes)
        assert quiet[key].sum() < 0 < drifted[key].sum(), key


def test_priors_are_chances() -> None:
    """They add up to 1 in each direction, and none is 0."""
    for way in (UP, DOWN):
        chances = priors(channels(model().reference, way))
        assert chances.sum() == pytest.approx(1)
        assert (chances > 0).all()


def test_cusum_is_the_recursion() -> None:
    """S ← max(0, S + step), from any start."""
    steps = np.random.default_rng(2).normal(-0.1, 1, 500)
    total, expected = 3.0, []
    for step in steps:
        total = max(0.0, total + step)
        expected.append(total)
    assert cusum(steps, 3.0) == pytest.approx(expected)
