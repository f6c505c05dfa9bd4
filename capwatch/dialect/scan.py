"""The fast tier for JSON dialects with heavy traffic: typed decoding of whole lines straight into columns.

It is strict on purpose: a line with anything unusual (another type, broken JSON, bytes that are not UTF-8) is left
to the dialect's reader, so that both tiers give the same records. Both are made from the same description.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import astuple

from capwatch.dialect.value import epoch, number
from capwatch.dialect.verdict import Columns

Kind = Literal["number", "text", "time", "flag", "spelled", "raw"]
"""Two kinds are for rules over columns: numbers that may be spelled as texts, and values as they are printed."""

_TYPES: Mapping[Kind, Any] = {
    "number": float | None,
    "text": str | None,
    "time": float | datetime | None,
    "flag": bool | None,
    "spelled": bool | int | float | str | None,
    "raw": int | float | str | None,
}


_NEVER: Any = type(None)
"""The type of a key that two fields read in different ways: a line that has it is left to the reader."""
_ZONE = attrgetter("tzinfo")


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where a record field is: the path, what is there, and the factor to the record's unit for numbers."""

    path: str
    kind: Kind
    factor: float = 1.0


class JsonScanner:
    """Decodes lines that are one JSON object each into columns, following a table of leaves."""

    def __init__(self, leaves: Mapping[str, Leaf], zone: tzinfo) -> None:
        self._leaves = leaves
        self._zone = zone
        shape: dict[str, Any] = {}
        self._ways = {name: list(_ways(leaf.path)) for name, leaf in leaves.items()}
        for name, leaf in leaves.items():
            for way in self._ways[name]:
                _plant(shape, way, _TYPES[leaf.kind])
        self._shape = shape
        self._use(shape)
        self._ordered = False

    def _order(self, line: bytes) -> None:
        """Put the struct's fields into the order of a line's keys: msgspec looks for the next key behind the last."""
        try:
            keys = list(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
        except (msgspec.DecodeError, RecursionError):
            return
        rank = {key: place for place, key in enumerate(keys)}
        shape = dict(sorted(self._shape.items(), key=lambda item: rank.get(item[0], len(rank))))
        self._use(shape)
        self._ordered = True

    def _use(self, shape: dict[str, Any]) -> None:
        self._decoder = msgspec.json.Decoder(_struct(shape))
        self._decode = self._decoder.decode

    def whole(self, data: bytes) -> tuple[Columns, int] | None:
        """See `capwatch.dialect.verdict.Scanner`."""
        count = _objects(data)
        if not count or not data.isascii():
            return None
        if not self._ordered:
            self._order(data[: data.find(b"\n") + 1])
        try:
            rows = self._decoder.decode_lines(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        # JSON has nothing that goes on over `}`, a line feed and `{`, so each line has a value of its own.
        return (self._columns(rows), count) if len(rows) == count else None

    def scan(self, lines: Sequence[bytes], *, clean: bool) -> tuple[Columns, Sequence[int], Sequence[int]]:
        """See `capwatch.dialect.verdict.Scanner`."""
        if lines and not self._ordered:
            self._order(lines[0])
        taken: Sequence[int] = range(len(lines))
        left: list[int] = []
        if clean:
            try:
                return self._columns(list(map(self._decode, lines))), taken, left
            except (msgspec.DecodeError, RecursionError):
                pass  # at least one line is unusual: find out which
        rows: list[Any] = []
        taken = []
        for i, line in enumerate(lines):
            row = self._try(line, clean=clean)
            if row is None:
                left.append(i)
            else:
                rows.append(row)
                taken.append(i)
        return self._columns(rows), taken, left

    def _try(self, line: bytes, *, clean: bool) -> Any:
        try:
            if not clean and not line.isascii():
                line.decode()
            return None if b"\0" in line else self._decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _columns(self, rows: list[Any]) -> Columns:
        flat: dict[tuple[str, ...], Sequence[object]] = {}
        _flatten(rows, (), flat)
        if not rows:
            return {}
        blank = (None,) * len(rows)
        return {name: self._column(name, [flat.get(way, blank) for way in ways]) for name, ways in self._ways.items()}

    def _column(self, name: str, ways: list[Sequence[object]]) -> Sequence[object]:
        leaf = self._leaves[name]
        column = ways[0]
        for other in ways[1:]:
            if None not in column:
                break
            if other.count(None) < len(other):
                column = tuple(b if a is None else a for a, b in zip(column, other, strict=True))
        if leaf.kind == "time" and datetime in (kinds := set(map(type, column))):
            if len(kinds) == 1 and None not in map(_ZONE, column):
                return list(map(datetime.timestamp, column))  # type: ignore[arg-type]
            return [epoch(v, self._zone) if isinstance(v, datetime) else self._scaled(v, leaf) for v in column]
        if leaf.factor != 1.0:
            return tuple(self._scaled(v, leaf) for v in column)
        return column

    @staticmethod
    def _scaled(value: object, leaf: Leaf) -> object:
        return number(value, leaf.factor) if isinstance(value, float) else value


def _objects(data: bytes) -> int:
    """How many lines there are if each is ended, begins with a brace and closes with one; otherwise 0."""
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if not len(ends) or ends[0] == 0 or ends[-1] != len(text) - 1:
        return 0
    whole = (text[ends - 1] == ord("}")).all() and text[0] == ord("{") and (text[ends[:-1] + 1] == ord("{")).all()
    return len(ends) if whole else 0


def _ways(path: str) -> Iterator[tuple[str, ...]]:
    """All readings of a path, the flattest first: one key, then split at its dots."""
    yield (path,)
    cut = path.rfind(".")
    while cut > 0:
        for rest in _ways(path[cut + 1 :]):
            yield (path[:cut], *rest)
        cut = path.rfind(".", 0, cut)


def _plant(shape: dict[str, Any], way: tuple[str, ...], hint: Any) -> None:
    """Put a leaf into the tree of the struct; a key that is wanted in two ways is left to the reader."""
    node = shape
    for key in way[:-1]:
        below = node.setdefault(key, {})
        if not isinstance(below, dict):
            node[key] = _NEVER
            return
        node = below
    if node.setdefault(way[-1], hint) != hint:
        node[way[-1]] = _NEVER


def _struct(shape: dict[str, Any]) -> Any:
    """A msgspec struct for the tree; field names are positions, JSON keys are the renames."""
    fields = [
        (f"f{i}", (_struct(kind) | None) if isinstance(kind, dict) else kind, None)
        for i, kind in enumerate(shape.values())
    ]
    names = {f"f{i}": key for i, key in enumerate(shape)}
    return msgspec.defstruct("Line", fields, rename=names, gc=False)


def _flatten(rows: list[Any], path: tuple[str, ...], into: dict[tuple[str, ...], Sequence[object]]) -> None:
    """Columns of all leaves below structs of one type; a missing branch is None in all its leaves."""
    if not rows:
        return
    kind: Any = type(next(row for row in rows if row is not None))
    columns: Any
    if None in rows:
        blank = (None,) * len(kind.__struct_fields__)
        columns = zip(*(blank if row is None else astuple(row) for row in rows), strict=True)
    else:
        columns = zip(*map(astuple, rows), strict=True)
    for key, hint, column in zip(kind.__struct_encode_fields__, kind.__annotations__.values(), columns, strict=True):
        if hint is _NEVER:
            continue
        if hint in _TYPES.values():
            into[(*path, key)] = column
        elif column.count(None) < len(column):
            _flatten(list(column), (*path, key), into)
        else:
            _blank(hint, (*path, key), (None,) * len(column), into)


def _blank(
    hint: Any, path: tuple[str, ...], column: tuple[None, ...], into: dict[tuple[str, ...], Sequence[object]]
) -> None:
    kind = next(part for part in hint.__args__ if part is not type(None))
    for key, below in zip(kind.__struct_encode_fields__, kind.__annotations__.values(), strict=True):
        if below in _TYPES.values():
            into[(*path, key)] = column
        elif below is not _NEVER:
            _blank(below, (*path, key), column, into)
