"""Simulation of a pool: one queue, first come first served, identical replicas, classes of fixed work.

Requests are drawn as the capacity texts draw them, so that their tables come out to the digit: `random.Random(seed)`,
and for each request first the gap to it (open loop), then one uniform number for its class.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import accumulate
from math import fsum
from random import Random

Served = tuple[int, float, float]
"""A request's class, its wait and its residence, seconds."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds: quantiles of residence (arrival to end) and the mean wait of ``requests``."""

    requests: int
    p50: float
    p95: float
    p99: float
    mean_wait: float


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one load.

    Attributes:
        offered: requests/s of an open loop, workers of a closed one.
        closed: which of both.
        arrival_rate: requests over the time of the last arrival. It goes on rising past capacity; None in a closed
            loop, where requests come as fast as they are answered.
        completion_rate: requests over the time of the last end: the throughput.
        all: of all requests.
        classes: of each class by name; None for one that nobody drew.
    """

    offered: float
    closed: bool
    arrival_rate: float | None
    completion_rate: float
    all: Figures
    classes: Mapping[str, Figures | None]


class Pool:
    """A mix of classes before identical replicas."""

    def __init__(self, mix: Mapping[str, tuple[float, float]], replicas: int) -> None:
        """Classes by name as (share, seconds of work), shares adding up to 1."""
        self._names = list(mix)
        self._edges = list(accumulate(share for share, _ in mix.values()))
        self._edges[-1] = 1.0  # the last class catches what rounding leaves; a draw is below 1
        self._work = [work for _, work in mix.values()]
        self._replicas = replicas

    def open(self, rate: float, requests: int, seed: int) -> Row:
        """Poisson arrivals, however long the queue.

        Args:
            rate: requests/s, > 0.
            requests: how many, ≥ 1.
            seed: of all chance.

        >>> row = Pool({"all": (1.0, 0.5)}, 1).open(1.0, 20_000, 7)  # M/D/1 at ρ = 0.5: mean wait ρS/(2(1 − ρ))
        >>> round(row.all.mean_wait, 2), row.all.p50 >= 0.5
        (0.25, True)
        """
        random = Random(seed)  # noqa: S311 - chance, not secrets
        gap, draw = random.expovariate, random.random
        edges, work = self._edges, self._work
        free = [0.0] * self._replicas
        served: list[Served] = []
        now = 0.0
        for _ in range(requests):
            now += gap(rate)
            kind = bisect_left(edges, draw())
            start = max(free[0], now)
            end = start + work[kind]
            heapreplace(free, end)
            served.append((kind, start - now, end - now))
        return self._row(rate, requests / now, requests / max(free), served)

    def closed(self, workers: int, requests: int, seed: int) -> Row:
        """Workers that each send the next request as soon as the last is answered: they hide what a queue does.

        >>> row = Pool({"all": (1.0, 0.5)}, 2).closed(4, 1000, 7)  # four on two replicas: each waits for one before
        >>> row.completion_rate, row.all.p50
        (4.0, 1.0)
        """
        draw = Random(seed).random  # noqa: S311 - chance, not secrets
        edges, work = self._edges, self._work
        free, ready = [0.0] * self._replicas, [0.0] * workers
        heapify(ready)
        served: list[Served] = []
        for _ in range(requests):
            now = ready[0]
            kind = bisect_left(edges, draw())
            start = max(free[0], now)
            end = start + work[kind]
            heapreplace(free, end)
            heapreplace(ready, end)
            served.append((kind, start - now, end - now))
        return self._row(workers, None, requests / max(free), served)

    def _row(self, offered: float, arrival_rate: float | None, completion_rate: float, served: Sequence[Served]) -> Row:
        by_class: list[list[Served]] = [[] for _ in self._names]
        for one in served:
            by_class[one[0]].append(one)
        return Row(
            offered=offered,
            closed=arrival_rate is None,
            arrival_rate=arrival_rate,
            completion_rate=completion_rate,
            all=_figures(served),
            classes={name: _figures(mine) if mine else None for name, mine in zip(self._names, by_class, strict=True)},
        )


def _figures(served: Sequence[Served]) -> Figures:
    n = len(served)
    ranked = sorted(residence for _, _, residence in served)
    p50, p95, p99 = (ranked[min(n - 1, int(q * n))] for q in (0.50, 0.95, 0.99))
    return Figures(n, p50, p95, p99, fsum(wait for _, wait, _ in served) / n)  # exact, so the same on every Python
