"""Where requests spend their time: seconds per phase, and how many are in each phase at once, by interval sweep."""

from __future__ import annotations

import numpy as np

from .options import PHASES
from .rows import Floats, Rows


def residences(rows: Rows) -> dict[str, Floats]:
    """Seconds of each row in each phase and in `other`; they add up to its duration, and are 0 without one.

    Prefill and decode that are not given follow from the TTFT: what of it no phase before explains is prefill, what
    comes after it is decode. Phases that add to more than the duration are scaled down to it.
    """
    given: dict[str, Floats] = {phase: getattr(rows, f"{phase}_s") for phase in PHASES}
    before = sum((np.nan_to_num(given[phase]) for phase in PHASES[:4]), start=np.zeros(len(rows)))
    derived = given | {
        "prefill": np.where(np.isnan(given["prefill"]), np.maximum(rows.ttft_s - before, 0), given["prefill"]),
        "decode": np.where(np.isnan(given["decode"]), np.maximum(rows.duration_s - rows.ttft_s, 0), given["decode"]),
    }
    known = {phase: np.nan_to_num(seconds) for phase, seconds in derived.items()}
    whole = sum(known.values(), start=np.zeros(len(rows)))
    duration = np.nan_to_num(rows.duration_s)
    shrink = np.minimum(1, np.divide(duration, whole, out=np.ones(len(rows)), where=whole > 0))
    parts = {phase: seconds * shrink for phase, seconds in known.items()}
    return parts | {"other": np.maximum(duration - whole * shrink, 0)}


def intervals(rows: Rows) -> dict[str, tuple[Floats, Floats]]:
    """Start and end (epoch seconds) of each row's stay in each phase, laid out in order from its start."""
    timed = rows.take(~np.isnan(rows.duration_s))
    at = timed.started_at
    laid: dict[str, tuple[Floats, Floats]] = {}
    for phase, seconds in residences(timed).items():
        laid[phase] = (at, at + seconds)
        at = at + seconds
    return laid


def inflight(starts: Floats, ends: Floats, since: float, until: float) -> float:
    """Time average over [since, until] of the number of intervals that are open, by a sweep over their ends.

    >>> inflight(np.array([0.0, 5.0]), np.array([10.0, 7.0]), 0.0, 20.0)
    0.6
    """
    inside = (ends > since) & (starts < until)
    at = np.concatenate([np.maximum(starts[inside], since), np.minimum(ends[inside], until)])
    step = np.concatenate([np.ones(int(inside.sum())), -np.ones(int(inside.sum()))])
    order = np.argsort(at, kind="stable")
    open_now = np.cumsum(step[order])
    gaps = np.diff(np.append(at[order], until))
    return float(np.sum(open_now * gaps) / (until - since))


def inflight_by_phase(rows: Rows, since: float, until: float) -> dict[str, float]:
    """Time average over [since, until] (epoch seconds) of the requests in each phase."""
    return {phase: inflight(starts, ends, since, until) for phase, (starts, ends) in intervals(rows).items()}
