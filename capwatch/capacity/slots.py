"""Replicas by slots and a wait budget: isolated queues, one pooled queue, and the naive mean (capacity text B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from capwatch.capacity.queueing import erlang_b, hayward_late_share, late_share, tail, waiting
from capwatch.capacity.rounding import whole

_HALVINGS: Final = 80
"""Halvings of an interval until its ends are neighbouring floats."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What arrives, and what one replica gives to it.

    Attributes:
        rate: λ > 0, requests/s.
        slots: S ≥ 1, requests a replica serves at once and still meets its time per output token; measured.
        service: T > 0, mean seconds in a slot (`slot_time`).
        wait: seconds a request may wait for a slot.
        late: share of the requests that may wait longer, in 0..1.
        stretch: f of `queueing.variability`.
    """

    rate: float
    slots: int
    service: float
    wait: float
    late: float
    stretch: float = 1.0

    def late_at(self, replicas: int) -> float:
        """Late share of the whole rate in one queue before so many replicas (F17, F19)."""
        return late_share(replicas * self.slots, self.rate, self.service, self.wait, self.stretch)


def slot_time(prefill: float, output: float, tpot: float) -> float:
    """T = prefill + O·TPOT, seconds in a slot (F20).

    >>> slot_time(0.25, 300, 0.040)
    12.25
    """
    return prefill + output * tpot


def slot_rate(slots: int, service: float) -> float:
    """Requests/s of a replica whose slots are always full: S/T (F21).

    >>> round(slot_rate(32, 12.25), 3)
    2.612
    """
    return slots / service


def floor(rate: float, slots: int, service: float) -> float:
    """Replicas that are busy on average: λT/S (F22). No fewer can do.

    >>> floor(40, 32, 12.25)
    15.3125
    """
    return rate * service / slots


def usable_rate(demand: Demand, replicas: int = 1) -> float:
    """The largest rate with a late share below the target, requests/s in all, by bisection (F25).

    One replica behind a queue of its own (isolated), or more behind a common one (pooled).

    >>> fleet = Demand(40, 32, 12.25, 0.5, 0.01)
    >>> round(usable_rate(fleet), 4), round(usable_rate(fleet, 17) / 17, 4)
    (1.7033, 2.4216)
    """
    servers = replicas * demand.slots
    low, high = 0.0, servers / demand.service
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if late_share(servers, middle, demand.service, demand.wait, demand.stretch) < demand.late:
            low = middle
        else:
            high = middle
    return low


def naive(demand: Demand) -> int:
    """ceil(λ/(S/T)): replicas for the mean, as if nothing ever came at once (F28).

    >>> naive(Demand(40, 32, 12.25, 0.5, 0.01))
    16
    """
    return whole(floor(demand.rate, demand.slots, demand.service))


def isolated(demand: Demand) -> int:
    """Replicas where each has a queue of its own and an even share of the rate (F26).

    >>> isolated(Demand(40, 32, 12.25, 0.5, 0.01))
    24
    """
    return whole(demand.rate / usable_rate(demand))


def pooled(demand: Demand) -> int:
    """Fewest replicas behind one queue with a late share below the target (F27).

    One pass of the recursion: from the floor on, it grows by a replica's slots at a time.

    >>> pooled(Demand(40, 32, 12.25, 0.5, 0.01)), pooled(Demand(40, 32, 12.25, 0.5, 0.01, 2.5))
    (17, 17)
    """
    replicas = max(1, naive(demand))
    load = demand.rate * demand.service
    servers = replicas * demand.slots
    blocking = erlang_b(servers, load)
    while True:
        spare = servers / demand.service - demand.rate
        if spare > 0:
            late = waiting(blocking, load / servers) * tail(spare * demand.wait, demand.stretch)
            if late < demand.late:
                return replicas
        replicas += 1
        for k in range(servers + 1, servers + demand.slots + 1):
            blocking = load * blocking / (k + load * blocking)
        servers += demand.slots


def hayward(demand: Demand, peak: float) -> int:
    """Fewest replicas behind one queue where arrivals of peakedness z are late less than the target (Fredericks 1980).

    >>> [hayward(Demand(40, 32, 12.25, 0.5, 0.01), z) for z in (1.5, 2.5, 4)]
    [17, 18, 19]
    """
    low = max(1, naive(demand))
    step = 1
    while not _good(demand, low + step - 1, peak):
        low, step = low + step, step * 2
    high = low + step - 1
    while low < high:
        middle = (low + high) // 2
        if _good(demand, middle, peak):
            high = middle
        else:
            low = middle + 1
    return high


def _good(demand: Demand, replicas: int, peak: float) -> bool:
    servers = replicas * demand.slots
    return hayward_late_share(servers, demand.rate, demand.service, demand.wait, peak) < demand.late


def burst_adder(rate: float, replicas: int, ramp: float, lag: float) -> int:
    """Replicas for what the rate gains until new ones help: ceil(ramp × lag/(λ/n)) (F31).

    Args:
        rate: λ, requests/s, served by ``replicas``.
        replicas: n, pooled.
        ramp: fastest growth of the rate, requests/s per second.
        lag: seconds from the order of a replica to its first token.

    >>> burst_adder(40, 17, 0.5 / 60, 480)
    2
    """
    return whole(ramp * lag / (rate / replicas))
