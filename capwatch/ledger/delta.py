"""What changed: increments to tables and sketches, gathered batch by batch and frozen for one commit.

Increments are all there is: totals are the sum of deltas in order, live and after a restart, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from capwatch.ledger.names import Names
from capwatch.ledger.parting import of_pairs, retired
from capwatch.ledger.table import RETIRED, Sketch, Table
from capwatch.record import Floats, Ints
from capwatch.sketch import CELL_BITS, SLICE, SLICES, count, gather, series_of

K = TypeVar("K")
V = TypeVar("V")

DENSE = 4
"""Keys spread over at most this many times their number are counted in an array, which is cheaper than to sort them."""
LASTING = -(1 << 40)
"""The slot of values that count for life only: too late or too early for the window."""

LINE_BYTES: Final = 310
"""What increments take for each line, measured over traffic of all pairs; a checkpoint's own copies apart."""
SLOT_BYTES: Final = 1500
"""What a slot of time takes on its way, however few lines are in it: weeks with a line a minute are all slots."""


@dataclass(slots=True)
class Delta:
    """Increments since the delta before. Keys are sorted and unique in every part."""

    clock: float = 0.0
    """The event clock (s, epoch) at the end."""
    sums: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)
    """Table → (keys[n], values[n, columns])."""
    levels: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)
    """Table of levels → (keys[n], values[n, columns]), the last value set."""
    slots: dict[str, dict[int, tuple[Ints, Floats]]] = field(default_factory=dict)
    """Table by slots → slot → (keys, values)."""
    cells: dict[str, dict[int, tuple[Ints, Ints]]] = field(default_factory=dict)
    """Sketch → slot of 30 s → (cell keys, counts)."""
    names: list[tuple[str, int, str]] = field(default_factory=list)
    retired: list[tuple[int, int]] = field(default_factory=list)
    """(tenant, route) ids whose series went before anything that is in here was counted."""
    forgotten: list[tuple[str, int]] = field(default_factory=list)
    """(axis, id) of names that go; a route takes the series that are its alone with it."""


