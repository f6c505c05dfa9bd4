"""Each burst against the rungs of the response ladder, second by second: headroom, queue, new replicas, or none.

A fluid queue: the work of each second (replica-seconds) goes to the replicas; what is over waits. A second is covered
by headroom where nothing waits, by the queue where what waits is done within the wait budget, by new replicas from the
cold start on after the begin of the burst, as if they had been ordered then; else it is a gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.capacity.shapes import Burst, Hints, bursts
from capwatch.config.schema import Pool
from capwatch.record import Floats
from capwatch.review.week import Seconds

RUNGS: Final = ("headroom", "queue", "new replicas", "gap")
AFTER_S: Final = 900
"""Seconds after a burst in which its queue is still followed."""
ANSWERS: Final = {
    "seasonal": "scale on a clock",
    "on_the_hour": "a limit per tenant, asynchronous jobs, a talk with the tenant",
    "step": "standing headroom, an overflow endpoint",
    "self_made": "a retry budget, jitter, a stop answer",
}


@dataclass(frozen=True, slots=True)
class Covered:
    """One burst and what covered it.

    Attributes:
        burst: the burst, with its shape.
        seconds: of the burst and its queue, by `RUNGS`.
        longest_wait: s, of the fluid queue.
    """

    burst: Burst
    seconds: Mapping[str, int]
    longest_wait: float


def covered(told: Seconds, pool: Pool, replicas: int, hints: Hints) -> list[Covered]:
    """The bursts of some seconds, in order, each with its rungs."""
    found = bursts(told.arrivals, float(told.first), hints)
    backlog = queue(told.cost, float(replicas))
    return [_covered(one, told, pool, replicas, backlog) for one in found]


def queue(cost: Floats, replicas: float) -> Floats:
    """Replica-seconds that wait at the end of each second: q = max(0, q + cost − replicas), from an empty queue.

    >>> queue(np.array([3.0, 3.0, 1.0, 0.0]), 2.0).tolist()
    [1.0, 2.0, 1.0, 0.0]
    """
    walk = np.cumsum(cost - replicas)
    lowest = np.minimum(np.minimum.accumulate(walk), 0.0)
    return np.asarray(walk - lowest, np.float64)


def _covered(one: Burst, told: Seconds, pool: Pool, replicas: int, backlog: Floats) -> Covered:
    begin, end = int(one.begin) - told.first, int(one.end) - told.first
    waits = backlog[begin : end + AFTER_S] / replicas
    burst = np.arange(len(waits)) < end - begin
    busy = burst | (np.cumprod(np.where(burst, 1, waits > 0)) > 0)  # and its queue, until that has gone
    ready = np.arange(len(waits)) >= (np.inf if pool.cold_start is None else pool.cold_start)
    rung = np.select([waits <= 0, waits <= pool.wait_budget, ready], [0, 1, 2], 3)
    counts = np.bincount(rung[busy], minlength=len(RUNGS))
    seconds = dict(zip(RUNGS, counts.tolist(), strict=True))
    return Covered(one, seconds, float(waits[busy].max(initial=0.0)))
