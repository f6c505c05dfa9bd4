"""The premises that the capacity texts share, and the truth that their formulas are held against."""

from __future__ import annotations

import math
from functools import cache
from heapq import heapreplace
from typing import Final

import numpy as np

from capwatch.capacity import work
from capwatch.capacity.simulate import Pool, Row

PREFILL: Final = 4000.0
DECODE: Final = 160.0
LENGTHS: Final = {"policy": (1300.0, 80.0), "order": (3200.0, 150.0), "long": (9000.0, 400.0)}
BEFORE: Final = (0.85, 0.14, 0.01)
AFTER: Final = (0.80, 0.12, 0.08)
COSTS: Final = tuple(work.cost(prompt, output, PREFILL, DECODE) for prompt, output in LENGTHS.values())


@cache
def simulated(shares: tuple[float, ...], replicas: int, load: float, *, closed: bool = False) -> Row:
    """A row of the texts' simulator: 60,000 requests, seed 7."""
    pool = Pool(dict(zip(LENGTHS, zip(shares, COSTS, strict=True), strict=True)), replicas)
    return pool.closed(int(load), 60_000, 7) if closed else pool.open(load, 60_000, 7)


def erlang_c(servers: int, load: float) -> float:
    """P(wait > 0) in M/M/c by the sum itself, in logarithms: nothing in common with the recursion."""
    terms = [k * math.log(load) - math.lgamma(k + 1) for k in range(servers)]
    top = servers * math.log(load) - math.lgamma(servers + 1) + math.log(servers / (servers - load))
    most = max(*terms, top)
    above = math.exp(top - most)
    return above / (math.fsum(math.exp(term - most) for term in terms) + above)


def waits(gaps: np.ndarray, services: np.ndarray, servers: int) -> np.ndarray:
    """The wait of each request, first come first served, by events one after the other."""
    free = [0.0] * servers
    found = np.empty(len(gaps))
    for i, (now, service) in enumerate(zip(np.cumsum(gaps).tolist(), services.tolist(), strict=True)):
        start = max(now, free[0])
        found[i] = start - now
        heapreplace(free, start + service)
    return found


def spread_like(generator: np.random.Generator, mean: float, cv2: float, size: int) -> np.ndarray:
    """Positive numbers with a mean and a squared coefficient of variation.

    Below 1 gamma; at 1 exponential; above 1 a mixture of two exponentials with balanced means.
    """
    if cv2 <= 1:
        return generator.gamma(1 / cv2, mean * cv2, size)
    p = (1 + math.sqrt((cv2 - 1) / (cv2 + 1))) / 2
    scale = np.where(generator.random(size) < p, mean / (2 * p), mean / (2 * (1 - p)))
    return generator.exponential(scale)
