"""Sums of ten seconds per tenant, route and class: all that the detector keeps of requests.

They are plain values that merge by addition, so that a history of them serves to fit a model again at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from capwatch.drift.rows import Rows
from capwatch.record import Bools, Floats, Ints

TICK_S: Final = 10
HOUR: Final = 3600 // TICK_S
"""Ticks of an hour."""
DAY: Final = 24 * HOUR
SUMS: Final = (
    *("n", "prompt", "computed", "output", "cost", "log_computed", "log_output", "log_ratio", "log_cost"),
    *("root_cost", "log_computed2", "log_output2", "log_ratio2", "log_cost2", "cost2", "waited", "wait"),
)
"""Sums over the requests of a cell; the ratio is that of computed to all prompt tokens, `waited` counts those whose
wait is known, names ending in 2 are of squares."""
COLUMN: Final = {name: i for i, name in enumerate(SUMS)}


@dataclass(frozen=True, slots=True)
class Ticks:
    """Cells in the order of (tick, tenant, route, class); names are codes of the caller's tables."""

    tick: Ints
    """Event time of the cell's requests // 10 s."""
    tenant: Ints
    route: Ints
    klass: Ints
    sums: Floats
    """float64[cells, len(SUMS)]."""

    def __len__(self) -> int:
        return len(self.tick)

    def __getitem__(self, name: str) -> Floats:
        """One column of the sums."""
        column: Floats = self.sums[:, COLUMN[name]]
        return column

    @classmethod
    def empty(cls) -> Ticks:
        """No cells."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, none, np.empty((0, len(SUMS))))

    @classmethod
    def of(cls, rows: Rows, prefill_rate: float, decode_rate: float) -> Ticks:
        """Sum requests with token counts; those without are left out.

        Args:
            rows: the requests, resends left out.
            prefill_rate: tokens/s that a replica computes of prompts.
            decode_rate: tokens/s that a replica puts out.
        """
        rows = rows.take(rows.known) if not rows.known.all() else rows
        prompt, output, computed = np.maximum(1.0, rows.prompt), np.maximum(1.0, rows.output), rows.computed
        cost = computed / prefill_rate + output / decode_rate
        prompt = np.maximum(prompt, computed)
        log_computed, log_output, log_cost = np.log(computed), np.log(output), np.log(cost)
        log_ratio = log_computed - np.log(prompt)
        told = np.isfinite(rows.wait)
        values = (
            *(None, prompt, computed, output, cost, log_computed, log_output, log_ratio, log_cost),
            *(np.sqrt(cost), log_computed**2, log_output**2, log_ratio**2, log_cost**2, cost**2),
            *(told, np.where(told, rows.wait, 0.0)),
        )
        tick = (rows.at // TICK_S).astype(np.int64)
        return _summed((tick, rows.tenant, rows.route, rows.klass), values)

    @classmethod
    def merge(cls, parts: Sequence[Ticks]) -> Ticks:
        """Cells of the same tick and names add up."""
        if not parts:
            return cls.empty()
        names = ("tick", "tenant", "route", "klass")
        whole = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
        sums = np.concatenate([part.sums for part in parts])
        return _summed((whole[0], whole[1], whole[2], whole[3]), tuple(sums.T))

    @classmethod
    def join(cls, parts: Sequence[Ticks]) -> Ticks:
        """Cells of stretches that follow each other."""
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        return cls(**{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)})

    def between(self, first: int, last: int) -> Ticks:
        """The cells of ticks first ≤ tick < last; their arrays are views."""
        begin, end = np.searchsorted(self.tick, (first, last))
        return Ticks(**{one.name: getattr(self, one.name)[begin:end] for one in fields(self)})

    def take(self, chosen: Ints | Bools) -> Ticks:
        """Some cells, by mask or index."""
        return Ticks(**{one.name: getattr(self, one.name)[chosen] for one in fields(self)})

    def hours(self) -> Ticks:
        """The same sums by hour; `tick` is then the first of the hour."""
        hour = replace(self, tick=self.tick // HOUR * HOUR)
        return Ticks.merge([hour])


def added(place: Ints, values: Floats | None, *shape: int) -> Floats:
    """Values added up by place, as an array of a shape; None stands for 1 each."""
    sums = np.bincount(place, values, int(np.prod(shape)))
    return sums.reshape(shape).astype(np.float64, copy=False)


def _summed(names: tuple[Ints, Ints, Ints, Ints], values: Sequence[Floats | None]) -> Ticks:
    """Add up the rows with equal names; a value None stands for 1 in each row."""
    if not len(names[0]):
        return Ticks.empty()
    lows = [int(column.min()) for column in names]
    sizes = [int(column.max()) - low + 1 for column, low in zip(names, lows, strict=True)]
    key = names[0] - lows[0]
    for column, low, size in zip(names[1:], lows[1:], sizes[1:], strict=True):
        key = key * size + (column - low)
    keys, of = np.unique(key, return_inverse=True)
    sums = np.empty((len(keys), len(values)))
    for i, value in enumerate(values):
        sums[:, i] = np.bincount(of, value, len(keys))
    unpacked = []
    for low, size in zip(lows[:0:-1], sizes[:0:-1], strict=True):
        keys, rest = np.divmod(keys, size)
        unpacked.append(rest + low)
    tenant, route, klass = unpacked[::-1]
    return Ticks(keys + lows[0], tenant, route, klass, sums)
