"""The sparse table: additive, exact, and never quietly negative."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.sketch.cells import Cells, bucket_of, count, gather, pack, series_of
from capwatch.sketch.grid import HIGHEST, ZERO, Ints

Part = list[tuple[int, int]]

# Few keys, so that parts overlap; two series of two buckets and more.
part = st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 1000)), max_size=40)
few_keys = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), max_size=20)


def columns(rows: Part) -> tuple[Ints, Ints]:
    """(keys, counts) of rows of both."""
    table = np.array(rows, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def table(*parts: Part) -> Cells:
    """The table to which the parts were added in turn."""
    cells = Cells()
    for rows in parts:
        cells.add(*columns(rows))
    return cells


def content(cells: Cells) -> dict[int, int]:
    """Count by key."""
    keys, counts = cells.arrays()
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def tally(*parts: Part) -> dict[int, int]:
    """Count by key, the slow way."""
    total: Counter[int] = Counter()
    for rows in parts:
        for key, amount in rows:
            total[key] += amount
    return dict(sorted(total.items()))


@given(st.integers(0, 2**50 - 1), st.integers(ZERO, HIGHEST))
def test_a_key_gives_back_its_series_and_bucket(series: int, bucket: int) -> None:
    """Packing loses nothing, up to the largest series."""
    key = pack(np.array([series]), np.array([bucket]))
    assert (series_of(key).tolist(), bucket_of(key).tolist()) == ([series], [bucket])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(ZERO, HIGHEST)), min_size=1))
def test_keys_sort_by_series_then_by_value(pairs: list[tuple[int, int]]) -> None:
    """The order of keys is the order of (series, bucket)."""
    ordered = np.array(sorted(pairs))
    keys = pack(ordered[:, 0], ordered[:, 1]).tolist()
    assert keys == sorted(keys)


def test_a_key_is_the_series_shifted_by_twelve_bits_and_the_bucket_from_zero() -> None:
    """The layout is what is saved, so it stays."""
    keys = pack(np.array([0, 1, 5]), np.array([ZERO, 0, HIGHEST]))
    assert keys.tolist() == [0, 4096 + 2048, 5 * 4096 + 4095]


@given(st.lists(st.integers(0, 20)))
def test_count_tells_how_often_each_key_occurs(keys: list[int]) -> None:
    """Sorted unique keys with their number."""
    unique, counts = count(np.array(keys, np.int64))
    assert list(zip(unique.tolist(), counts.tolist(), strict=True)) == sorted(Counter(keys).items())


@given(few_keys)
def test_gather_sums_the_amounts_of_equal_keys(rows: Part) -> None:
    """Keys in any order with repeats become sorted unique keys with sums."""
    keys, sums = gather(*columns(rows))
    assert list(zip(keys.tolist(), sums.tolist(), strict=True)) == list(tally(rows).items())


@given(st.lists(part, max_size=5))
def test_the_table_holds_what_was_added(parts: list[Part]) -> None:
    """Counts of equal keys add up, within a batch and between batches; keys come out sorted."""
    assert list(content(table(*parts)).items()) == list(tally(*parts).items())


@given(part, part)
def test_the_merge_of_parts_is_the_whole(left: Part, right: Part) -> None:
    """merge(other) equals having added both to one table."""
    merged = table(left)
    merged.merge(table(right))
    assert merged == table(left + right)


@given(st.lists(part, max_size=4))
def test_the_order_of_adding_does_not_matter(parts: list[Part]) -> None:
    """Parts added backwards give the same table."""
    assert table(*parts[::-1]) == table(*parts)


@given(part, part)
def test_what_was_added_can_be_subtracted(before: Part, more: Part) -> None:
    """Add, then subtract, is as before: emptied cells vanish."""
    cells = table(before, more)
    cells.subtract(*columns(more))
    assert content(cells) == tally(before)


@pytest.mark.parametrize(
    "excess", [[(4, 3)], [(5, 1)], [(9, 1)], [(4, 1), (4, 2)]], ids=["too many", "absent", "beyond the last", "in sum"]
)
def test_subtracting_more_than_there_is_fails_and_changes_nothing(excess: Part) -> None:
    """Going below zero is a mistake of the program, not a state."""
    cells = table([(4, 2), (6, 1)])
    with pytest.raises(ValueError, match="more is subtracted from a cell than it holds"):
        cells.subtract(*columns([(6, 1), *excess]))
    assert content(cells) == {4: 2, 6: 1}


def test_subtracting_from_an_empty_table_fails() -> None:
    """An empty table holds nothing to take."""
    with pytest.raises(ValueError, match="more is subtracted"):
        Cells().subtract(np.array([1]), np.array([1]))


@pytest.mark.parametrize("amount", [0, -1])
def test_a_count_below_one_is_refused(amount: int) -> None:
    """No cell of 0 can come to exist."""
    with pytest.raises(ValueError, match="at least 1"):
        Cells(np.array([1]), np.array([amount]))


def test_keys_and_counts_of_different_length_are_refused() -> None:
    """One count goes with one key."""
    with pytest.raises(ValueError, match="do not go with"):
        Cells(np.array([1, 2]), np.array([1]))


@given(part)
def test_the_arrays_build_the_same_table_again(rows: Part) -> None:
    """What is saved is what is restored."""
    cells = table(rows)
    assert Cells(*cells.arrays()) == cells


@given(part, part)
def test_a_copy_goes_its_own_way(rows: Part, more: Part) -> None:
    """Neither the original nor the copy sees what is added to the other."""
    cells = table(rows)
    copy = cells.copy()
    cells.add(*columns(more))
    copy.add(*columns([(77, 1)]))
    assert (content(cells), content(copy)) == (tally(rows, more), tally(rows, [(77, 1)]))


@pytest.mark.parametrize("change", [Cells.add, Cells.subtract])
def test_arrays_once_read_stay_as_they_were(change: Callable[[Cells, Ints, Ints], None]) -> None:
    """A reader's arrays are not changed behind its back."""
    cells = table([(4, 2), (6, 1)])
    keys, counts = cells.arrays()
    change(cells, *columns([(4, 1)]))
    cells.arrays()
    assert (keys.tolist(), counts.tolist()) == ([4, 6], [2, 1])


