"""The chain of stages: which one limits the requests that users get through, and which are next."""

from __future__ import annotations

from collections.abc import Mapping


def capacity(rate: float, factor: float = 1.0, visits: float = 1.0) -> float:
    """User requests/s that a stage lets through: rate × replica factor/visits (F42).

    Args:
        rate: visits/s that the stage sustains.
        factor: on the rate: replicas of that rate, or the utilisation it is planned at.
        visits: per user request, > 0; 0.15 where one request in 6.7 comes by.

    >>> round(capacity(12, 0.7), 1), round(capacity(10, visits=0.15), 1)
    (8.4, 66.7)
    """
    return rate * factor / visits


def order(capacities: Mapping[str, float]) -> list[tuple[str, float]]:
    """The stages from the tightest on: the order in which they become limits; ties stay as given.

    >>> order({"gateway": 60, "retrieval": 45, "tool": 66.7, "model": 8.4})
    [('model', 8.4), ('retrieval', 45), ('gateway', 60), ('tool', 66.7)]
    """
    return sorted(capacities.items(), key=lambda stage: stage[1])
