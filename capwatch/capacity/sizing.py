"""Replicas by work and a target utilisation: three promises, headroom after a failure, and the HPA's formula."""

from __future__ import annotations

from dataclasses import dataclass

from capwatch.capacity.rounding import whole


@dataclass(frozen=True, slots=True)
class Promises:
    """Replicas for three promises, each dearer than the one before.

    Attributes:
        base: the expected peak is served at the target utilisation.
        burst: a burst is served at it.
        zonal: a burst is served at it after the loss of a zone.
        per_zone: of ``zonal``, in each zone.
    """

    base: int
    burst: int
    zonal: int
    per_zone: int


def promises(demand: float, replica: float, target: float, burst: float, zones: int) -> Promises:
    """Replicas for demand, burst and the loss of a zone (F34, F35, F36).

    Args:
        demand: at the expected peak, in any unit per second (tokens/s; replica-seconds/s for F37).
        replica: what one replica gives of that, > 0.
        target: utilisation to plan for, 0 < u ≤ 1.
        burst: factor b ≥ 1 on the demand.
        zones: z ≥ 1 of equal size; with one there is none to lose, and zonal is burst.

    >>> promises(800, 100, 0.7, 1.5, 3)
    Promises(base=12, burst=18, zonal=27, per_zone=9)
    """
    base = needed(demand, replica, target)
    peak = needed(demand * burst, replica, target)
    if zones <= 1:
        return Promises(base, peak, peak, peak)
    per_zone = whole(needed(demand * burst, replica, zone_target(target, zones)) / zones)
    return Promises(base, peak, zones * per_zone, per_zone)


def needed(demand: float, replica: float, target: float) -> int:
    """ceil(demand/(replica × u)) (F34); demand λ c̄ and replica 1 for the live form (F37).

    >>> needed(800, 100, 0.7), needed(8 * 1.2485, 1, 0.7), needed(8 * 1.3, 1, 0.7)
    (12, 15, 15)
    """
    return whole(demand / (replica * target))


def zone_target(target: float, zones: int) -> float:
    """Utilisation at which each zone is planned, so that the others carry z/(z − 1) of it: u(z − 1)/z (F38).

    >>> round(zone_target(0.7, 3), 3)
    0.467
    """
    return target * (zones - 1) / zones


def headroom(replicas: int, required: int, lost: int = 0) -> int:
    """Replicas to spare after so many are lost (F39): 0, 1, or those of the largest zone. Negative: a broken promise.

    >>> headroom(27, 18, 9), headroom(12, 15)
    (0, -3)
    """
    return replicas - lost - required


def absorbed(target: float) -> float:
    """The burst that headroom takes without any new replica: 1/u (F43).

    >>> round(absorbed(0.65), 2)
    1.54
    """
    return 1 / target


def hpa(replicas: int, current: float, target: float, tolerance: float = 0.1) -> int:
    """What a Kubernetes autoscaler wants: ceil(n × current/target), n while the ratio is within the tolerance (F40).

    Before its own minimum, maximum and stabilisation window. A ratio that a decimal puts on the edge is within.

    Args:
        replicas: n that are there.
        current: metric per replica, such as requests in flight.
        target: of it, > 0.
        tolerance: share of the target.

    >>> hpa(12, 8, 3.5), hpa(12, 3.8, 3.5), hpa(10, 3.85, 3.5)
    (28, 12, 10)
    """
    ratio = current / target
    return replicas if abs(ratio - 1) <= tolerance + 1e-9 else whole(replicas * ratio)
