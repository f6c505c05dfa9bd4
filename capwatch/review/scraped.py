"""What gauges of a server tell of a pool beside its requests: the engines, by the ends of hours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.observed.columns import Columns

EXPRESSIONS: Final = {
    "in flight": f"sum by (pool) ({m.INFLIGHT_MEASURED.name})",
    "in flight by λW": f'sum by (pool) ({m.INFLIGHT_LITTLES_LAW.name}{{phase=~"queue|prefill|decode"}})',
    "replicas": f'sum by (pool) ({m.ENGINE_STATE.name}{{state!="unknown"}})',
    "attempts": f"max by (pool) ({m.RETRY_AMPLIFICATION_RATIO.name}) and on() count({m.RETRIES.name})",
    "starts": f"max by (pool, phase) ({m.COLD_START_SECONDS.name})",
}


def shown(told: Mapping[str, Columns]) -> dict[str, dict[str, float]]:
    """By pool, of answers to `EXPRESSIONS`: in flight, replicas and retries as means, and the newest start."""
    found: dict[str, dict[str, float]] = {}
    columns = {what: one.by("pool") for what, one in told.items()}
    for (pool,), counted in columns["in flight"].items():
        law = columns["in flight by λW"].get((pool,), np.full(len(counted), np.nan))
        both = np.isfinite(counted) & np.isfinite(law)
        if both.any():
            means = (float(one[both].mean()) for one in (counted, law))
            mine = found.setdefault(pool, {"in_flight_hours": float(both.sum())})
            mine |= zip(("in_flight_measured", "in_flight_law"), means, strict=True)
    for (pool,), column in columns["replicas"].items():
        heard = column[np.isfinite(column)]
        if len(heard):
            mean, least, most = (float(value) for value in (heard.mean(), heard.min(), heard.max()))
            found.setdefault(pool, {}).update(
                replicas_heard=mean, replicas_fewest=least, replicas_most=most, hours_heard=float(len(heard))
            )
    for (pool,), column in columns["attempts"].items():
        if np.isfinite(column).any():
            found.setdefault(pool, {})["retry_amplification_ratio"] = float(np.nanmean(column))
    for (pool, phase), column in told["starts"].by("pool", "phase").items():
        known = column[np.isfinite(column)]
        if len(known):
            found.setdefault(pool, {})[f"start_{phase}_s"] = float(known[-1])
    return found
