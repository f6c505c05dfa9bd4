"""Little's law: how many requests are in flight, by phase and by replica.

It holds for means only, over a window in which as many arrive as depart, and "in the system" must mean the same for
the rate and the time. It does not give the capacity of a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capwatch.capacity.rounding import whole

UNSTABLE = 0.1
"""The law says nothing about a window whose arrivals and departures differ by more than this share."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A phase of a request's way: seconds of one visit, and mean visits per request (0.15: one in 6.7 comes by)."""

    seconds: float
    visits: float = 1.0


def in_flight(rate: float, residence: float) -> float:
    """L = λW (F10; Little 1961).

    Args:
        rate: λ, requests/s.
        residence: W, mean seconds from arrival to last byte.

    >>> in_flight(20, 5), in_flight(20, 8)
    (100, 160)
    """
    return rate * residence


def residence(visits: Sequence[Visit]) -> float:
    """W = Σ v_k W_k, seconds (F11): the phases are disjoint and make up the whole way.

    >>> residence([Visit(0.1), Visit(0.4), Visit(2, 0.15), Visit(4.2)])
    5.0
    """
    return sum(one.visits * one.seconds for one in visits)


def by_phase(rate: float, visits: Mapping[str, Visit]) -> dict[str, float]:
    """L_k = λ v_k W_k of each phase (F11); they add up to L.

    >>> by_phase(20, {"tool": Visit(2, 0.15), "model": Visit(4.2)})
    {'tool': 6.0, 'model': 84.0}
    """
    return {name: in_flight(rate, one.visits * one.seconds) for name, one in visits.items()}


def seats(requests: float, per_replica: float) -> int:
    """Replicas that hold so many requests at once: ceil(L / seats) (F12), with even balance.

    >>> seats(120, 30)
    4
    """
    return whole(requests / per_replica)


def residual(measured: float, rate: float, mean_residence: float) -> float | None:
    """Measured L over λW, less 1; None where λW is 0. Positive for long: work that the log does not see.

    >>> round(residual(2.914, 1.0, 2.909), 4)
    0.0017
    """
    expected = in_flight(rate, mean_residence)
    return measured / expected - 1 if expected else None


def holds(arrivals: float, departures: float) -> bool:
    """Whether a window was stable enough for the law: arrivals and departures differ by at most a tenth.

    >>> holds(1000, 950), holds(1000, 850), holds(0, 0)
    (True, False, False)
    """
    most = max(arrivals, departures)
    return most > 0 and abs(arrivals - departures) <= UNSTABLE * most
