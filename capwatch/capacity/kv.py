"""KV memory: bytes per token, sequences that fit, and the ceiling that memory bandwidth puts on decoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import linear_regression


def bytes_per_token(layers: int, kv_heads: int, head_dim: int, element_bytes: float) -> float:
    """2 (key and value) × layers × KV heads × head dimension × bytes per element (F44).

    >>> bytes_per_token(80, 8, 128, 2)
    327680
    """
    return 2 * layers * kv_heads * head_dim * element_bytes


def pool_bytes(gpus: int, memory: float, weights: float, reserve: float = 0) -> float:
    """Bytes left for KV on a replica: gpus × (memory − reserve) − weights (F46). Negative: it does not fit.

    Args:
        gpus: of the replica.
        memory: bytes of each.
        weights: bytes of the model, once over all GPUs.
        reserve: bytes that the runtime keeps of each GPU; texts disagree between 0 and 6 GB, so it is asked for.

    >>> pool_bytes(2, 80 * 10**9, 140 * 10**9, 6 * 10**9)
    8000000000
    """
    return gpus * (memory - reserve) - weights


def pool_tokens(pool: float, per_token: float) -> float:
    """Tokens that a pool of bytes holds, not rounded (F47).

    >>> pool_tokens(8_000_000_000, 327_680)
    24414.0625
    """
    return pool / per_token


def sequences(pool: float, context: float, per_token: float) -> int:
    """Whole sequences of so many tokens that fit: floor(pool/(context × bytes per token)) (F45, F48, F51).

    >>> sequences(8_000_000_000, 4000, 327_680), sequences(20_000_000_000, 4000, 327_680)
    (6, 15)
    """
    return math.floor(pool / (context * per_token) * (1 + 1e-12))  # a whole quotient stays whole


def steps_per_second(bandwidth: float, gpus: int, weights: float) -> float:
    """Most decode steps/s: each reads all weights once, bandwidth × gpus/weights (F49), bytes/s and bytes.

    >>> round(steps_per_second(3.35e12, 2, 140e9), 2)
    47.86
    """
    return bandwidth * gpus / weights


def demand_tokens(running: float, live: float) -> float:
    """Tokens that running sequences hold (F50); for all requests in flight an upper bound, since a queue holds none.

    Args:
        running: mean number of sequences.
        live: mean tokens of one: prompt + half the output on average, prompt + output at most.

    >>> round(demand_tokens(6.91667, 2800) / 30_500, 3)
    0.635
    """
    return running * live


def growth(demand: Sequence[float], step: float) -> float:
    """Tokens/s by which the demand for KV tokens grows, told every so many seconds: a straight line through all.

    >>> growth([10, 20, 30, 40], 300) * 300
    10.0
    """
    return linear_regression(range(len(demand)), demand).slope / step


def full_seconds(demand: float, growing: float, pool: float) -> float:
    """Seconds until a demand that goes on growing, tokens and tokens/s, is all that the pool holds; infinite: never.

    >>> full_seconds(40, 10 / 300, 100), full_seconds(100, 0, 100), full_seconds(40, 0, 100)
    (1800.0, 0.0, inf)
    """
    left = pool - demand
    if left <= 0:
        return 0.0
    return left / growing if growing > 0 else math.inf


def load_seconds(weights: float, rate: float) -> float:
    """Seconds to read the weights, bytes and bytes/s.

    >>> load_seconds(140e9, 2e9)
    70.0
    """
    return weights / rate
