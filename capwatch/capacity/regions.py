"""The price of regions: replicas for each with its spares, against one pool for all (F41)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capwatch.capacity.sizing import needed


@dataclass(frozen=True, slots=True)
class Regions:
    """Replicas: of one pool, of each region with its spares, and of all regions."""

    pooled: int
    regions: Mapping[str, int]
    total: int


def regions(peak: float, replica: float, target: float, shares: Mapping[str, float], spare: int) -> Regions:
    """Replicas by region: ceil(peak × share/(replica × u)) + spare.

    Args:
        peak: requests/s of all regions.
        replica: requests/s of a replica, > 0.
        target: utilisation to plan for, 0 < u ≤ 1.
        shares: of the peak; computed as given, whatever they add up to.
        spare: replicas that each region has on top.

    >>> regions(20, 1, 0.7, {"eu": 0.30, "us": 0.70, "ap": 0.03}, 1)
    Regions(pooled=29, regions={'eu': 10, 'us': 21, 'ap': 2}, total=33)
    """
    each = {name: needed(peak * share, replica, target) + spare for name, share in shares.items()}
    return Regions(needed(peak, replica, target), each, sum(each.values()))
