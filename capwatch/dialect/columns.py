"""The fast tier of a dialect that has several paths for a field and rules over whole rows.

A dialect describes its leaves once; lines that are unusual in any way (another type, a row that is no record) are left
to its reader, so that both tiers give the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, TypeVar

from capwatch.dialect.fields import KINDS, reading
from capwatch.dialect.scan import JsonScanner, Leaf
from capwatch.dialect.table import Paths
from capwatch.dialect.value import UNITS
from capwatch.dialect.verdict import Columns, Field, Options
from capwatch.record import DURATIONS, MISSING

T = TypeVar("T")

Leaves = Mapping[str, tuple[Leaf, ...]]
"""By name of a record field, or of what only the rules need: where it is, the place that says most first."""
Finish = Callable[[Columns], tuple[Columns, set[int]]]
"""Makes record fields of the columns of all leaves, in place or anew; and the rows that the reader has to judge."""


class ColumnScanner:
    """See `capwatch.dialect.verdict.Scanner`."""

    def __init__(self, leaves: Leaves, zone: tzinfo, finish: Finish) -> None:
        self._places = {
            name: [(f"{name} {i}", leaf.kind != "raw") for i, leaf in enumerate(places)]
            for name, places in leaves.items()
        }
        flat = {f"{name} {i}": leaf for name, places in leaves.items() for i, leaf in enumerate(places)}
        self._json = JsonScanner(flat, zone)
        self._finish = finish

    def whole(self, data: bytes) -> tuple[Columns, int] | None:
        """See `capwatch.dialect.verdict.Scanner`."""
        found = self._json.whole(data)
        if found is None:
            return None
        columns, odd = self._finish(self._told(found[0]))
        return None if odd else (columns, found[1])

    def scan(self, lines: Sequence[bytes], *, clean: bool) -> tuple[Columns, Sequence[int], Sequence[int]]:
        """See `capwatch.dialect.verdict.Scanner`."""
        found, taken, left = self._json.scan(lines, clean=clean)
        if not taken:
            return {}, taken, left
        columns, odd = self._finish(self._told(found))
        if not odd:
            return columns, taken, left
        kept = [row for row in range(len(taken)) if row not in odd]
        columns = {name: [column[row] for row in kept] for name, column in columns.items()}
        return columns, [taken[row] for row in kept], sorted([*left, *(taken[row] for row in odd)])

    def _told(self, found: Columns) -> Columns:
        """For each name the first of its places that says something; what is raw as it is printed."""
        columns: Columns = {}
        for name, places in self._places.items():
            column: Sequence[object] = ()
            for place, cleaned in places:
                other = _cleaned(found[place]) if cleaned else found[place]
                column = [b if a is None else a for a, b in zip(column, other, strict=True)] if column else other
                if None not in column:
                    break
            columns[name] = column
        return columns


def _cleaned(column: Sequence[object]) -> Sequence[object]:
    """A column without the words for nothing."""
    texts = {value for value in column if isinstance(value, str)}
    nothing = {value for value in texts if value.strip() in MISSING}
    return [None if value in nothing else value for value in column] if nothing else column


def each(function: Callable[[Any], T], column: Sequence[object]) -> list[T]:
    """A function of every value, called once for each that is different."""
    values = {value: function(value) for value in set(column)}
    return [values[value] for value in column]


def rows(function: Callable[..., T], *columns: Sequence[object]) -> list[T]:
    """A function of every row of some columns, called once for each that is different."""
    return each(lambda row: function(*row), list(zip(*columns, strict=True)))


def mapped(fields: Mapping[str, Field], unit: str) -> Leaves:
    """The leaves that an operator names; ``unit`` is that of durations where none is named."""
    return {
        name: (Leaf(field.path, KINDS[name], UNITS[field.unit or (unit if name in DURATIONS else "s")]),)
        for name, field in fields.items()
        if name in KINDS
    }


def spelled(paths: Paths, fields: Mapping[str, Field]) -> Leaves:
    """The leaves of a table, numbers and flags in any spelling; a path that an operator names stands for all of its."""
    named = {name: (field.path,) for name, field in fields.items() if name in KINDS}
    return {
        name: tuple(Leaf(path, "text" if KINDS[name] == "text" else "spelled") for path in ways)
        for name, ways in {**paths, **named}.items()
        if ways
    }


def read_spelled(told: Columns, options: Options, unit: str) -> None:
    """Make record fields of the columns of `spelled`, in place, as `Table` does of a row."""
    for name, column in told.items():
        if name in KINDS and any(value is not None for value in column):
            field = options.fields.get(name)
            own = unit if name in DURATIONS else "s"
            told[name] = each(reading(name, options.zone, (field and field.unit) or own), column)
