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
STARTED: Final = tuple(f"start_{phase}" for phase in m.START_PHASES)
FLEET = Table(
    (POOL,),
    "fleet",
    (
        *("heard_s", "in_flight_told_s", "in_flight_s", "kv_told_s", "kv_s"),
        *("preemptions", "restarts", "recompute_told", "recomputed", "came", "left"),
        *STARTED,
        *(f"{name}_s" for name in STARTED),
    ),
    slot_s=3600,
    slots=2,
    closes=True,
)
"""By the hour, for the history: what engines told, summed over the replicas of a pool.

heard_s: seconds in which they were heard; in_flight_s: requests waiting or running in them times seconds, over so many
seconds; kv_s: their share of KV memory times seconds; preemptions, restarts; recomputed: tokens computed once more,
told so many times; came: replicas heard for the first time, or again; left: those that answer no more, or fell silent
in the middle of work; start_…: starts that reached a phase, and the seconds from their begin to it.
"""


class Engines:
    """Contract 4.3, and requests in flight as the engines measure them now."""

    tables = (ENGINES, COUNTS, RECOMPUTED, COLD_STARTS, FLEET)
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


def book_hour(into: Gathering, news: News) -> None:
    """Book what changed of a replica in its hour."""
    held, seconds = news.held, news.seconds
    in_flight = held.get("running", np.nan) + held.get("waiting", np.nan)
    kv = held.get("kv_utilisation", np.nan)
    told = {
        "heard_s": seconds,
        "in_flight_told_s": seconds * (in_flight >= 0),
        "in_flight_s": seconds * in_flight if in_flight >= 0 else 0.0,
        "kv_told_s": seconds * (kv >= 0),
        "kv_s": seconds * kv if kv >= 0 else 0.0,
        "preemptions": news.preemptions,
        "restarts": news.restarts,
        "came": float(news.came),
        "left": float(news.left),
    }
    if any(told.values()):
        _in_hour(into, into.names.id(POOL.name, news.pool), news.at, told)


def _in_hour(into: Gathering, pool: int, at: float, told: Mapping[str, float]) -> None:
    row = (np.array([told.get(name, 0.0)]) for name in FLEET.columns)
    into.add_slots(FLEET, np.array([int(at // FLEET.slot_s)]), np.array([pool]), *row)


def book_recomputed(into: Gathering, pool: int, at: float, tokens: float | None) -> None:
    """Book tokens that an engine of a pool computed once more, now (s, epoch); None where it does not tell them."""
    if tokens is not None:
        into.add(RECOMPUTED, np.array([pool]), np.array([tokens]))
        _in_hour(into, pool, at, {"recompute_told": 1.0, "recomputed": tokens})


def book_reached(into: Gathering, pool: str, phase: str, at: float, *, first: bool, seconds: float) -> None:
    """Book that a start of a pool has reached a phase at a time (s, epoch).

    ``seconds`` are those after its begin; where it is not the ``first`` that tells so, those after the one before.
    """
    told = {f"start_{phase}": float(first), f"start_{phase}_s": seconds}
    _in_hour(into, into.names.id(POOL.name, pool), at, told)


def book_cold_start(into: Gathering, pool: str, reached: Mapping[str, float]) -> None:
    """Set how long the newest start of a pool has taken to each phase; what it has not reached goes."""
    key = np.array([into.names.id(POOL.name, pool)])
    into.set(COLD_STARTS, key, *(np.array([reached.get(phase, np.nan)]) for phase in m.START_PHASES))


def METER(config: Config) -> Engines:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Engines()
