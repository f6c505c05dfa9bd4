"""Totals are the sum of deltas, in any grouping; what was read of them stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.keep.codec import pack as packed
from capwatch.keep.codec import unpack
from capwatch.ledger import (
    LASTING,
    MODEL,
    RETIRED,
    ROUTE,
    TENANT,
    Delta,
    Gathering,
    Keys,
    Names,
    Sketch,
    Table,
    Totals,
)
from capwatch.sketch import ZERO, pack, series_of

PAIRS = Table((TENANT, ROUTE), "pairs", ("count", "cost"), retires={"requests": ("count",), "cost": ("cost",)})
ROUTES = Table((ROUTE,), "routes", ("count",))
LEVELS = Table((ROUTE,), "levels", ("value",), level=True)
SLOTTED = Table((ROUTE,), "slotted", ("count",), slot_s=10, slots=3)
CLOSING = Table((ROUTE,), "closing", ("count",), slot_s=10, slots=3, closes=True)
VALUES = Sketch((TENANT, ROUTE), "values", lasting=True, recent=True)
ROLLED = Sketch((ROUTE,), "rolled", lasting=False, recent=False, rolls_up="closing")
TABLES, SKETCHES = (PAIRS, ROUTES, LEVELS, SLOTTED, CLOSING), (VALUES, ROLLED)

PLAIN = ("clock", "names", "parted", "layout")
IDS = st.integers(2, 5)
ADDS = st.lists(st.tuples(IDS, IDS, st.integers(0, 60), st.integers(0, 4)), max_size=12)


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """An array of integers."""
    return np.array(values, np.int64)


def key(tenant: int, route: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A pair's key."""
    return np.atleast_1d(PAIRS.pack(ints(tenant), ints(route)))


def empty() -> Totals:
    """Totals of these tables."""
    return Totals(TABLES, SKETCHES)


