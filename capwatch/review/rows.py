"""Rollups out of counters: rows of tenant, route and pool by the hour, and what they share of coarser series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from capwatch.keep.slot import Names, Slot
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES
from capwatch.observed.columns import Columns, buckets
from capwatch.record import Floats, Ints
from capwatch.review.calendar import HOUR
from capwatch.sketch import Cells, index, pack

ALL: Final = "all"
"""What a row is about whose model or class no metric tells together with its cost."""
PLACE: Final = {name: place for place, name in enumerate(COLUMNS)}


def rates(slots: Sequence[Slot]) -> dict[str, tuple[float | None, float | None]]:
    """Tokens a replica-second of prompts and answers, by pool."""
    sums: dict[str, Floats] = {}
    for slot in slots:
        for name, row in zip(slot.names, slot.values, strict=True):
            sums[name[3]] = sums.get(name[3], np.zeros(len(COLUMNS))) + row
    found = {}
    for pool, row in sums.items():
        pairs = (("prompt_computed", "cost_prefill"), ("output", "cost_decode"))
        prefill, decode = (
            float(row[PLACE[tokens]] / row[PLACE[cost]]) if row[PLACE[cost]] > 0 and row[PLACE[tokens]] > 0 else None
            for tokens, cost in pairs
        )
        found[pool] = (prefill, decode)
    return found


class Rows:
    """Rows of tenant, route and pool, by the hour."""

    def __init__(self, costs: Columns, requests: Columns, departures: Columns) -> None:
        at = next((one.at for one in (costs, requests) if len(one)), np.empty(0))
        self.hours = (at.astype(np.int64) - HOUR).tolist()
        pools = [pool for (pool,) in departures.by("pool")] or ["default"]
        weights = {key: float(np.nansum(column)) for key, column in costs.by("tenant", "route", "pool").items()}
        pairs = {key[:2] for key in weights}
        self.keys = sorted(weights) + sorted(
            (*pair, pools[0] if len(pools) == 1 else "unknown")
            for pair in requests.by("tenant", "route")
            if pair not in pairs
        )
        self._place = {key: row for row, key in enumerate(self.keys)}
        self._parts: dict[tuple[str, ...], list[tuple[int, float]]] = {}
        for row, key in enumerate(self.keys):
            self._parts.setdefault(key[:2], []).append((row, weights.get(key, 0.0)))
        self.values = np.zeros((len(self.keys), len(self.hours), len(COLUMNS)))
        self._cells: list[list[tuple[Ints, Ints]]] = [[] for _ in self.hours]

    def add(self, key: tuple[str, ...], column: str, values: Floats) -> None:
        """Add to one row; what no rollup has is passed over."""
        if key in self._place and column in PLACE and len(values) == len(self.hours):
            self.values[self._place[key], :, PLACE[column]] += np.nan_to_num(np.maximum(values, 0.0))

    def share(self, tenant: str, route: str, column: str, values: Floats) -> None:
        """Add what no metric tells by pool: by the cost that each pool has of this tenant and route."""
        parts = self._parts.get((tenant, route), [])
        whole = sum(weight for _, weight in parts)
        for row, weight in parts:
            self.add(self.keys[row], column, values * (weight / whole if whole else 1 / len(parts)))

    def spread(self, pool: str, column: str, values: Floats) -> None:
        """Add what is told of a whole pool, by the requests of its rows."""
        rows = [row for row, key in enumerate(self.keys) if key[2] == pool]
        weights = self._weights(rows)
        for row, weight in zip(rows, weights, strict=True):
            self.add(self.keys[row], column, values * weight)

    def _weights(self, rows: list[int]) -> Floats:
        """float64[rows, hours]: the part that each row has of the requests of all of them."""
        outcomes = [place for name, place in PLACE.items() if name.startswith("outcome_")]
        requests = self.values[rows][:, :, outcomes].sum(axis=2)
        whole = requests.sum(axis=0)
        even = np.full_like(requests, 1 / max(1, len(rows)))
        found: Floats = np.divide(requests, whole, out=even, where=whole > 0)
        return found

    def observe(self, measure: str, found: Columns) -> None:
        """Take a histogram of routes and pools."""
        if not len(found) or len(found.at) != len(self.hours):
            return
        for route, pool in found.by("route", "pool"):
            rows = [row for row, key in enumerate(self.keys) if key[1:] == (route, pool)]
            bounds, counts = buckets(found.where(route=route, pool=pool))
            if rows and len(bounds) > 1:
                self._observe(MEASURES.index(measure), rows, bounds, np.nan_to_num(counts))

    def _observe(self, measure: int, rows: list[int], bounds: Floats, counts: Floats) -> None:
        inside = np.maximum(0.0, np.diff(np.maximum.accumulate(counts, axis=0), axis=0, prepend=0.0))
        lower = np.concatenate([[bounds[0] / 2**0.25], bounds[:-1]])
        upper = np.where(np.isfinite(bounds), bounds, lower)
        places = index(np.sqrt(np.maximum(lower, 0.0) * upper))
        ends = np.cumsum(self._weights(rows), axis=0)
        series = np.array(rows, np.int64) << MEASURE.bits | measure
        for hour in np.flatnonzero(inside.sum(axis=0)).tolist():
            upto = np.rint(np.rint(inside[:, hour])[None, :] * ends[:, hour][:, None]).astype(np.int64)
            mine = np.diff(upto, axis=0, prepend=0)
            row, place = np.nonzero(mine > 0)
            self._cells[hour].append((pack(series[row], places[place]), mine[row, place]))

    def slots(self) -> Iterator[Slot]:
        """The hours in which anything was."""
        names: list[Names] = [(tenant, route, ALL, pool, ALL) for tenant, route, pool in self.keys]
        for place, hour in enumerate(self.hours):
            values = self.values[:, place]
            if values.any():
                cells = Cells()
                for keys, counts in self._cells[place]:
                    cells.add(keys, counts)
                yield Slot(hour, HOUR, names, values, cells)
