"""Those who watch requests one after the other, and remember: overload by the second, shadow budgets, mix drift.

They see every batch after the meters; what they find goes into the ledger, what they remember with the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from capwatch.budgets import Budgets
from capwatch.config.schema import Config, Pool
from capwatch.drifting.watch import Drifting
from capwatch.ledger import Delta, Gathering
from capwatch.load.tables import OVERLOADED, REFUSED
from capwatch.overload import Overload
from capwatch.seen import Seen


class Watching:
    """The watchers of one pipeline. Plain values: `save` and `load`."""

    def __init__(self, config: Config, pools: Mapping[int, Pool], into: Gathering, live: Callable[[str], int]) -> None:
        """Watch these pools, by the ids of their names; ``live`` says how many replicas of one are heard of."""
        self._pools = pools
        self._live = live
        self._overload = Overload()
        self.drifts = Drifting(config, pools, into)
        self._budgets = Budgets(config.budgets)

    def watch(self, seen: Seen, into: Gathering) -> None:
        """Look at the requests of a batch."""
        pools, cost = seen.pool, seen.cost.total
        timely = np.flatnonzero(seen.timely)
        seconds = np.floor(seen.arrived_at[timely]).astype(np.int64)
        for pool, count in self._overload.take(pools[timely], seconds, cost[timely], self._replicas).items():
            into.add(OVERLOADED, np.array([pool]), np.array([float(count)]))
        # What is far from the clock is of no bucket's time: one request dated ahead would stop its bucket's inflow.
        rows, refused = self._budgets.judge(seen.batch, pools, np.where(seen.timely, cost, np.nan))
        into.add(REFUSED, seen.groups.tenant[seen.groups.of[rows]], refused.astype(np.float64))

        self.drifts.take(seen)

    def _replicas(self, number: int) -> float | None:
        pool = self._pools.get(number)
        if pool is None or pool.replicas is None:
            return None
        return (self._live(pool.name) or None) if pool.replicas == "observed" else pool.replicas

    def expire(self, clock: float) -> None:
        """Forget what is over at this event time (s, epoch)."""
        self._overload.expire(clock)

    def inherit(self, other: Watching) -> None:
        """Go on from the watchers of another configuration."""
        self._overload = other._overload
        self._budgets.inherit(other._budgets)
        self.drifts.inherit(other.drifts)

    def news(self) -> object:
        """What is remembered since the last call, beside what the delta tells."""
        return [self._budgets.news(), self.drifts.news()]

    def absorb(self, news: Sequence[Any]) -> None:
        """Remember what `news` gave before a restart."""
        if news:
            budgets, drifts = news
            self._budgets.load(budgets)
            self.drifts.absorb(drifts)

    def repeat(self, delta: Delta) -> None:
        """Remember what a delta says that was frozen before a restart."""
        self._overload.absorb(delta, self._replicas)

    def save(self) -> object:
        """All that is remembered, as plain builtins."""
        return [self._overload.save(), self._budgets.save(), self.drifts.save()]

    def load(self, saved: Sequence[Any]) -> None:
        """Remember again what `save` gave."""
        if saved:
            overload, budgets, drifts = saved
            self.drifts.load(drifts)
            self._overload.load(overload)
            self._budgets.load(budgets)
