"""Tokens per minute: what a rate needs of a quota, what is left, and when it is gone."""

from __future__ import annotations


def per_minute(rate: float, tokens: float) -> float:
    """Tokens/minute: λ × tokens × 60 (F33, F54).

    >>> per_minute(8, 1500), per_minute(8, 100), per_minute(40, 1800)
    (720000, 48000, 4320000)
    """
    return rate * tokens * 60


def headroom(used: float, limit: float) -> float:
    """The share of a quota that is left: 1 − used/limit, both per minute. Negative: over it.

    >>> headroom(750_000, 1_000_000)
    0.25
    """
    return 1 - used / limit


def exhausted_in(used: float, growth: float, limit: float) -> float | None:
    """Time until a steady growth uses up a quota, in the unit of time that ``growth`` has; 0 where it is used up.

    None where it never is. A straight line: good for days ahead of weeks of data, no further.

    >>> exhausted_in(700_000, 10_000, 1_000_000), exhausted_in(5, 1, 4), exhausted_in(5, 0, 9)
    (30.0, 0.0, None)
    """
    if used >= limit:
        return 0.0
    return (limit - used) / growth if growth > 0 else None
