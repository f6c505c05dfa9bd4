"""Each pool as it is now, for the page: the same figures as on `/metrics`, by the same formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.fleet import GAUGES
from capwatch.ledger import ENGINE, POOL, Totals
from capwatch.load import memory, promises, waiting
from capwatch.load.pools import Load, loads
from capwatch.load.tables import ENGINES, FLOW
from capwatch.meters.drift import STATE
from capwatch.meters.engine import COUNTS
from capwatch.web.now import EngineNow, PoolNow


def pools(config: Config, totals: Totals) -> list[PoolNow]:
    """The pools that have had requests, in the order of the configuration."""
    return [_pool(load, totals) for load in loads(config, totals) if totals.row(FLOW, load.number).any()]


def _pool(load: Load, totals: Totals) -> PoolNow:
    keys, values = totals.rows(STATE)
    seen = values[keys == load.number]
    told = dict(zip(STATE.columns, map(_known, seen[0].tolist()), strict=True)) if len(seen) else {}
    predicted, measured = waiting.late(load)
    learning = told.get("learning")
    tokens, ratio = memory.demand(load), memory.demand_ratio(load)
    return PoolNow(
        name=load.pool.name,
        assumed=load.pool.assumed,
        rate=load.rate,
        cost=load.mean_cost,
        cost_reference=told.get("before"),
        learning=None if learning is None else bool(learning),
        score=told.get("score"),
        utilisation=promises.used(load),
        target=load.pool.target_utilisation,
        replicas=load.replicas,
        needed=_by_name(m.PROMISES, promises.needed(load)),
        headroom=_by_name(m.FAILURES, promises.headroom(load)),
        expected_wait_s=_known(waiting.expected(load)),
        wait_budget_s=load.pool.wait_budget,
        late_predicted=_known(predicted),
        late_measured=_known(measured),
        kv_demand_ratio=ratio,
        kv_room=tokens / ratio if tokens and ratio else None,
        in_flight=_by_name(m.PHASES, load.in_flight.tolist()),
        engines=_engines(load, totals),
    )


def _engines(load: Load, totals: Totals) -> list[EngineNow]:
    """The replicas of a pool that have ever been heard of, by name."""
    keys, values = totals.rows(ENGINES)
    counted = dict(zip(*(column.tolist() for column in totals.rows(COUNTS)), strict=True))
    names = totals.names.texts(ENGINE.name)
    found = []
    for row in np.flatnonzero(ENGINES.ids(keys, POOL) == load.number).tolist():
        told = dict(zip(GAUGES, map(_known, values[row].tolist()), strict=False))
        preemptions, restarts = counted.get(int(keys[row]), (0.0, 0.0))
        found.append(
            EngineNow(
                name=names.get(int(ENGINES.ids(keys[row : row + 1], ENGINE)[0]), "unknown"),
                state=m.ENGINE_STATES[int(values[row, -1])],
                running=told["running"],
                waiting=told["waiting"],
                kv_utilisation=told["kv_utilisation"],
                preemptions=preemptions,
                restarts=restarts,
            )
        )
    return sorted(found, key=lambda one: one.name)


def _by_name(names: Sequence[str], values: Sequence[float] | None) -> Mapping[str, float | None]:
    return dict.fromkeys(names) if values is None else dict(zip(names, map(_known, values), strict=True))


def _known(value: float | None) -> float | None:
    """A number that can be shown: what is not known and what is infinite is None."""
    return None if value is None or not math.isfinite(value) else value
