"""Layouts: how a state packed its keys and columns, so that a later version reads them as they were meant.

A key is ids side by side, each as wide as its axis, and an enumerated id is a place in a tuple: widths that grow, texts
that are put in between and columns that come all change what the same number means. So a state tells its layout, and
what it holds is moved into the present one: ids to their places, enumerated ones by texts, columns by names. That is
exact, or a `ForeignError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capwatch.ledger.delta import Delta
from capwatch.ledger.table import Keys, Sketch, Table
from capwatch.record import Floats, Ints
from capwatch.sketch import CELL_BITS, gather

Described = list[Any]
"""`[axes, columns]`; an axis is `[name, bits, values]`. Plain builtins, equal to what is read back."""
Layout = Mapping[str, Described]
"""By `tables/NAME` and `sketches/NAME`."""
TABLES, SKETCHES = "tables/", "sketches/"


class ForeignError(Exception):
    """What was written cannot be said in the present layout."""


def layout_of(tables: Iterable[Table], sketches: Iterable[Sketch]) -> Layout:
    """The layout of these tables and sketches."""
    found = {f"{TABLES}{table.name}": [_axes(table), list(table.columns)] for table in tables}
    return found | {f"{SKETCHES}{sketch.name}": [_axes(sketch), []] for sketch in sketches}


def _axes(keys: Keys) -> list[Any]:
    return [[axis.name, axis.bits, list(axis.values)] for axis in keys.axes]


def narrowed(layout: Layout, widths: Mapping[str, int]) -> Layout:
    """The same layout with other widths of some axes."""
    return {
        name: [[[axis, widths.get(axis, bits), values] for axis, bits, values in axes], columns]
        for name, (axes, columns) in layout.items()
    }


def ids(described: Described, keys: Ints) -> dict[str, Ints]:
    """The ids behind keys, by the name of their axis."""
    found = {}
    for axis, bits, _ in reversed(described[0]):
        found[axis] = keys & ((1 << bits) - 1)
        keys = keys >> bits
    return found


class Translation:
    """From the layout of a state to the present one; what is the same in both is passed through."""

    def __init__(self, old: Layout, new: Layout) -> None:
        self._moved = {name: (old[name], new[name]) for name in new if name in old and old[name] != new[name]}

    def parts(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """The parts that `Totals.save` gave, for `Totals.load`. Raises ForeignError."""
        return {name: self._part(*name.split("/"), part) if "/" in name else part for name, part in parts.items()}

    def delta(self, delta: Delta) -> Delta:
        """A delta that was read back. Raises ForeignError."""
        rows = self._rows
        return replace(
            delta,
            sums={name: rows(name, *part) for name, part in delta.sums.items()},
            levels={name: rows(name, *part) for name, part in delta.levels.items()},
            slots={
                name: {slot: rows(name, *part) for slot, part in slots.items()} for name, slots in delta.slots.items()
            },
            cells={
                name: {slot: self._cells(name, *part) for slot, part in slots.items()}
                for name, slots in delta.cells.items()
            },
        )

    def _part(self, kind: str, name: str, *rest: Any) -> Any:
        part = rest[-1]
        if kind in ("sums", "slots"):
            return [*self._rows(name, *part)]
        if kind in ("lasting", "recent", "rolling"):
            return [*self._cells(name, *part)]
        if kind == "closed":
            # The sketch that rolls up with a table has its name.
            return [*self._rows(name, *part[:2]), *self._cells(name, *part[2:])]
        return part

    def _rows(self, name: str, keys: Ints, values: Floats) -> tuple[Ints, Floats]:
        old, new = self._moved.get(f"{TABLES}{name}", (None, None))
        if old is None or new is None:
            return keys, values
        if values.shape[1] != len(old[1]):
            raise ForeignError(f"table {name} has {values.shape[1]} columns, not {len(old[1])}")
        columns = [values[:, old[1].index(column)] if column in old[1] else np.zeros(len(values)) for column in new[1]]
        return gather(_repacked(name, old, new, keys), np.stack(columns, axis=1))

    def _cells(self, name: str, keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
        old, new = self._moved.get(f"{SKETCHES}{name}", (None, None))
        if old is None or new is None:
            return keys, counts
        moved = _repacked(name, old, new, keys >> CELL_BITS) << CELL_BITS | keys & ((1 << CELL_BITS) - 1)
        return gather(moved, counts)


def _repacked(name: str, old: Described, new: Described, keys: Ints) -> Ints:
    """The keys of the same ids."""
    found, values = ids(old, keys), {axis: texts for axis, _, texts in old[0]}
    key: Ints = np.zeros(len(keys), np.int64)
    for axis, bits, texts in new[0]:
        if axis not in found:
            raise ForeignError(f"{name} has no {axis}")
        one = _renumbered(f"{name}: {axis}", found[axis], values[axis], texts)
        if len(one) and int(one.max()) >> bits:
            raise ForeignError(f"{name}: {axis} {int(one.max())} does not fit into {bits} bits")
        key = key << bits | one
    return key


def _renumbered(place: str, one: Ints, old: Sequence[str], new: Sequence[str]) -> Ints:
    """Enumerated ids by the texts that they stand for; others are what they were."""
    if not old or old == new:
        return one
    gone = [old[number] for number in np.unique(one).tolist() if old[number] not in new]
    if gone:
        raise ForeignError(f"{place} {gone[0]} is not known")
    return np.array([new.index(text) if text in new else 0 for text in old], np.int64)[one]
