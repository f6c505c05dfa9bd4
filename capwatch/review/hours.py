"""The work of one pool by the hour: sums and sketches per tenant, route, model and class, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from capwatch.keep.slot import Slot
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES, OUTCOME_COLUMNS, PARTS
from capwatch.record import Bools, Floats, Ints, Texts
from capwatch.sketch import CELL_BITS, bucket_of, gather, middle

PLACE: Final = {name: place for place, name in enumerate(COLUMNS)}
_OUTCOMES: Final = [PLACE[name] for name in OUTCOME_COLUMNS]
_WHOLE: Final = ("prompt_tokens", "output_tokens")


@dataclass(frozen=True)
class Hours:
    """Rows of one hour and one tenant, route, model, pool and class each.

    Attributes:
        at: int64[n], begin of the hour, s since the epoch.
        labels: `tenant`, `route`, `model`, `pool`, `class`, n codes each.
        values: float64[n, columns of `COLUMNS`].
        row, measure, bucket, count: int64[m] each, the sketches: so many values of a measure of a row.
    """

    at: Ints
    labels: Mapping[str, Texts]
    values: Floats
    row: Ints
    measure: Ints
    bucket: Ints
    count: Ints

    def __len__(self) -> int:
        return len(self.at)

    @classmethod
    def of(cls, slots: Iterable[Slot], *, sketches: bool = True) -> Hours:
        """Join slots of an hour each, in order."""
        at, values, names, cells, first = [], [], [], [], 0
        for slot in slots:
            at.append(np.full(len(slot.names), slot.at, np.int64))
            values.append(slot.values)
            names += slot.names
            if sketches:
                keys, counts = slot.cells.arrays()
                series = keys >> CELL_BITS
                row, measure = (series >> MEASURE.bits) + first, series & ((1 << MEASURE.bits) - 1)
                cells.append((row, measure, bucket_of(keys), counts))
            first += len(slot.names)
        columns = list(zip(*names, strict=True)) or [()] * len(PARTS)
        nothing = np.empty(0, np.int64)
        found = [np.concatenate([nothing, *part]) for part in zip(*cells, strict=True)] or [nothing] * 4
        return cls(
            np.concatenate([nothing, *at]),
            {axis.name: _coded(column) for axis, column in zip(PARTS, columns, strict=True)},
            np.concatenate([np.empty((0, len(COLUMNS))), *values]),
            *found,
        )

    def take(self, kept: Bools) -> Hours:
        """Some of the rows, by mask."""
        place = np.cumsum(kept) - 1
        mine = kept[self.row] if len(self.row) else np.zeros(0, np.bool_)
        return Hours(
            self.at[kept],
            {name: Texts(column.codes[kept], column.names) for name, column in self.labels.items()},
            self.values[kept],
            place[self.row[mine]],
            self.measure[mine],
            self.bucket[mine],
            self.count[mine],
        )

    def between(self, since: float, until: float) -> Hours:
        """The hours that begin from ``since`` to before ``until``."""
        return self.take((self.at >= since) & (self.at < until))

    def where(self, label: str, name: str) -> Hours:
        """Those of one tenant, route, model, pool or class."""
        column = self.labels[label]
        named = np.array([one == name for one in column.names], np.bool_)
        return self.take(named[column.codes] if len(self) else np.zeros(0, np.bool_))

    def names(self, label: str) -> list[str]:
        """What occurs of a label, in order."""
        column = self.labels[label]
        return sorted(str(column.names[code]) for code in np.unique(column.codes).tolist())

    def sum(self, *columns: str) -> float:
        """The sum of some columns over all rows."""
        return float(self.values[:, [PLACE[name] for name in columns]].sum())

    @property
    def requests(self) -> float:
        """Requests of all rows."""
        return float(self.requests_by_row.sum())

    @property
    def hits(self) -> float:
        """Answers of the gateway's response cache: they cost nothing."""
        return self.sum("goodput_cache_hit")

    def told(self, measure: str) -> float:
        """How many requests tell a measure of `MEASURES`."""
        return float(self.count[self.measure == MEASURES.index(measure)].sum())

    @cached_property
    def charged_by_row(self) -> Floats:
        """Requests of each row that tell tokens and were no cache hits: those that cost something.

        Where only some of the cache hits tell tokens, they are taken to be all.
        """
        told = np.maximum(*(self.told_by_row(name) for name in _WHOLE))
        return np.minimum(told, self.requests_by_row - self.values[:, PLACE["goodput_cache_hit"]])

    @cached_property
    def charged(self) -> float:
        """Of all rows."""
        return float(self.charged_by_row.sum())

    @property
    def cost(self) -> float:
        """Replica-seconds of all rows."""
        return self.sum("cost_prefill", "cost_decode")

    def quantiles(self, measure: str, qs: Sequence[float]) -> list[float] | None:
        """Quantiles of a measure over all rows, within 0.55 %; None where no request tells it."""
        mine = self.measure == MEASURES.index(measure)
        if not mine.any():
            return None
        shift = int(self.bucket.min())
        buckets, counts = gather(self.bucket[mine] - shift, self.count[mine])
        values = middle(buckets + shift, integers=measure in _WHOLE)
        ends = np.cumsum(counts)
        ranks = np.ceil(np.asarray(qs) * ends[-1] - 1e-9).clip(1, ends[-1])
        return [float(one) for one in values[np.searchsorted(ends, ranks)]]

    def mean(self, measure: str) -> float | None:
        """Mean of a measure from its sketch, within 0.55 %; None where no request tells it."""
        mine = self.measure == MEASURES.index(measure)
        if not mine.any():
            return None
        values = middle(self.bucket[mine], integers=measure in _WHOLE)
        return float((values * self.count[mine]).sum() / self.count[mine].sum())

    def over(self, measure: str, bound: float) -> float | None:
        """Share of the requests that tell a measure and have more than a bound, within the grid."""
        mine = self.measure == MEASURES.index(measure)
        if not mine.any():
            return None
        counts = self.count[mine]
        return float(counts[middle(self.bucket[mine]) > bound].sum() / counts.sum())

    def by_hour(self, value: Callable[[Hours], Floats]) -> tuple[Ints, Floats]:
        """(hours ascending, sum of value[n] over the rows of each)."""
        hours, of = np.unique(self.at, return_inverse=True)
        return hours, np.bincount(of, value(self), len(hours)).astype(np.float64)

    def told_by_row(self, measure: str) -> Floats:
        """How many requests of each row tell a measure."""
        mine = self.measure == MEASURES.index(measure)
        return np.bincount(self.row[mine], self.count[mine], len(self)).astype(np.float64)

    @property
    def cost_by_row(self) -> Floats:
        """Replica-seconds of each row."""
        cost: Floats = self.values[:, [PLACE["cost_prefill"], PLACE["cost_decode"]]].sum(axis=1)
        return cost

    @cached_property
    def requests_by_row(self) -> Floats:
        """Requests of each row."""
        requests: Floats = self.values[:, _OUTCOMES].sum(axis=1)
        return requests


def _coded(values: Sequence[str]) -> Texts:
    """Names as they are: a tenant may be called `none`."""
    vocabulary: dict[str | None, int] = {}
    codes = [vocabulary.setdefault(name, len(vocabulary)) for name in values]
    return Texts(np.array(codes, np.int64), list(vocabulary))