def test_a_reader_cannot_change_the_table() -> None:
    """The arrays are shared between copies, hence read-only."""
    _, counts = table([(4, 2)]).arrays()
    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 9


def test_a_batch_may_be_reused_by_the_caller() -> None:
    """What was added does not change with the array it came in."""
    keys, counts = np.array([4]), np.array([2])
    cells = Cells(keys, counts)
    keys[0], counts[0] = 8, 9
    assert content(cells) == {4: 2}


@given(part, st.lists(st.integers(0, 4), max_size=3))
def test_dropped_series_are_gone_and_the_others_untouched(rows: Part, series: list[int]) -> None:
    """Only the cells of the named series are removed; unknown series do no harm."""
    cells = table(rows)
    cells.drop(np.array(series, np.int64))
    assert content(cells) == {key: amount for key, amount in tally(rows).items() if key >> 12 not in series}


@given(part)
def test_the_length_is_the_number_of_cells(rows: Part) -> None:
    """Cells count once however often they were added to."""
    assert len(table(rows, rows)) == len(tally(rows))


def test_tables_with_other_counts_are_not_equal() -> None:
    """Equality looks at keys and counts."""
    assert [table([(4, 2)]) == table(other) for other in ([(4, 3)], [(5, 2)], [(4, 2), (5, 1)])] == [False] * 3


def test_a_table_equals_no_other_thing() -> None:
    """Comparison with a stranger is False, not an error."""
    assert (Cells() == 0) is False


def test_a_growing_table_is_rarely_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 batches of 2,000 cells onto 300,000 rebuild the table a few times only, and lose nothing."""
    cells = Cells(np.arange(300_000), np.ones(300_000, np.int64))
    cells.arrays()
    rebuilt: list[int] = []
    settle = Cells._settle

    def counted(self: Cells, keys: Ints, counts: Ints) -> None:
        rebuilt.append(len(keys))
        settle(self, keys, counts)

    monkeypatch.setattr(Cells, "_settle", counted)
    for start in range(0, 400_000, 2000):
        cells.add(np.arange(start, start + 2000), np.ones(2000, np.int64))
    assert len(rebuilt) == 5
    assert int(cells.arrays()[1].sum()) == 700_000
