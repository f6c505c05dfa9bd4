"""The engines: what each replica last told, preemptions and restarts, and requests in flight as they measure them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.fleet import GAUGES, News
from capwatch.ledger import ENGINE, POOL, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain, spread
from capwatch.load.tables import ENGINES, POOLS
from capwatch.record import Floats, Ints
from capwatch.seen import Seen

METRICS: Final = (
    m.ENGINE_RUNNING_REQUESTS,
    m.ENGINE_WAITING_REQUESTS,
    m.ENGINE_KV_CACHE_UTILISATION_RATIO,
    m.ENGINE_KV_CACHE_CAPACITY_TOKENS,
    m.ENGINE_PREFIX_HIT_RATIO,
    m.ENGINE_PROMPT_TOKENS_PER_SECOND,
    m.ENGINE_OUTPUT_TOKENS_PER_SECOND,
)
"""The metric of each of `GAUGES`."""
COUNTS = Table((POOL, ENGINE), "engine_counts", ("preemptions", "restarts"))
COLD_STARTS = Table((POOL,), "cold_starts", m.START_PHASES, level=True)
RECOMPUTED = Table((POOL,), "recomputed", ("tokens",))


class Engines:
    """Contract 4.3, and requests in flight as the engines measure them now."""

    tables = (ENGINES, COUNTS, RECOMPUTED, COLD_STARTS)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Requests tell nothing of it."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(ENGINES)
        for column, metric in enumerate(METRICS):
            yield plain(metric, ENGINES, keys, values[:, column])
        states = np.equal.outer(values[:, -1], np.arange(len(m.ENGINE_STATES))).astype(np.float64)
        yield spread(m.ENGINE_STATE, ENGINES, keys, states, m.ENGINE_STATES)
        counts = totals.rows(COUNTS)
        yield plain(m.ENGINE_PREEMPTIONS, COUNTS, counts[0], counts[1][:, 0])
        yield plain(m.ENGINE_RESTARTS, COUNTS, counts[0], counts[1][:, 1])
        yield plain(m.RECOMPUTED_TOKENS, RECOMPUTED, *totals.rows(RECOMPUTED))
        starts = totals.rows(COLD_STARTS)
        yield spread(m.COLD_START_SECONDS, COLD_STARTS, *starts, m.START_PHASES)
        pools, now = _by_pool(keys, values[:, [GAUGES.index("waiting"), GAUGES.index("running")]])
        yield spread(m.INFLIGHT_MEASURED, POOLS, pools, now, m.MEASURED_PHASES)


def _by_pool(keys: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Sums over the replicas of each pool; a pool none of whose replicas tells a value has none."""
    pools, of = np.unique(ENGINES.ids(keys, POOL), return_inverse=True)
    columns = []
    for column in values.T:
        told = ~np.isnan(column)
        summed = np.bincount(of[told], column[told], len(pools))
        columns.append(np.where(np.bincount(of[told], minlength=len(pools)) > 0, summed, np.nan))
    return pools, np.stack(columns, axis=1)


def book(into: Gathering, news: News) -> None:
    """Book what changed of a replica."""
    pool = into.names.id(POOL.name, news.pool)
    key = np.atleast_1d(ENGINES.pack(pool, into.names.id(ENGINE.name, news.engine)))
    replica = news.replica
    row = [replica.values.get(name, np.nan) for name in GAUGES] + [float(m.ENGINE_STATES.index(replica.state))]
    into.set(ENGINES, key, *(np.array([value]) for value in row))
    into.add(COUNTS, key, np.array([news.preemptions]), np.array([news.restarts]))


def book_recomputed(into: Gathering, pool: int, tokens: float | None) -> None:
    """Book tokens that an engine of a pool computed once more; None where it does not tell them."""
    if tokens is not None:
        into.add(RECOMPUTED, np.array([pool]), np.array([tokens]))


def book_cold_start(into: Gathering, pool: str, reached: Mapping[str, float]) -> None:
    """Set how long the newest start of a pool has taken to each phase; what it has not reached goes."""
    key = np.array([into.names.id(POOL.name, pool)])
    into.set(COLD_STARTS, key, *(np.array([reached.get(phase, np.nan)]) for phase in m.START_PHASES))


def METER(config: Config) -> Engines:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Engines()
