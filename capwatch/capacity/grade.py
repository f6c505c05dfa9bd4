"""A load test graded from its log: the four points that make it worth something, and what it found.

The points (capacity text A): lengths are a distribution; arrivals are an open loop; the state was controlled (caches,
and what was there to serve); latencies are percentiles by phase. Each passes, fails, or cannot be judged, with the
evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

import numpy as np

from capwatch.capacity import loadtest
from capwatch.capacity.bursts import quantile
from capwatch.record import PHASE_FIELDS, Bools, Floats

LATENCIES: Final = ("ttft_s", "tpot_s", "duration_s")
QUANTILES: Final = (0.5, 0.95, 0.99)
FEWEST: Final = 100
"""Requests below which a p99 is only the largest value."""
DRIFTED: Final = 0.05
"""Change of the prefix hit rate between the halves of a test from which its cache was still filling."""
APART: Final = 0.25
"""A quantile of lengths may differ so much from the workload's: lengths of that kind, not those very ones."""
PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"


@dataclass(frozen=True, slots=True)
class Tested:
    """The requests of a load test, as columns of length n; NaN where the log does not tell.

    Attributes:
        started, ended: float64[n], s in any epoch, both told.
        prompt, cached, output: float64[n], tokens.
        times: float64[n] each: `LATENCIES` and the phases that the log tells, s.
        cost: float64[n], replica-seconds.
        good: bool[n], whether the targets were met; of those in ``judged``.
        judged: bool[n].
        gone: bool[n], whether the client had gone before the end.
        failed: bool[n], whether it was refused or failed.
        engines: who served, in all.
    """

    started: Floats
    ended: Floats
    prompt: Floats
    cached: Floats
    output: Floats
    times: Mapping[str, Floats]
    cost: Floats
    good: Bools
    judged: Bools
    gone: Bools
    failed: Bools
    engines: int


@dataclass(frozen=True, slots=True)
class Point:
    """One point: its grade, why, and the numbers behind it."""

    grade: str
    why: str
    evidence: Mapping[str, object] = field(default_factory=dict)


def report(test: Tested, window: float, objective: float, workload: Mapping[str, object] | None) -> dict[str, object]:
    """The whole report, ready for JSON.

    Args:
        test: at least one request.
        window: s, over which a rate and a share of good requests are taken.
        objective: share of requests that has to be good.
        workload: a workload profile to hold the lengths against; None: there is none.
    """
    points = {
        "distribution": distribution(test, workload),
        "open_loop": open_loop(test),
        "controlled_state": controlled(test),
        "percentiles_per_phase": percentiles(test),
    }
    return {
        "requests": len(test.started),
        "seconds": float(test.ended.max() - test.started.min()),
        "points": {name: asdict(point) for name, point in points.items()},
        "passed": sum(point.grade == PASS for point in points.values()),
        "queue": _queue(test),
        "served_after_client_gone": _gone(test),
        "slo": _slo(test, window, objective),
    }


def distribution(test: Tested, workload: Mapping[str, object] | None) -> Point:
    """Whether prompts and outputs are drawn from a distribution; from that of the workload, where it is given."""
    evidence: dict[str, object] = {}
    grades = []
    for name, values in (("prompt_tokens", test.prompt), ("output_tokens", test.output)):
        told = values[~np.isnan(values)]
        if not len(told):
            continue
        found = {f"p{100 * q:.0f}": quantile(told, q) for q in QUANTILES}
        evidence[name] = {**found, "different": len(np.unique(told))}
        grades.append(bool(loadtest.varied(values)))
        theirs = workload.get(name) if workload else None
        if isinstance(theirs, Mapping):
            off = {q: found[q] / float(theirs[q]) - 1 for q in ("p50", "p95") if theirs.get(q)}
            evidence[f"{name}_against_workload"] = off
            grades.append(all(abs(one) <= APART for one in off.values()))
    if not grades:
        return Point(UNKNOWN, "the log tells no lengths")
    if not all(grades):
        against = workload is not None and any(name.endswith("_workload") for name in evidence)
        return Point(
            FAIL, "lengths are fixed, or are not those of the workload" if against else "lengths are fixed", evidence
        )
    if len(grades) < 2:
        return Point(UNKNOWN, "the log tells only one of prompt and output lengths", evidence)
    return Point(PASS, "prompts and outputs vary", evidence)


