"""Overload: seconds in which more work arrived than the replicas can do in one, each counted once, when it shows.

Work is counted when its request has finished, and belongs to the second in which it arrived; so seconds stay open for
as long as the ledger keeps them. Plain values: `save` and `load`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from capwatch.ledger import Delta
from capwatch.load.tables import SECONDS
from capwatch.record import Floats, Ints

_COST = SECONDS.column("cost")


class Overload:
    """The work of each open second, by pool and second; infinite in one that has been counted."""

    def __init__(self) -> None:
        self._cost: dict[tuple[int, int], float] = {}

    def take(self, pools: Ints, seconds: Ints, cost: Floats, replicas: Callable[[int], float | None]) -> dict[int, int]:
        """Seconds that work makes overloaded, by pool.

        Args:
            pools: int64[n], ids.
            seconds: int64[n], s since the epoch, in which each request arrived.
            cost: float64[n], replica-seconds; NaN is nothing.
            replicas: of a pool; None where that is not known, and nothing is counted.
        """
        found: dict[int, int] = {}
        charged = np.flatnonzero(cost > 0)
        if not len(charged):
            return found
        pools, seconds, cost = pools[charged], seconds[charged], cost[charged]
        first = int(seconds.min())
        span = int(seconds.max()) - first + 1
        both, of = np.unique(pools * span + (seconds - first), return_inverse=True)
        pairs = list(zip((both // span).tolist(), (both % span + first).tolist(), strict=True))
        before = np.array([self._cost.get(pair, 0.0) for pair in pairs])
        # What was there comes first, so that the sum is the same however requests come in batches.
        totals = np.bincount(np.append(np.arange(len(pairs)), of), np.append(before, cost)).tolist()
        for pair, total in zip(pairs, totals, strict=True):
            most = replicas(pair[0])
            over = most is not None and most < total < math.inf
            self._cost[pair] = math.inf if over else total
            if over:
                found[pair[0]] = found.get(pair[0], 0) + 1
        return found

    def expire(self, clock: float) -> None:
        """Let seconds go that the ledger has closed at this event time (s, epoch)."""
        oldest = clock - SECONDS.slots
        if len(self._cost) > SECONDS.slots and min(second for _, second in self._cost) < oldest:
            self._cost = {key: cost for key, cost in self._cost.items() if key[1] >= oldest}

    def absorb(self, delta: Delta, replicas: Callable[[int], float | None]) -> None:
        """Take in what a delta has of these seconds, which it has counted already."""
        for second, (pools, sums) in delta.slots.get(SECONDS.name, {}).items():
            self.take(pools, np.full(len(pools), second), sums[:, _COST], replicas)

    def save(self) -> list[list[float]]:
        """Everything, as plain builtins."""
        return [[pool, second, cost] for (pool, second), cost in self._cost.items()]

    def load(self, saved: Iterable[Any]) -> None:
        """Remember again what `save` gave."""
        self._cost = {(pool, second): cost for pool, second, cost in saved}