def gathered(adds: list[tuple[int, int, int, int]], into: Gathering) -> None:
    """Put increments into every kind of table; the third number is a second, the fourth a bucket."""
    for tenant, route, second, bucket in adds:
        pair, at = key(tenant, route), ints(second // 10)
        into.add(PAIRS, pair, np.ones(1), np.full(1, second / 8))
        into.add(ROUTES, ints(route), np.ones(1))
        into.add_slots(SLOTTED, at, ints(route), np.ones(1))
        into.add_slots(CLOSING, at, ints(route), np.ones(1))
        into.observe(VALUES, pack(pair, ints(bucket)), ints(second // 30 if second % 7 else LASTING))
        into.observe(ROLLED, pack(ints(route), ints(bucket)), at)


ROWS = st.lists(st.tuples(st.integers(0, 3), IDS, st.integers(0, 64)), max_size=8)


@given(st.lists(ROWS, max_size=4), st.sampled_from([1, 1 << 55]))
def test_rows_of_a_slot_are_summed(batches: list[list[tuple[int, int, int]]], apart: int) -> None:
    """Over all batches, by slot and key; also where slot and key do not fit into one number together."""
    into, truth = Gathering(Names()), dict[tuple[int, int], float]()
    for rows in batches:
        slots, routes, values = (np.array([row[column] for row in rows], np.int64) for column in range(3))
        into.add_slots(CLOSING, slots * apart, routes, values.astype(np.float64))
        for slot, route, value in rows:
            truth[slot * apart, route] = truth.get((slot * apart, route), 0.0) + value
    found = into.freeze(0.0).slots.get(CLOSING.name, {})
    assert {
        (slot, route): value
        for slot, (keys, values) in found.items()
        for route, (value,) in zip(keys.tolist(), values.tolist(), strict=True)
    } == truth
    assert all((np.diff(keys) > 0).all() for keys, _ in found.values())


def everything(totals: Totals) -> dict[str, object]:
    """All that totals hold, comparable; the order in which slots closed is none of it."""
    plain = unpack(packed(totals.save()))
    return {name: [one.tolist() for one in part] for name, part in plain.items() if name not in PLAIN}


@given(ADDS, st.lists(st.integers(0, 12), max_size=4))
def test_totals_are_the_sum_of_deltas_in_any_grouping(adds: list[tuple[int, int, int, int]], cuts: list[int]) -> None:
    """One delta or many: the same tables, slots, cells."""
    whole, parts, into = empty(), empty(), Gathering(Names())
    gathered(adds, into)
    whole.apply(into.freeze(35.0))
    edges = [0, *sorted(cuts), len(adds)]
    for begin, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007
        gathered(adds[begin:end], into)
        parts.apply(into.freeze(0.0))
    parts.advance(35.0)
    assert everything(parts) == everything(whole)


@given(ADDS, ADDS)
def test_what_is_saved_is_all_there_is(
    before: list[tuple[int, int, int, int]], after: list[tuple[int, int, int, int]]
) -> None:
    """Totals that were saved and loaded go on as if nothing had been."""
    straight, into = empty(), Gathering(Names())
    gathered(before, into)
    straight.apply(into.freeze(20.0))
    again = empty()
    again.load(unpack(packed(straight.save())))
    gathered(after, into)
    delta = into.freeze(400.0)
    for totals in (straight, again):
        totals.apply(delta)
    assert everything(again) == everything(straight)


@given(ADDS, ADDS, st.sets(st.tuples(IDS, IDS), max_size=3))
def test_retiring_loses_nothing(
    before: list[tuple[int, int, int, int]], between: list[tuple[int, int, int, int]], gone: set[tuple[int, int]]
) -> None:
    """What was frozen and what was only gathered goes to the retired totals; what comes after is new."""
    totals, into = empty(), Gathering(Names())
    gathered(before, into)
    totals.apply(into.freeze(1.0))
    gathered(between, into)
    into.retire(gone)
    for pair in gone:
        into.add(PAIRS, key(*pair), np.ones(1), np.zeros(1))
    totals.apply(into.freeze(2.0))
    keys, values = totals.rows(PAIRS)
    tenants, routes = (ids.tolist() for ids in PAIRS.unpack(keys))
    counts = dict(zip(zip(tenants, routes, strict=True), values[:, 0].tolist(), strict=True))
    assert {pair: counts[pair] for pair in gone} == dict.fromkeys(gone, 1.0)
    requests, _, cost = totals.row(RETIRED).tolist()
    assert requests + sum(counts.values()) == len(before) + len(between) + len(gone)
    assert cost + values[:, 1].sum() == pytest.approx(sum(second / 8 for _, _, second, _ in before + between))
    left = series_of(totals.lasting(VALUES).arrays()[0])
    assert np.isin(left, [int(key(*pair)[0]) for pair in gone]).sum() == 0


def test_a_forgotten_route_takes_what_is_its_alone() -> None:
    """Its pairs retire by themselves."""
    totals, names = empty(), Names()
    into = Gathering(names)
    route = names.id("route", "/a")
    gathered([(2, route, 5, 1), (2, route + 1, 5, 1)], into)
    names.forget("route", route)
    totals.apply(into.freeze(1.0))
    assert totals.rows(ROUTES)[0].tolist() == [route + 1]
    assert len(totals.rows(PAIRS)[0]) == 2


def test_slots_go_when_the_clock_has_passed_them() -> None:
    """The current one and two before; those that close wait for the history with their sketch."""
    totals, into = empty(), Gathering(Names())
    gathered([(2, 2, second, 1) for second in (5, 15, 25, 55)], into)
    totals.apply(into.freeze(39.0))
    assert sorted(totals.slots(SLOTTED)) == [1, 2, 5]
    assert totals.window(SLOTTED)[1].tolist() == [[2.0]]
    closed = [(one.table, one.slot, one.sums.values.tolist(), one.cells.arrays()[1].tolist()) for one in totals.closed]
    assert closed == [("closing", 0, [[1.0]], [1])]


def test_levels_replace_each_other_and_nan_takes_away() -> None:
    """The last value set counts."""
    totals, into = empty(), Gathering(Names())
    into.set(LEVELS, ints(2, 3), np.array([1.0, 5.0]))
    into.set(LEVELS, ints(2), np.array([2.0]))
    totals.apply(into.freeze(1.0))
    first = totals.rows(LEVELS)[1].tolist()
    into.set(LEVELS, ints(2), np.array([np.nan]))
    totals.apply(into.freeze(2.0))
    assert (first, totals.rows(LEVELS)[1].tolist()) == ([[2.0], [5.0]], [[5.0]])


def test_what_was_read_stays_as_it_was() -> None:
    """A page may be written from arrays while the next delta comes in."""
    totals, into = empty(), Gathering(Names())
    gathered([(2, 2, 5, 1)], into)
    totals.apply(into.freeze(1.0))
    keys, values = totals.rows(PAIRS)
    before = (keys.tolist(), values.tolist())
    gathered([(2, 2, 5, 1), (2, 3, 5, 1)], into)
    totals.apply(into.freeze(2.0))
    assert (keys.tolist(), values.tolist()) == before


def test_the_clock_never_goes_back() -> None:
    """An older delta adds and does not turn it."""
    totals = empty()
    totals.apply(Delta(clock=50.0))
    totals.apply(Delta(clock=40.0))
    assert totals.clock == 50.0


def test_tables_of_no_meter_are_passed_over() -> None:
    """A state may hold what an older version measured."""
    into = Gathering(Names())
    gathered([(2, 2, 5, 1)], into)
    totals = Totals((ROUTES,), ())
    totals.apply(into.freeze(1.0))
    assert totals.row(ROUTES, 2).tolist() == [1.0]


def test_a_row_that_is_not_there_is_zero() -> None:
    """Before the first key, behind the last, between."""
    totals, into = empty(), Gathering(Names())
    into.add(ROUTES, ints(3, 7), np.ones(2))
    totals.apply(into.freeze(1.0))
    assert [totals.row(ROUTES, route).tolist() for route in (2, 3, 5, 8)] == [[0.0], [1.0], [0.0], [0.0]]


@given(st.lists(st.tuples(IDS, st.integers(0, 4095)), min_size=1, max_size=20))
def test_keys_unpack_to_what_was_packed(pairs: list[tuple[int, int]]) -> None:
    """And sort by the first axis first."""
    keys = Keys((TENANT, ROUTE, MODEL))
    ids = [ints(*column) for column in zip(*((a, 7, b) for a, b in pairs), strict=True)]
    found = keys.pack(*ids)
    assert [column.tolist() for column in keys.unpack(found)] == [column.tolist() for column in ids]
    assert keys.ids(found, MODEL).tolist() == [b for _, b in pairs]
    assert np.argsort(found, kind="stable").tolist() == sorted(range(len(pairs)), key=lambda i: pairs[i])


def test_sketches_bear_slots_far_apart() -> None:
    """A clock that jumps by years leaves keys that no longer fit one integer."""
    totals, into = empty(), Gathering(Names())
    cells = pack(key(1 << 19, 1 << 15), ints(ZERO))
    for slot in (0, 1 << 34):
        into.observe(VALUES, cells, ints(slot))
    totals.apply(into.freeze(0.0))
    assert totals.lasting(VALUES).arrays()[1].tolist() == [2]


def test_what_closes_keeps_the_names_that_go_with_it() -> None:
    """A clock that leaps over the seven days of a name closes its slots and forgets it in one delta; both are told."""
    totals, names = empty(), Names()
    into = Gathering(names)
    route = names.id("route", "/a")
    gathered([(2, route, 5, 1)], into)
    totals.apply(into.freeze(6.0))
    names.forget("route", route)
    totals.apply(into.freeze(9e5))
    assert [one.sums.keys.tolist() for one in totals.closed] == [[route]]
    saved = empty()
    saved.load(unpack(packed(totals.save())))
    for each in (totals, saved):
        assert route not in each.names.texts("route")
        assert each.closed_names().texts("route")[route] == "/a"
        each.kept(1)
        assert route not in each.closed_names().texts("route")
