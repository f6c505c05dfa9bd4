"""A load test graded from sums, where single requests are not known: the report of `grade`, as far as it goes.

Whether arrivals waited for completions, no sum tells: that point is never judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from capwatch.capacity.grade import APART, DRIFTED, FAIL, FEWEST, PASS, UNKNOWN, Point
from capwatch.capacity.loadtest import Break
from capwatch.record import Floats

VARIED: Final = 1.1
"""p95 over median from which lengths are a distribution, as in `loadtest.varied`."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """p50, p95 and p99 of a measure, and of how many requests."""

    p50: float
    p95: float
    p99: float
    requests: int


@dataclass(frozen=True, slots=True)
class Rest:
    """Requests in flight at the last arrival, seconds until the last of them ended, and what a request usually took."""

    in_flight: int
    seconds: float
    usual: float


@dataclass(frozen=True, slots=True)
class Outline:
    """The sums of a load test.

    Attributes:
        source: who tells them, for the reasons.
        requests: finished ones, at least one.
        seconds: of the test.
        lengths: `prompt_tokens` and `output_tokens`, as far as they are told.
        coarse: by which factor a quantile may be off.
        hit_rates: prefix hit rate of the first and the second half; None where it is not told.
        engines: who served, in all; 0 where that is not told.
        failed_share: of requests that were refused or failed; None where that is not told.
        times: `ttft_s`, `tpot_s`, `duration_s`, `queue_s`, as far as they are told.
        rates: float64[w], judged requests/s that ended in each window; past capacity those are fewer than arrived.
        good: float64[w], share of them that met the targets; NaN where none was judged.
        window: s.
        good_share: of all that were judged; None where there is none.
        gone: requests whose client had gone; None where that is not told.
        gone_cost: share of the work that was done for them; None where no cost is told.
        rest: None where arrivals are counted only when they end.
    """

    source: str
    requests: int
    seconds: float
    lengths: Mapping[str, Quantiles]
    coarse: float
    hit_rates: tuple[float | None, float | None]
    engines: int
    failed_share: float | None
    times: Mapping[str, Quantiles]
    rates: Floats
    good: Floats
    window: float
    good_share: float | None
    gone: int | None
    gone_cost: float | None
    rest: Rest | None


def report(test: Outline, objective: float, workload: Mapping[str, object] | None) -> dict[str, object]:
    """The report, with the keys of `grade.report`.

    Args:
        test: what is known of it.
        objective: share of requests that has to be good.
        workload: a workload profile to hold the lengths against; None: there is none.
    """
    points = {
        "distribution": _distribution(test, workload),
        "open_loop": Point(UNKNOWN, f"{test.source} tells no single requests: grade the log"),
        "controlled_state": _controlled(test),
        "percentiles_per_phase": _percentiles(test),
    }
    rest = test.rest
    return {
        "requests": test.requests,
        "seconds": test.seconds,
        "points": {name: asdict(point) for name, point in points.items()},
        "passed": sum(point.grade == PASS for point in points.values()),
        "queue": None if rest is None else {
            "drained": rest.seconds <= rest.usual, "in_flight_at_end": rest.in_flight, "drain_s": rest.seconds,
        },
        "served_after_client_gone": {
            "any": bool(test.gone_cost) if test.gone_cost is not None or test.gone == 0 else None,
            "requests": test.gone, "cost_share": test.gone_cost,
        },
        "slo": _slo(test, objective),
    }  # fmt: skip


def _distribution(test: Outline, workload: Mapping[str, object] | None) -> Point:
    evidence: dict[str, object] = {}
    alike, varied = True, []
    for name, found in test.lengths.items():
        evidence[name] = asdict(found)
        varied.append(found.p95 / found.p50 if found.p50 else np.inf)
        theirs = workload.get(name) if workload else None
        if isinstance(theirs, Mapping):
            off = {q: getattr(found, q) / float(theirs[q]) - 1 for q in ("p50", "p95") if theirs.get(q)}
            evidence[f"{name}_against_workload"] = off
            alike = alike and all(abs(one) <= APART + test.coarse - 1 for one in off.values())
    if not varied:
        return Point(UNKNOWN, f"{test.source} tells no lengths")
    if min(varied) <= VARIED:
        return Point(FAIL, "lengths are fixed", evidence)
    if not alike:
        return Point(FAIL, "lengths are not those of the workload", evidence)
    if min(varied) <= VARIED * test.coarse or len(varied) < 2:
        return Point(UNKNOWN, f"{test.source} tells too little of lengths: some may be fixed", evidence)
    return Point(PASS, "prompts and outputs vary", evidence)


def _controlled(test: Outline) -> Point:
    first, second = test.hit_rates
    evidence: dict[str, object] = {
        "engines": test.engines or None, "failed_share": test.failed_share,
        "hit_rate_first_half": first, "hit_rate_second_half": second,
    }  # fmt: skip
    if first is None or second is None:
        return Point(UNKNOWN, f"{test.source} does not tell cached tokens of both halves", evidence)
    if abs(second - first) > DRIFTED:
        return Point(FAIL, "the prefix hit rate changed during the test: warm up first, and say how warm", evidence)
    return Point(PASS, "the prefix hit rate was the same all along", evidence)


def _percentiles(test: Outline) -> Point:
    evidence = {name: asdict(found) for name, found in test.times.items()}
    if not {"ttft_s", "tpot_s"} <= evidence.keys():
        return Point(FAIL, "first tokens and tokens are not told apart: no percentiles by phase", evidence)
    if min(found.requests for found in test.times.values()) < FEWEST:
        return Point(UNKNOWN, f"fewer than {FEWEST} requests tell each time: no p99", evidence)
    waited = "" if "queue_s" in evidence else "; waiting is in TTFT, since it is not told"
    return Point(PASS, f"percentiles of TTFT (queue and prefill) and TPOT (decode){waited}", evidence)


def _slo(test: Outline, objective: float) -> dict[str, object] | None:
    if test.good_share is None:
        return None
    found = _broken(test.rates, test.good, objective)
    return {
        "objective": objective,
        "window_s": test.window,
        "good_share": test.good_share,
        "kept_at_rps": found.kept,
        "broken_at_rps": found.broken,
    }


def _broken(rates: Floats, good: Floats, objective: float) -> Break:
    """As `loadtest.slo_break` does, over windows of what ended."""
    told = ~np.isnan(good) & (rates > 0)
    rates, holds = rates[told], good[told] >= objective
    broken = float(rates[~holds].min()) if not holds.all() else None
    kept = rates[holds & (rates < broken)] if broken is not None else rates
    return Break(float(kept.max()) if len(kept) else None, broken)
