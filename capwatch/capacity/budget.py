"""Token buckets charged in replica-seconds: what a tenant's budget would let through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket and what is in it; full at first.

    Attributes:
        rate: replica-seconds that flow in per second.
        burst: replica-seconds it holds.
        level: replica-seconds in it at ``at``.
        at: seconds, in any epoch, of the last take.
    """

    rate: float
    burst: float
    level: float
    at: float

    def take(self, at: float, amount: float) -> tuple[bool, Bucket]:
        """Whether so much is there at that time, and the bucket after: min(burst, level + Δt × rate), less it (F52).

        A time before the last take counts as that of the last take. An amount that a decimal puts level is there.

        >>> Bucket(2.0, 6.0, 1.25, 0.0).take(2.0, 4.75)
        (True, Bucket(rate=2.0, burst=6.0, level=0.5, at=2.0))
        """
        at = max(at, self.at)
        level = min(self.burst, self.level + (at - self.at) * self.rate)
        enough = level >= amount - 1e-9 * max(1.0, amount)
        left = max(0.0, level - amount) if enough else level
        return enough, Bucket(self.rate, self.burst, left, at)


def takes(rate: float, burst: float, asked: Iterable[tuple[float, float]]) -> tuple[list[bool], Bucket]:
    """The decisions on takes (at, amount) in the order of time, and the bucket after them.

    >>> decisions, bucket = takes(2, 6, [(0, 4.75), (0, 4.75), (2, 4.75)])
    >>> decisions, bucket.level
    ([True, False, True], 0.5)
    """
    decisions = []
    bucket = None
    for at, amount in asked:
        bucket = bucket or Bucket(rate, burst, burst, at)
        enough, bucket = bucket.take(at, amount)
        decisions.append(enough)
    return decisions, bucket or Bucket(rate, burst, burst, 0.0)


def oversubscription(rates: Iterable[float], replicas: float) -> float:
    """Σ budgets/fleet (F55), both in replica-seconds per second.

    Over 1, idle capacity is not stranded; below 1, nobody eats another's wait budget. Both are wanted somewhere, so
    it is shown and not judged.

    >>> oversubscription([6, 6, 6], 12)
    1.5
    """
    return sum(rates) / replicas
