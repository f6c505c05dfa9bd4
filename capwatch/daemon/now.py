"""Each pool as it is now, for the page: the same figures as on `/metrics`, by the same formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.drift.event import DIMENSIONS, EFFECTS
from capwatch.fleet import GAUGES
from capwatch.ledger import ENGINE, POOL, Totals
from capwatch.load import memory, promises, waiting
from capwatch.load.pools import Load, loads
from capwatch.load.tables import ENGINES, FLOW
from capwatch.meters.drift import CONTRIBUTIONS, STATE, VALUE
from capwatch.meters.engine import COUNTS
from capwatch.web.now import DriftNow, EngineNow, Part, PoolNow

LEAST_S: Final = 300.0
"""The gauges tell five minutes at least: of a younger drift they also see the time before it."""


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
        drift=_drift(told, load.number, totals),
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


def _drift(told: Mapping[str, float | None], pool: int, totals: Totals) -> DriftNow | None:
    """The active drift by the gauges that `/metrics` shows of it."""
    before, after, started = told.get("before"), told.get("after"), told.get("started")
    if started is None or totals.clock - started < LEAST_S:
        return None
    effects = {name: value for name in EFFECTS if (value := told.get(name)) is not None}
    if not (told.get("up") or told.get("down")) or before is None or after is None or len(effects) < len(EFFECTS):
        return None
    keys, values = totals.rows(CONTRIBUTIONS)
    pools, dimensions, numbers = CONTRIBUTIONS.unpack(keys)
    names = totals.names.texts(VALUE.name)
    parts = [
        Part(
            dimension=DIMENSIONS[int(dimensions[row])],
            value=names.get(int(numbers[row]), "unknown"),
            effect=EFFECTS[column],
            replica_seconds=float(values[row, column]),
        )
        for row, column in np.argwhere(~np.isnan(values) & (pools == pool)[:, None]).tolist()
    ]
    parts.sort(key=lambda part: -abs(part.replica_seconds))
    return DriftNow(cost_before=before, cost_after=after, effects=effects, contributions=parts)


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
