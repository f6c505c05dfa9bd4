"""Upgrade: which layout a state was written in. From version 2 on it says so; before that it has to be found out.

Each step from one version to the next stands here. Version 1 never was in a release: its keys had two widths, one after
the other, and what tells them apart is that every id behind a key has been given to a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from capwatch.ledger import Delta
from capwatch.ledger.layout import TABLES, ForeignError, Layout, ids, narrowed
from capwatch.ledger.names import RESERVED
from capwatch.ledger.table import WIDTHS
from capwatch.record import Ints

NARROW: Final = {"pool": 8, "class": 8, "source": 10, "bound": 8, "engine": 16}
"""What these axes had before they were widened; the others had what they have."""

Rows = tuple[str, Ints, int]
"""Table, keys, and how many columns their values have."""


def layout_written(parts: Mapping[str, Any], deltas: Sequence[Delta], present: Layout) -> Layout:
    """The layout of what a state holds: the parts of its totals, and the deltas behind them.

    Raises:
        ForeignError: it does not say, and is in none that is known.
    """
    if "layout" in parts:
        found: Layout = parts["layout"]
        return found
    if not parts and not deltas:
        return present
    given = {axis: number for axis, number, _ in parts.get("names", ())}
    for delta in deltas:
        for axis, number, _ in delta.names:
            given[axis] = max(given.get(axis, 0), number + 1)
    rows = [*_rows(parts, deltas)]
    for layout in (present, narrowed(present, NARROW)):
        if all(_is_said(layout, one, given) for one in rows):
            return layout
    raise ForeignError("of version 1, which never was in a release")


def _rows(parts: Mapping[str, Any], deltas: Iterable[Delta]) -> Iterator[Rows]:
    """The rows for life of all tables."""
    for name, part in parts.items():
        kind, _, table = name.partition("/")
        if kind == "sums":
            yield table, part[0], part[1].shape[1]
    for delta in deltas:
        for table, (keys, values) in (*delta.sums.items(), *delta.levels.items()):
            yield table, keys, values.shape[1]


def _is_said(layout: Layout, rows: Rows, given: Mapping[str, int]) -> bool:
    """Whether rows can be in this layout: as many columns, and no id that was never given or means no value."""
    table, keys, columns = rows
    described = layout.get(f"{TABLES}{table}")
    if described is None:
        return True  # of no meter any more
    if columns != len(described[1]):
        return False
    values = {axis: len(texts) for axis, _, texts in described[0]}
    return all(
        not len(one)
        or int(one.max()) < (values[axis] or (given.get(axis, len(RESERVED)) if axis in WIDTHS else 1 << 62))
        for axis, one in ids(described, keys).items()
    )