def open_loop(test: Tested) -> Point:
    """Whether requests came whatever became of those before them."""
    found = loadtest.loop(test.started, test.ended)
    why = {
        "open": "arrivals do not wait for completions",
        "closed": "each request waits for the end of another: the test slows down with what it measures",
        "unclear": f"fewer than {3 * loadtest.WINDOW} requests, or both would look alike",
    }[found.verdict]
    return Point({"open": PASS, "closed": FAIL}.get(found.verdict, UNKNOWN), why, asdict(found))


def controlled(test: Tested) -> Point:
    """Whether caches and servers were the same all along: hit rate by halves, engines, failures."""
    evidence: dict[str, object] = {"engines": test.engines or None, "failed_share": float(test.failed.mean())}
    half = test.started <= np.median(test.started)
    rates = [_hit_rate(test, part) for part in (half, ~half)]
    evidence["hit_rate_first_half"], evidence["hit_rate_second_half"] = rates
    if rates[0] is None or rates[1] is None:
        return Point(UNKNOWN, "the log does not tell cached tokens: whether the cache was warm is not known", evidence)
    if abs(rates[1] - rates[0]) > DRIFTED:
        return Point(FAIL, "the prefix hit rate changed during the test: warm up first, and say how warm", evidence)
    return Point(PASS, "the prefix hit rate was the same all along", evidence)


def _hit_rate(test: Tested, rows: Bools) -> float | None:
    told = rows & ~np.isnan(test.cached) & ~np.isnan(test.prompt)
    prompts = float(test.prompt[told].sum())
    return float(test.cached[told].sum()) / prompts if prompts else None


def percentiles(test: Tested) -> Point:
    """p50, p95 and p99 of every time that the log tells; the point is that queue, prefill and decode are told apart."""
    evidence = {}
    for name, values in test.times.items():
        told = values[~np.isnan(values)]
        if len(told):
            evidence[name] = {f"p{100 * q:.0f}": quantile(told, q) for q in QUANTILES} | {"requests": len(told)}
    phases = [name for name in PHASE_FIELDS if name in evidence]
    if "prefill_s" not in evidence or "decode_s" not in evidence:
        return Point(FAIL, "the log does not tell prefill and decode apart: no percentiles by phase", evidence)
    if min(evidence[name]["requests"] for name in phases) < FEWEST:
        return Point(UNKNOWN, f"fewer than {FEWEST} requests tell each phase: no p99", evidence)
    waited = "" if "queue_s" in phases else "; waiting is in prefill, since the log does not tell it"
    return Point(PASS, f"percentiles of {', '.join(name.removesuffix('_s') for name in phases)}{waited}", evidence)


def _queue(test: Tested) -> dict[str, object] | None:
    found = loadtest.rest(test.started, test.ended)
    return (
        None
        if found is None
        else {"drained": found.drained, "in_flight_at_end": found.in_flight, "drain_s": found.seconds}
    )


def _gone(test: Tested) -> dict[str, object]:
    served = test.gone & (test.output > 0)
    return {
        "any": bool(served.any()),
        "requests": int(served.sum()),
        "cost_share": loadtest.wasted(test.cost, test.gone),
    }


def _slo(test: Tested, window: float, objective: float) -> dict[str, object] | None:
    """None where no request can be judged."""
    if not test.judged.any():
        return None
    found = loadtest.slo_break(test.started[test.judged], test.good[test.judged], window, objective)
    return {
        "objective": objective,
        "window_s": window,
        "good_share": float(test.good[test.judged].mean()),
        "kept_at_rps": found.kept,
        "broken_at_rps": found.broken,
    }
