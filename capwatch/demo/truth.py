"""What must be reported about simulated requests, from the simulation's own times and tokens."""

from __future__ import annotations

import numpy as np

from capwatch.demo.draw import LIMIT, Floats, Rows
from capwatch.demo.workload import DECODE_RATE, PREFILL_RATE, REPLICAS, SLOTS


def cost(rows: Rows) -> Floats:
    """float64[n], replica-seconds of each request; NaN for those that no replica has seen."""
    whole = rows.computed / PREFILL_RATE + rows.output / DECODE_RATE
    return np.where(rows.fate == LIMIT, np.nan, whole)


def utilisation(rows: Rows, seconds: float) -> float:
    """λ·cost/replicas of the requests that ended in so many seconds."""
    return float(np.nansum(cost(rows)) / seconds / REPLICAS)


def phases(rows: Rows) -> dict[str, tuple[Floats, Floats]]:
    """Begin and end (s, epoch) of each phase of each request."""
    taken = rows.started
    answering = taken + rows.prefill
    forwarded = rows.arrived + rows.gateway
    return {
        "gateway": (rows.arrived, forwarded),
        "queue": (forwarded, taken),
        "prefill": (taken, answering),
        "decode": (answering, rows.ended),
    }


def in_flight(rows: Rows, since: float, until: float) -> dict[str, float]:
    """Requests in each phase, the mean over a stretch of time: how long each was in it there, over its length.

    ``rows`` must be all that were under way in it, also those that ended later.
    """
    return {
        name: float(np.maximum(np.minimum(end, until) - np.maximum(begin, since), 0.0).sum() / (until - since))
        for name, (begin, end) in phases(rows).items()
    }


def busy(rows: Rows, since: float, until: float) -> float:
    """The part of all slots that was occupied in a stretch of time, 0..1; more than utilisation by what is redone."""
    inside = in_flight(rows, since, until)
    return (inside["prefill"] + inside["decode"]) / (REPLICAS * SLOTS)
