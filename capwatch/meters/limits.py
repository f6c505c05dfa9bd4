"""Limits that others set or that could be set: quotas in tokens a minute, shadow budgets in replica-seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.capacity import quota
from capwatch.capacity.budget import oversubscription
from capwatch.config.schema import Config
from capwatch.ledger import POOL, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain
from capwatch.load.pools import Load, loads
from capwatch.load.shown import by_pool
from capwatch.load.tables import REFUSED
from capwatch.record import zeroed
from capwatch.seen import Seen

TOKENS = Table((POOL,), "recent_tokens", ("tokens",), slot_s=300, slots=13)
"""Tokens by five minutes of the last hour, as quotas count them."""
FEWEST: Final = 6
"""Whole slots of five minutes below which nothing is said of their growth."""


class Limits:
    """Contract 4.5: quota headroom and when it is gone, budgets that would refuse, and their sum."""

    tables = (TOKENS, REFUSED)
    sketches = ()
    followers = ()

    def __init__(self, config: Config) -> None:
        self._config = config

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Count tokens, those of response-cache hits apart: they ask nobody."""
        rows = np.flatnonzero(seen.timely & ~seen.batch.cache_hit)
        slots = (seen.event_at[rows] // TOKENS.slot_s).astype(np.int64)
        tokens = zeroed(seen.batch["prompt_tokens"][rows]) + zeroed(seen.batch["output_tokens"][rows])
        into.add_slots(TOKENS, slots, seen.pool[rows], tokens)

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        yield plain(m.BUDGET_WOULD_REJECT, REFUSED, *totals.rows(REFUSED))
        rates = [budget.rate for budget in self._config.budgets.values()]
        gauges = {
            m.BUDGET_OVERSUBSCRIPTION_RATIO: lambda load: (
                oversubscription(rates, load.replicas) if rates and load.replicas else None
            ),
            m.QUOTA_HEADROOM_RATIO: self._headroom,
            m.QUOTA_EXHAUSTION_SECONDS: lambda load: self._exhausted(load, totals),
        }
        yield from by_pool(list(loads(self._config, totals)), gauges)

    def _limit(self, load: Load) -> float | None:
        found = self._config.quotas.get(load.pool.name)
        return None if found is None else found.tokens_per_minute

    def _headroom(self, load: Load) -> float | None:
        limit, used = self._limit(load), load.tokens_per_minute
        return None if limit is None or used is None else quota.headroom(sum(used), limit)

    def _exhausted(self, load: Load, totals: Totals) -> float | None:
        """Seconds until the quota is used up if the last hour's growth goes on; infinite where it does not grow."""
        limit, used = self._limit(load), load.tokens_per_minute
        if limit is None or used is None or math.isnan(sum(used)):
            return None
        now = math.floor(totals.clock / TOKENS.slot_s)
        slots = {slot: sums for slot, sums in totals.slots(TOKENS).items() if slot < now}
        if not slots:
            return None
        at = np.arange(min(slots), now)
        if len(at) < FEWEST:
            return None
        tokens = [
            float(slots[s].values[slots[s].keys == load.number].sum()) if s in slots else 0.0 for s in at.tolist()
        ]
        growth, _ = np.polyfit(at * TOKENS.slot_s - totals.clock, np.array(tokens) / TOKENS.slot_s * 60, 1)
        left = quota.exhausted_in(sum(used), float(growth), limit)
        return math.inf if left is None else left


METER = Limits
