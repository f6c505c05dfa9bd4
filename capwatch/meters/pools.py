"""Each pool: the work it gets, and what that needs of replicas, memory and patience."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.capacity.balance import imbalance
from capwatch.capacity.bursts import retry_amplification
from capwatch.config.schema import Config
from capwatch.ledger import POOL, Gathering, Totals
from capwatch.ledger.series import Series
from capwatch.load import arrivals, memory, promises, waiting
from capwatch.load.pools import Load, loads, of
from capwatch.load.shown import Gauge, by_name, by_pool
from capwatch.load.tables import ARRIVED, WORK
from capwatch.record import Bools, Floats, zeroed
from capwatch.seen import Seen


class Pools:
    """Contract 4.5, but for what has a file of its own."""

    tables = (WORK, ARRIVED)
    sketches = ()
    followers = ()

    def __init__(self, config: Config) -> None:
        self._config = config

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add what reached the replicas: everything but response-cache hits."""
        rows = np.flatnonzero(seen.timely & ~seen.batch.cache_hit)
        batch, cost = seen.batch, seen.cost.total[rows]
        pools = seen.pool[rows]
        served, waited = (batch["prefill_s"] + batch["decode_s"])[rows], batch["queue_s"][rows]
        tokens = (batch["prompt_tokens"] + batch["output_tokens"])[rows]
        columns: dict[str, Floats | Bools] = {
            "requests": np.ones(len(rows)),
            "resent": seen.again[rows],
            "retries": zeroed(batch["retries"][rows]),
            "charged": ~np.isnan(cost),
            "cost": cost,
            "cost_squared": cost**2,
            "prompt_tokens": batch["prompt_tokens"][rows],
            "output_tokens": batch["output_tokens"][rows],
            "served": ~np.isnan(served),
            "served_s": served,
            "held_s": np.where(np.isnan(tokens), np.nan, served),
            "held_token_s": tokens * served,
            "waited": ~np.isnan(waited),
            "late": waited > self._budgets(seen, into)[rows],
        }
        into.add_slots(WORK, seen.slot[rows], pools, *(columns[name].astype(np.float64) for name in WORK.columns))
        arrivals.book(into, pools, batch["started_at"][rows])

    def _budgets(self, seen: Seen, into: Gathering) -> Floats:
        """The wait budget of each request, s."""
        pools = of(self._config)
        numbers = np.array([into.names.id(POOL.name, pool.name) for pool in pools])
        budgets = np.array([pool.wait_budget for pool in pools])
        order = np.argsort(numbers)
        place = order[np.searchsorted(numbers[order], seen.groups.pool).clip(0, len(order) - 1)]
        return np.where(numbers[place] == seen.groups.pool, budgets[place], np.inf)[seen.groups.of]

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        found = list(loads(self._config, totals))
        yield from by_pool(found, SHOWN)
        yield from by_name(m.STAGE_CAPACITY_RPS, found, promises.stages)


def _amplification(load: Load) -> float | None:
    unique = load.work["requests"] - load.work["resent"]
    return retry_amplification(unique + load.work["retries"], unique)


def _imbalance(load: Load) -> float | None:
    running = load.engines["running"]
    return imbalance(running[~np.isnan(running)])


SHOWN: Final[Mapping[m.Metric, Gauge]] = {
    m.UTILISATION_RATIO: promises.used,
    m.REPLICAS: lambda load: load.replicas,
    m.REPLICAS_NEEDED: promises.needed,
    m.HEADROOM_REPLICAS: promises.headroom,
    m.HPA_DESIRED_REPLICAS: promises.hpa,
    m.KV_DEMAND_TOKENS: memory.demand,
    m.KV_DEMAND_RATIO: memory.demand_ratio,
    m.ARRIVAL_CV2: lambda load: load.arrival_cv2,
    m.SERVICE_CV2: lambda load: load.service_cv2,
    m.EXPECTED_WAIT_SECONDS: waiting.expected,
    m.EXPECTED_WAIT_PEAKED_SECONDS: waiting.peaked,
    m.LATE_SHARE_RATIO: waiting.late,
    m.TOKENS_PER_MINUTE: lambda load: load.tokens_per_minute,
    m.RETRY_AMPLIFICATION_RATIO: _amplification,
    m.USABLE_RPS: promises.usable,
    m.ALLOWED_UTILISATION_RATIO: promises.allowed,
    m.LOAD_IMBALANCE_RATIO: _imbalance,
    m.BACKLOG_TOKENS: waiting.backlog,
}
METER = Pools
