"""Layouts: what one version packed another reads as it was meant, to the last count, or refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.ledger import Axis, Delta, Keys, Sketch, Table
from capwatch.ledger.layout import ForeignError, Translation, ids, layout_of
from capwatch.sketch import pack, series_of

KINDS = ("ok", "late", "gone")
ROWS = st.dictionaries(
    st.tuples(st.integers(0, 31), st.integers(0, 2), st.integers(0, 15)), st.integers(1, 99), max_size=20
)


def table(first: int, last: int, kinds: tuple[str, ...] = KINDS, columns: tuple[str, ...] = ("count",)) -> Table:
    """A table of a tenant, a kind and a pool, of these widths."""
    return Table((Axis("tenant", first), Axis("kind", 4, kinds), Axis("pool", last)), "t", columns)


def moved(old: Table, new: Table, keys: Any, values: Any) -> tuple[Any, Any]:
    """Rows of one table as rows of the other."""
    parts = Translation(layout_of([old], []), layout_of([new], [])).parts({"sums/t": [keys, values]})
    return parts["sums/t"][0], parts["sums/t"][1]


def rows_of(one: Keys, rows: dict[tuple[int, int, int], int]) -> tuple[Any, Any]:
    """Sorted keys and values."""
    columns = np.array([*rows], np.int64).reshape(-1, 3).T
    keys = np.asarray(one.pack(*columns))
    order = np.argsort(keys)
    return keys[order], np.array([*rows.values()], np.float64)[order, None]


@given(ROWS, st.integers(5, 20), st.integers(4, 12), st.integers(5, 20), st.integers(4, 12))
def test_widths_may_change(rows: dict[tuple[int, int, int], int], a: int, b: int, c: int, d: int) -> None:
    """Ids are what they were, whatever the widths of their axes; keys stay in order."""
    old, new = table(a, b), table(c, d)
    keys, values = moved(old, new, *rows_of(old, rows))
    wanted_keys, wanted = rows_of(new, rows)
    assert (keys.tolist(), values.tolist()) == (wanted_keys.tolist(), wanted.tolist())


@given(ROWS, st.permutations([*KINDS, "new"]))
def test_values_may_come_between(rows: dict[tuple[int, int, int], int], kinds: list[str]) -> None:
    """An enumerated id follows its text to its new place."""
    old, new = table(5, 4), table(5, 4, tuple(kinds))
    keys, values = moved(old, new, *rows_of(old, rows))
    found = ids(layout_of([new], [])["tables/t"], keys)
    told = {
        (tenant, kinds[kind], pool): count
        for tenant, kind, pool, (count,) in zip(
            *(found[axis].tolist() for axis in ("tenant", "kind", "pool")), values.tolist(), strict=True
        )
    }
    assert told == {(tenant, KINDS[kind], pool): count for (tenant, kind, pool), count in rows.items()}


def test_columns_go_by_their_names() -> None:
    """One that is new is 0, one that has gone is left, others are where they belong."""
    old, new = table(5, 4, columns=("a", "b", "c")), table(5, 4, columns=("c", "new", "a"))
    assert moved(old, new, np.array([3]), np.array([[1.0, 2.0, 3.0]]))[1].tolist() == [[3.0, 0.0, 1.0]]


def test_cells_keep_their_buckets() -> None:
    """The series of a sketch moves, the bucket of each value stays."""
    old = Sketch((Axis("tenant", 5), Axis("pool", 4)), "s", lasting=True, recent=False)
    new = Sketch((Axis("tenant", 9), Axis("pool", 12)), "s", lasting=True, recent=False)
    series = np.asarray(old.pack(np.array([1, 2, 31]), np.array([0, 15, 7])))
    cells = pack(series, np.array([5, 9, 70]))
    delta = Delta(cells={"s": {3: (cells, np.array([1, 2, 3]))}})
    keys, counts = Translation(layout_of([], [old]), layout_of([], [new])).delta(delta).cells["s"][3]
    assert series_of(keys).tolist() == new.pack(np.array([1, 2, 31]), np.array([0, 15, 7])).tolist()
    assert (keys & 4095).tolist() == (cells & 4095).tolist()
    assert counts.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (table(4, 4), "tenant 31 does not fit into 4 bits"),
        (table(5, 4, ("ok", "late")), "kind gone is not known"),
        (Table((Axis("tenant", 5), Axis("model", 5)), "t", ("count",)), "no model"),
    ],
)
def test_what_cannot_be_said_is_refused(new: Table, why: str) -> None:
    """Nothing is counted under another name."""
    old = table(5, 4)
    with pytest.raises(ForeignError, match=why):
        moved(old, new, *rows_of(old, {(31, 2, 1): 5}))


def test_other_columns_than_told_are_refused() -> None:
    """Values that do not fit their own layout were not written by it."""
    with pytest.raises(ForeignError, match="2 columns, not 1"):
        moved(table(5, 4), table(6, 4), np.array([1]), np.array([[1.0, 2.0]]))


def test_what_did_not_change_is_passed_through() -> None:
    """The very same arrays."""
    keys, values = np.array([3]), np.array([[1.0]])
    found = moved(table(5, 4), table(5, 4), keys, values)
    assert (found[0] is keys, found[1] is values) == (True, True)
