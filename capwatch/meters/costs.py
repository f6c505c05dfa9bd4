"""Cost in replica-seconds: by tenant, route and pool, what the cache saved, what was abandoned, who holds how much."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capwatch import metrics as m
from capwatch.capacity.balance import fairness
from capwatch.config.schema import Config
from capwatch.cost import GIVEN_UP
from capwatch.ledger import OTHER, POOL, ROUTE, TENANT, Gathering, Keys, Table, Totals
from capwatch.ledger.series import Series, plain, seldom, spread
from capwatch.seen import Seen

COST = Table((TENANT, ROUTE, POOL), "cost", (*m.COST_PHASES, "saved"), retires={"cost": m.COST_PHASES})
ABANDONED = Table((POOL,), "abandoned", ("cost",))
SHARES = Table((POOL, TENANT), "shares", ("cost",), slot_s=300, slots=13)
"""Five-minute slots: the current one and the twelve before are the last hour."""

_BY_POOL = Keys((POOL,))


class Costs:
    """Contract 4.1: cost, savings of the prefix cache, abandoned work, shares of the dearest tenants."""

    tables = (COST, ABANDONED, SHARES)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Charge the requests that tell token counts."""
        cost, groups = seen.cost, seen.groups
        into.add(COST, COST.pack(groups.tenant, groups.route, groups.pool), *map(groups.sums, cost))
        given_up = np.isin(seen.batch.outcome, GIVEN_UP)
        into.add(ABANDONED, groups.pool, groups.sums(np.where(given_up, cost.total, 0.0)))
        charged = seen.timely & ~np.isnan(cost.prefill)
        slots = (seen.event_at[charged] // SHARES.slot_s).astype(np.int64)
        keys = SHARES.pack(groups.pool, groups.tenant)[groups.of[charged]]
        into.add_slots(SHARES, slots, keys, cost.total[charged])

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(COST)
        yield spread(m.COST_REPLICA_SECONDS, COST, keys, seldom(values[:, :2]), m.COST_PHASES)
        yield plain(m.PREFILL_SAVED_REPLICA_SECONDS, COST, keys, seldom(values[:, 2]))
        keys, values = totals.rows(ABANDONED)
        yield plain(m.ABANDONED_REPLICA_SECONDS, ABANDONED, keys, values)
        yield from self._shares(totals)

    @staticmethod
    def _shares(totals: Totals) -> Iterable[Series]:
        """The dearest tenants' shares of each pool's cost, and how even they are; `other` counts but is nobody."""
        keys, values = totals.window(SHARES)
        pools, tenants = SHARES.unpack(keys)
        shown = np.unique(pools)
        shares, even = np.full((len(shown), len(m.RANKS)), np.nan), np.full(len(shown), np.nan)
        for row, pool in enumerate(shown):
            costs = values[pools == pool, 0]
            named = np.sort(costs[tenants[pools == pool] != OTHER])[::-1]
            if costs.sum() > 0:
                ranked = named[: len(m.RANKS)] / costs.sum()
                shares[row, : len(ranked)] = ranked
                even[row] = fairness(named) or np.nan
        yield spread(m.TENANT_SHARE_RATIO, _BY_POOL, shown, shares, m.RANKS)
        yield plain(m.TENANT_FAIRNESS_RATIO, _BY_POOL, shown, even)


def METER(config: Config) -> Costs:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Costs()
