"""Who asked for what in the last minutes: the table of tenants and routes of the page, from the open rollups."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from capwatch.daemon.slots import SPAN, Open, by_tenant_and_route, ratio
from capwatch.web.now import Recent

MOST_ROWS: Final = 1000
"""200 kB; the rest are the cheapest."""
_QUANTILES: Final = (
    *((name, q) for name in ("prompt_tokens", "output_tokens") for q in (0.5, 0.95, 0.99)),
    *(("ttft_s", q) for q in (0.5, 0.95)),
    ("tpot_s", 0.95),
    ("duration_s", 0.95),
)
COLUMNS: Final = (
    *("pool", "tenant", "route", "rate", "cost", "cost_share", "ok", "goodput"),
    *(f"{name}_p{100 * q:.0f}" for name, q in _QUANTILES),
)
"""Requests/s, replica-seconds per request, share of the cost of all, share that ended well, goodput, percentiles."""


def recent(rollups: Open, clock: float) -> Recent:
    """The rollup of these minutes and the one before it, by pool, tenant and route."""
    since = (math.floor(clock / SPAN) - 1) * SPAN
    slots = [slot for slot in rollups.slots() if since <= slot.at <= clock]
    if not slots:
        return Recent(columns=COLUMNS)
    one = by_tenant_and_route(slots)
    cost = one.cost()
    figures = np.column_stack(
        [
            one.requests() / (clock - slots[0].at or 1.0),
            ratio(cost, one.charged()),
            ratio(cost, np.full(len(cost), cost.sum())),
            ratio(one.ok(), one.requests()),
            one.goodput(),
            *(one.quantile(name, q) for name, q in _QUANTILES),
        ]
    )
    order = np.argsort(-cost, kind="stable")
    rows = [[*one.names[row], *_rounded(figures[row])] for row in order[:MOST_ROWS].tolist()]
    return Recent(
        since=float(slots[0].at), until=clock, columns=COLUMNS, rows=rows, more=max(0, len(order) - MOST_ROWS)
    )


def _rounded(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float | None]:
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values.tolist()]
