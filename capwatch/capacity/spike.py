"""A step in the rate against the time until new replicas are ready: backlog, longest wait, drain, shed.

A fluid queue: nobody gives up, and the excess piles up evenly.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spike:
    """What a step does.

    Attributes:
        deficit: requests/s beyond the capacity, negative where there is room.
        backlog: requests that wait when the new replicas are ready.
        last_wait: seconds that the last of them waits, served by the old capacity.
        drain: seconds from then until the queue is empty; None where it never is.
        clear_at: seconds from the step until then; None likewise.
        shed: requests beyond those that can wait no longer than allowed; None without such a bound. The other figures
            are those of the queue without it.
    """

    deficit: float
    backlog: float
    last_wait: float
    drain: float | None
    clear_at: float | None
    shed: float | None


def spike(to: float, capacity: float, ready: float, capacity_after: float, max_wait: float | None = None) -> Spike:
    """A step to a rate that exceeds what is there until new replicas are ready.

    Args:
        to: requests/s after the step.
        capacity: requests/s until new replicas are ready, > 0.
        ready: seconds from the step until then: signal, node, image, weights, warm-up.
        capacity_after: requests/s from then on.
        max_wait: longest wait that is allowed, seconds.

    >>> step = spike(20, 12, 170, 29, max_wait=10)
    >>> step.backlog, round(step.last_wait, 1), round(step.drain, 1), round(step.clear_at, 1), step.shed
    (1360, 113.3, 151.1, 321.1, 1240)
    """
    deficit = to - capacity
    backlog = max(0, deficit * ready)
    drain = backlog / (capacity_after - to) if capacity_after > to else None
    return Spike(
        deficit=deficit,
        backlog=backlog,
        last_wait=backlog / capacity,
        drain=drain,
        clear_at=None if drain is None else ready + drain,
        shed=None if max_wait is None else max(0, backlog - capacity * max_wait),
    )


def in_time(cold_start: float, burst: float) -> bool:
    """Whether a replica that takes so many seconds to start helps with a burst that lasts so many.

    >>> in_time(360, 20)
    False
    """
    return cold_start < burst
