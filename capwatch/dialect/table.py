"""A dialect as a table: for each record field, the paths under which its programs keep it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capwatch.dialect.fields import Mapped, reading
from capwatch.dialect.path import walk
from capwatch.dialect.verdict import Options
from capwatch.record import DURATIONS, MISSING, Request

Paths = Mapping[str, tuple[str, ...]]
"""By record field: paths as `fields:` spells them, the one that says most first."""


class Table:
    """Reads a record from a decoded line: each field from the first of its paths that tells anything.

    A path that the operator names stands for all paths of its field.
    """

    def __init__(self, paths: Paths, options: Options, unit: str = "s") -> None:
        """Take the paths; ``unit`` is that of the dialect's durations, and of the operator's where none is named."""
        self._mapped: Final = Mapped(options.fields, options.zone, unit)
        self._ways: Final = [
            (name, ways, reading(name, options.zone, unit if name in DURATIONS else "s"))
            for name, ways in paths.items()
            if name not in options.fields
        ]
        self.named: Final = frozenset(options.fields)
        """Fields that the operator names: what a line has there is final."""

    def read(self, row: object) -> Request:
        """The record, as far as the table goes."""
        request = Request()
        for name, ways, read in self._ways:
            found = first_told(row, *ways)
            if found is not None:
                setattr(request, name, read(found))
        self._mapped.fill(request, row)
        return request

    def derive(self, request: Request, **fields: Any) -> None:
        """Set fields that a dialect finds in its own way, apart from those that the operator names."""
        for name, value in fields.items():
            if name not in self.named:
                setattr(request, name, value)


def first_told(row: object, *paths: str) -> object:
    """What the first of ``paths`` holds that is more than a word for nothing.

    >>> first_told({"a": "", "b": None, "c": "-", "d": 0}, "a", "b", "c", "d")
    0
    """
    flat = row.get if isinstance(row, dict) else None
    for path in paths:
        found = flat(path) if flat else None
        if found is None and (flat is None or "." in path):  # most paths are one key: no need to walk
            found = walk(row, path)
        if found is not None and not (isinstance(found, str) and found.strip() in MISSING):
            return found
    return None
