"""What rollups of five minutes say, for the page: of each pool, and of each tenant and route in a pool."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.keep.past import KINDS
from capwatch.keep.slot import Names, Slot, made, merged
from capwatch.ledger import POOL, ROUTE, TENANT, Closed, Totals
from capwatch.ledger import Names as Known
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES, OUTCOME_COLUMNS, PARTS, ROLLUPS, SKETCHES
from capwatch.metrics import MISSED_REASONS
from capwatch.record import Floats
from capwatch.sketch import CELL_BITS, Cells, bucket_of, middle, quantiles

SPAN: Final = int(ROLLUPS.slot_s)
_PLACE: Final = {axis.name: place for place, axis in enumerate(PARTS)}
_OUTCOMES: Final = [COLUMNS.index(name) for name in OUTCOME_COLUMNS]
_OK: Final = COLUMNS.index("outcome_ok")
_COST: Final = [COLUMNS.index(name) for name in ("cost_prefill", "cost_decode")]
_TOKENS: Final = [COLUMNS.index(name) for name in m.TOKEN_KINDS]
_GOOD: Final = COLUMNS.index("goodput_good")
_MISSED: Final = [COLUMNS.index(f"goodput_{reason}") for reason in MISSED_REASONS]
_PHASES: Final = [COLUMNS.index(name) for name in m.PHASES[:-1]]
_WHOLE: Final = [MEASURES.index(name) for name in ("prompt_tokens", "output_tokens")]
_UNEXPLAINED: Final = 0.0055
"""A residence that the sketch tells is that inexact; less than this of it is no phase of its own."""


@dataclass(frozen=True, slots=True)
class Open:
    """Slots that are not in the history yet, and the names that they are about; a copy, safe to read later."""

    closed: Sequence[Closed]
    names: Known

    def slots(self) -> list[Slot]:
        """As they will be kept, in order."""
        kind = KINDS["rollup"]
        found = [made(one, kind.names(self.names, one.sums.keys), kind.bits, kind.span) for one in self.closed]
        return sorted(found, key=lambda slot: slot.at)


def still_open(totals: Totals) -> Open:
    """The rollups that the totals hold: those that are open, and those that wait for the history. Quick."""
    reached = int(totals.clock // SPAN)
    cells = totals.rolling(SKETCHES)
    current = [
        Closed(ROLLUPS.name, slot, copy(sums), cells.get(slot, Cells()).copy())
        for slot, sums in totals.slots(ROLLUPS).items()
        if slot <= reached
    ]
    waiting = [one for one in totals.closed if one.table == ROLLUPS.name]
    return Open([*waiting, *current], totals.closed_names())


@dataclass(frozen=True, slots=True)
class Grouped:
    """Sums and sketches by group: a pool alone, or a pool with a tenant and a route."""

    names: Sequence[Names]
    values: Floats
    cells: Cells
    """The series is group << `MEASURE`.bits | measure."""

    def requests(self) -> Floats:
        """Finished requests of each group."""
        return self._total(_OUTCOMES)

    def ok(self) -> Floats:
        """Those of them that ended well."""
        return self.values[:, _OK]

    def cost(self) -> Floats:
        """Replica-seconds of each group."""
        return self._total(_COST)

    def charged(self) -> Floats:
        """Requests that tell tokens, which alone have a cost."""
        return np.maximum(*(self._told(measure) for measure in _WHOLE))

    def goodput(self) -> Floats:
        """Good requests over those that could be judged, NaN where none could."""
        good, missed = self.values[:, _GOOD], self._total(_MISSED)
        return ratio(good, good + missed)

    def quantile(self, measure: str, q: float) -> Floats:
        """A quantile of one of `MEASURES`, NaN where it is not told; within 0.55 %."""
        number = MEASURES.index(measure)
        series, values, _ = quantiles(self.cells, (q,), lambda of: np.isin(of & _MASK, _WHOLE))
        mine = series & _MASK == number
        found = np.full(len(self.names), np.nan)
        found[series[mine] >> MEASURE.bits] = values[mine, 0]
        return found

    def in_flight(self, seconds: float) -> Floats:
        """λW of each group by `m.PHASES`, of the requests that finished in so many seconds.

        What no phase explains is the residence, as the sketch tells it, less the phases.
        """
        explained = self.values[:, _PHASES]
        residence = self._sum("duration_s")
        other = residence - explained.sum(axis=1)
        other = np.where(other > _UNEXPLAINED * residence, other, 0.0)
        return np.column_stack([explained, other]) / seconds

    def tokens(self) -> Floats:
        """Prompt and output tokens of each group."""
        return self._total(_TOKENS)

    def _total(self, columns: list[int]) -> Floats:
        return np.asarray(self.values[:, columns].sum(axis=1))

    def _told(self, measure: int) -> Floats:
        """How many values of a measure each group has."""
        series, _, counts = quantiles(self.cells, (0.5,))
        mine = series & _MASK == measure
        told = np.bincount(series[mine] >> MEASURE.bits, counts[mine], len(self.names))
        return told.astype(np.float64)

    def _sum(self, measure: str) -> Floats:
        """The sum of a measure's values, by the middles of their buckets."""
        keys, counts = self.cells.arrays()
        series = keys >> CELL_BITS
        mine = series & _MASK == MEASURES.index(measure)
        sums = counts[mine] * middle(bucket_of(keys[mine]))
        return np.bincount(series[mine] >> MEASURE.bits, sums, len(self.names)).astype(np.float64)


_MASK: Final = (1 << MEASURE.bits) - 1


def by_pool(slots: Sequence[Slot]) -> Grouped:
    """All of some slots by pool."""
    return _grouped(slots, (POOL.name,))


def by_tenant_and_route(slots: Sequence[Slot]) -> Grouped:
    """All of some slots by pool, tenant and route."""
    return _grouped(slots, (POOL.name, TENANT.name, ROUTE.name))


def _grouped(slots: Sequence[Slot], axes: tuple[str, ...]) -> Grouped:
    places = [_PLACE[axis] for axis in axes]
    parts = [replace(slot, names=[tuple(name[place] for place in places) for name in slot.names]) for slot in slots]
    if not parts:
        return Grouped([], np.empty((0, len(COLUMNS))), Cells())
    whole = merged(parts, MEASURE.bits, parts[0].at, SPAN)
    return Grouped(whole.names, whole.values, whole.cells)


def ratio(part: Floats, whole: Floats) -> Floats:
    """Part over whole, NaN where that is 0."""
    found: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return found
