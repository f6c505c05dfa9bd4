"""The work of a request and of a mix of requests, in replica-seconds: what one replica is kept busy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from capwatch.record import Floats

Value = TypeVar("Value", float, Floats)


def prefill(prompt: Value, cached: Value | float, rate: Value | float) -> Value:
    """Replica-seconds that a prompt costs: (P − H)/r_p (F1, F6; capacity text A).

    Linear near the point where the rate was measured. Cached tokens spare prefill only: a hit ratio of 35 % on a
    prompt of 1500 tokens and an answer of 100 spares 13.1 % of the work, not 35 %.

    Args:
        prompt: tokens, cached ones included; a number or an array.
        cached: tokens of it that came from the prefix cache.
        rate: computed prompt tokens/s that a replica prefills alone, > 0.

    >>> prefill(1300.0, 0.0, 4000.0)
    0.325
    """
    return (prompt - cached) / rate


def decode(output: Value, rate: Value | float) -> Value:
    """Replica-seconds that an answer costs: O/r_d (F1; capacity text A).

    Real decode speed rises with the batch until bandwidth or KV memory binds; the rate is that of a full replica.

    Args:
        output: tokens.
        rate: output tokens/s that a replica decodes in all, > 0.

    >>> decode(80.0, 160.0)
    0.5
    """
    return output / rate


def cost(
    prompt: Value, output: Value, prefill_rate: Value | float, decode_rate: Value | float, cached: Value | float = 0.0
) -> Value:
    """Replica-seconds of a request: prefill + decode (F1). With the output cap for ``output``, the estimate of F53.

    >>> [cost(p, o, 4000.0, 160.0) for p, o in ((1300.0, 80.0), (3200.0, 150.0), (9000.0, 400.0))]
    [0.825, 1.7375, 4.75]
    """
    return prefill(prompt, cached, prefill_rate) + decode(output, decode_rate)


def mean(shares: Sequence[float], values: Sequence[float]) -> float:
    """Mean of a mix: Σ wᵢ vᵢ (F2, F5, F23), of costs, phases, tokens or slot times. Means multiply, percentiles do not.

    Args:
        shares: of the requests, adding up to 1.
        values: the mean of each class, in any unit.

    >>> round(mean((0.85, 0.14, 0.01), (0.825, 1.7375, 4.75)), 4)
    0.992
    """
    return sum(share * value for share, value in zip(shares, values, strict=True))


def spread(shares: Sequence[float], costs: Sequence[float]) -> float | None:
    """Cs² of a mix without spread inside its classes: Σ w c²/c̄² − 1 (capacity text A). None where all cost nothing.

    An exponential distribution has 1; a mix of three fixed costs has less than one might fear.

    >>> round(spread((0.85, 0.14, 0.01), (0.825, 1.7375, 4.75)), 3)
    0.247
    """
    middle = mean(shares, costs)
    return mean(shares, [one**2 for one in costs]) / middle**2 - 1 if middle else None


def blend(before: Sequence[float], after: Sequence[float], part: float) -> tuple[float, ...]:
    """Shares on the straight line between two mixes: w₀ + β(w₁ − w₀) (F9).

    >>> blend((1.0, 0.0), (0.5, 0.5), 0.5)
    (0.75, 0.25)
    """
    return tuple(one + part * (other - one) for one, other in zip(before, after, strict=True))


def capacity(replicas: float, mean_cost: float) -> float:
    """Requests/s of fully busy replicas: n/c̄ (F3).

    >>> round(capacity(12, 0.992), 3)
    12.097
    """
    return replicas / mean_cost


def utilisation(rate: float, mean_cost: float, replicas: float) -> float:
    """Work that arrives over work that can be done: λ c̄/n (F4). Over 1 the queue grows without end.

    >>> round(utilisation(8, 1.2485, 12), 4)
    0.8323
    """
    return rate * mean_cost / replicas


def past_cache(rate: float, hits: float) -> float:
    """Requests/s that an exact-answer cache lets through: λ(1 − h) (F7); a hit costs nothing.

    >>> past_cache(8, 0.2)
    6.4
    """
    return rate * (1 - hits)