class Gathering:
    """Collects increments of many batches. Adding is cheap; equal keys are summed when frozen."""

    def __init__(self, names: Names, *, natives: bool = True) -> None:
        self._natives = natives
        self.names = names
        """Where new label texts get their ids; a delta carries the ids given since the one before."""
        self._tables: dict[str, Table] = {}
        self._clear()

    def _clear(self) -> None:
        self._sums: dict[str, list[tuple[Ints, Floats]]] = {}
        self._levels: dict[str, list[tuple[Ints, Floats]]] = {}
        self._slots: dict[str, list[tuple[Ints, Ints, Floats]]] = {}
        self._cells: dict[str, tuple[Sketch, list[tuple[Ints, Ints]]]] = {}
        self._retired: list[tuple[int, int]] = []
        self.slots = 0
        """Slots of all batches since the last freeze: each becomes an array of its own, however few rows it has."""

    def add(self, table: Table, keys: Ints, *columns: Floats | Ints) -> None:
        """Add a row to ``keys[n]`` (repeats allowed) of a table; a NaN adds nothing."""
        self._tables[table.name] = table
        self._sums.setdefault(table.name, []).append((keys, _stack(columns)))

    def set(self, table: Table, keys: Ints, *columns: Floats) -> None:
        """Set the row of ``keys[n]`` of a table of levels; NaN takes a value away."""
        self._levels.setdefault(table.name, []).append((keys, np.stack(np.broadcast_arrays(*columns), axis=1)))

    def add_slots(self, table: Table, slots: Ints, keys: Ints, *columns: Floats | Ints) -> None:
        """Add a row to ``keys[n]`` in ``slots[n]`` of a table by slots."""
        self._tables[table.name] = table
        if not len(slots):
            return
        part = _gathered(table, slots, keys, _stack(columns))
        self.slots += len(_cuts(part[0])) - 1
        self._slots.setdefault(table.name, []).append(part)

    def observe(self, sketch: Sketch, cells: Ints, slots: Ints) -> None:
        """Count one value in each of ``cells[n]`` (see `capwatch.sketch.pack`), in ``slots[n]``."""
        self._cells.setdefault(sketch.name, (sketch, []))[1].append((slots, cells))

    def retire(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let series of pairs go: what was gathered of them so far counts as retired, what follows is new."""
        gone = [*pairs]
        self._retired += gone
        for name, parts in [*self._sums.items()]:
            for place, (keys, values) in enumerate(parts):
                out = of_pairs(self._tables[name], keys, gone)
                if out.any():
                    parts[place] = (keys[~out], values[~out])
                    self.add(RETIRED, np.zeros(1, np.int64), *retired(self._tables[name], values[out]).T)
        for sketch, observed in self._cells.values():
            stay = [~of_pairs(sketch, series_of(cells), gone) for _, cells in observed]
            observed[:] = [(slots[rows], cells[rows]) for (slots, cells), rows in zip(observed, stay, strict=True)]

    def weight(self, lines: int) -> int:
        """About the bytes of what was gathered of so many lines, and of what becomes of it on its way."""
        return lines * LINE_BYTES + self.slots * SLOT_BYTES

    def add_to(self, other: Gathering) -> None:
        """Give everything gathered here to another gathering of the same names."""
        other._begin_with(self)
        self._clear()

    def _begin_with(self, first: Gathering) -> None:
        self._tables |= first._tables
        self._sums = _followed(first._sums, self._sums)
        self._levels = _followed(first._levels, self._levels)
        self._slots = _followed(first._slots, self._slots)
        for name, (sketch, parts) in first._cells.items():
            self._cells[name] = (sketch, [*parts, *self._cells.get(name, (sketch, []))[1]])
        self._retired = [*first._retired, *self._retired]
        self.slots += first.slots

    def _counted(self, clock: float, sketch: Sketch, parts: list[tuple[Ints, Ints]]) -> dict[int, tuple[Ints, Ints]]:
        """By slot, how often each cell occurs; what is not recent at this event time lasts, or goes."""
        slots = np.concatenate([slots for slots, _ in parts])
        cells = np.concatenate([cells for _, cells in parts])
        lasting = sketch.lasting and (self._natives or not sketch.native)
        if lasting and not sketch.recent:
            return {LASTING: count(cells)}
        if sketch.recent:
            near = slots > clock // SLICE - SLICES
            if lasting:
                slots = np.where(near, slots, LASTING)
            else:
                slots, cells = slots[near], cells[near]
        return _by_slot(sketch, slots, cells)

    def _open(self, clock: float, name: str) -> dict[int, tuple[Ints, Floats]]:
        """The slots of a table that anybody will look at: the history's all, others while they are in the window."""
        table, parts = self._tables[name], self._slots[name]
        slots, keys, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        if not table.closes:
            rows = slots >= table.oldest(clock)
            slots, keys, values = slots[rows], keys[rows], values[rows]
        if len(parts) > 1 and len(slots):
            slots, keys, values = _gathered(table, slots, keys, values)
        return {int(slots[a]): (keys[a:b], values[a:b]) for a, b in pairwise(_cuts(slots)) if b}

    def freeze(self, clock: float) -> Delta:
        """The delta of all that was added, and start anew."""
        delta = Delta(
            clock,
            {name: _summed(parts) for name, parts in self._sums.items()},
            {name: _latest(parts) for name, parts in self._levels.items()},
            {name: self._open(clock, name) for name in self._slots},
            {name: self._counted(clock, *parts) for name, parts in self._cells.items()},
            self.names.fresh(),
            self._retired,
            self.names.gone(),
        )
        self._clear()
        return delta


def _by_slot(sketch: Sketch, slots: Ints, cells: Ints) -> dict[int, tuple[Ints, Ints]]:
    """How often each cell occurs in each slot."""
    timed = slots[slots > LASTING]
    oldest = int(timed.min()) - 1 if len(timed) else 0
    shift = sketch.bits + CELL_BITS
    late = np.maximum(slots - oldest, 0)  # 0 stands for LASTING
    if int(late.max(initial=0)).bit_length() + shift > 62:
        return {int(slot): count(cells[slots == slot]) for slot in np.unique(slots)}
    keys, counts = count(late << shift | cells)
    slots = keys >> shift
    inner = keys & ((1 << shift) - 1)
    return {
        LASTING if slots[a] == 0 else int(slots[a]) + oldest: (inner[a:b], counts[a:b])
        for a, b in pairwise(_cuts(slots))
        if b
    }


def _cuts(slots: Ints) -> list[int]:
    """Where each slot begins, of slots in order, and the end."""
    return [0, *(np.flatnonzero(slots[1:] != slots[:-1]) + 1).tolist(), len(slots)]


def _stack(columns: tuple[Floats | Ints, ...]) -> Floats:
    stacked = np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.float64, copy=False)
    stacked[np.isnan(stacked)] = 0.0
    return stacked


def _followed(first: dict[K, list[V]], then: dict[K, list[V]]) -> dict[K, list[V]]:
    return {key: [*first.get(key, ()), *then.get(key, ())] for key in (*first, *then)}


def _latest(parts: list[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    keys, values = (np.concatenate(column)[::-1] for column in zip(*parts, strict=True))
    unique, first = np.unique(keys, return_index=True)
    return unique, values[first]


def _summed(parts: list[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    if len(parts) == 1 and (np.diff(parts[0][0]) > 0).all():
        return parts[0]
    return gather(np.concatenate([keys for keys, _ in parts]), np.concatenate([values for _, values in parts]))


def _gathered(table: Table, slots: Ints, keys: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """Sum the rows of equal keys in each slot: slots and keys ascending, sums."""
    oldest = int(slots.min())
    if (int(slots.max()) - oldest).bit_length() + table.bits > 62:
        order = np.lexsort((keys, slots))
        slots, keys = slots[order], keys[order]
        starts = np.flatnonzero(np.concatenate([[True], (slots[1:] != slots[:-1]) | (keys[1:] != keys[:-1])]))
        return slots[starts], keys[starts], np.add.reduceat(values[order], starts, axis=0)
    packed = (slots - oldest) << table.bits | keys
    width = int(packed.max()) + 1
    if width <= DENSE * len(packed):
        places = np.flatnonzero(np.bincount(packed, minlength=width))
        sums: Floats = np.stack([np.bincount(packed, column, width)[places] for column in values.T], axis=1)
        packed = places
    else:
        packed, sums = gather(packed, values)
    return (packed >> table.bits) + oldest, packed & ((1 << table.bits) - 1), sums.astype(np.float64, copy=False)
