"""Shadow budgets: a token bucket in replica-seconds for each configured tenant and pool, which refuses nothing.

Requests are judged in the order in which they are counted, by what they did cost: a gateway that enforces a budget has
only the estimate from prompt and output cap (F53), and decides at the arrival. Plain values: `save` and `load`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity.budget import Bucket
from capwatch.config.schema import Budget
from capwatch.record import Batch, Bools, Floats, Ints

Key = tuple[str, int]
"""Tenant as the log tells it, and id of the pool."""
_NONE: Final = np.empty(0, np.int64)


class Budgets:
    """The buckets of all tenants that have a budget."""

    def __init__(self, budgets: Mapping[str, Budget]) -> None:
        self._budgets = budgets
        self._buckets: dict[Key, Bucket] = {}
        self._news: set[Key] = set()

    def judge(self, batch: Batch, pools: Ints, cost: Floats) -> tuple[Ints, Bools]:
        """(rows of tenants with a budget, whether it would have refused each).

        Args:
            batch: requests, in the order in which they count.
            pools: int64[n], id of the pool of each.
            cost: float64[n], replica-seconds; without any, or where it is NaN, there is nothing to take.
        """
        tenants = batch.labels["tenant"]
        names = {code: name for code, name in enumerate(tenants.names) if name in self._budgets}
        rows = np.flatnonzero(np.isin(tenants.codes, [*names]) & (cost > 0)) if names else _NONE
        refused = np.zeros(len(rows), np.bool_)
        times = batch.event_at
        for place, row in enumerate(rows.tolist()):
            key, at = (str(names[int(tenants.codes[row])]), int(pools[row])), float(times[row])
            enough, self._buckets[key] = self._bucket(key, at).take(at, float(cost[row]))
            self._news.add(key)
            refused[place] = not enough
        return rows, refused

    def _bucket(self, key: Key, at: float) -> Bucket:
        budget = self._budgets[key[0]]
        old = self._buckets.get(key)
        if old is None:
            return Bucket(budget.rate, budget.burst, budget.burst, at)
        return Bucket(budget.rate, budget.burst, min(old.level, budget.burst), old.at)

    def inherit(self, other: Budgets) -> None:
        """Go on with another's buckets, under one's own rates."""
        self._buckets = {key: bucket for key, bucket in other._buckets.items() if key[0] in self._budgets}
        self._news = {key for key in other._news if key in self._buckets}

    def news(self) -> list[list[object]]:
        """The buckets that changed since the last call."""
        news, self._news = self._news, set()
        return [*self._rows(news)]

    def save(self) -> list[list[object]]:
        """All buckets."""
        return [*self._rows(self._buckets)]

    def _rows(self, keys: Iterable[Key]) -> Iterator[list[object]]:
        return ([*key, self._buckets[key].level, self._buckets[key].at] for key in sorted(keys))

    def load(self, saved: Iterable[Any]) -> None:
        """Remember again what `save` or `news` gave; those of tenants without a budget go."""
        for tenant, pool, level, at in saved:
            if tenant in self._budgets:
                budget = self._budgets[tenant]
                self._buckets[tenant, pool] = Bucket(budget.rate, budget.burst, level, at)
