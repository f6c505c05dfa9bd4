"""A slot of the history: the same again from its bytes, and the merge of parts is the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.keep.codec import DamagedError
from capwatch.keep.slot import Slot, made, merged, pack, unpack
from capwatch.ledger import Names
from capwatch.meters.rollup import MEASURE, ROLLUPS
from capwatch.sketch import Cells

from .closing import FIVE, START, Requests, rollup

REQUESTS = st.lists(st.tuples(st.sampled_from(["acme", "zen", "moo"]), st.floats(0, 1e6)), min_size=1, max_size=12)
QUEUE = ROLLUPS.column("queue")


def slot(requests: Requests, *others: str) -> Slot:
    """The slot of some requests, ids given to ``others`` first."""
    names = Names()
    closed = [rollup(names, START, [(other, 1.0)]) for other in others]
    closed.append(rollup(names, START, requests))
    texts = {tenant: number for number, tenant in enumerate(dict.fromkeys([*others, *(one for one, _ in requests)]), 2)}
    tenants = {number: tenant for tenant, number in texts.items()}
    return made(closed[-1], [(tenants[key],) for key in closed[-1].sums.keys.tolist()], MEASURE.bits, FIVE)


def same(one: Slot, other: Slot) -> bool:
    """Whether two slots hold the same to the last bit."""
    mine, theirs = ((s.at, s.span, s.names, s.values.tolist()) for s in (one, other))
    return mine == theirs and one.cells == other.cells


@given(REQUESTS)
def test_bytes_hold_all_of_a_slot(requests: Requests) -> None:
    """What was packed is there again."""
    one = slot(requests)
    assert same(unpack(one.at, one.span, pack(one, ROLLUPS.columns), ROLLUPS.columns), one)


@given(REQUESTS, REQUESTS, REQUESTS)
def test_the_merge_of_parts_is_the_whole(a: Requests, b: Requests, c: Requests) -> None:
    """Sums and sketches of merged slots are those of all their requests, whatever ids their names had."""
    whole = slot([*a, *b, *c])
    parts = merged([slot(a, "moo"), slot(b), slot(c, "zen", "acme")], MEASURE.bits, whole.at, whole.span)
    assert (parts.names, parts.cells) == (whole.names, whole.cells)
    assert parts.values[:, 0].tolist() == whole.values[:, 0].tolist()
    np.testing.assert_allclose(parts.values[:, QUEUE], whole.values[:, QUEUE], rtol=1e-12, atol=2e-6)


@given(st.lists(REQUESTS, min_size=1, max_size=5))
def test_merging_is_exact_in_any_grouping(parts: list[Requests]) -> None:
    """The merge of merges is the merge of all to the last bit."""
    slots = [slot(part) for part in parts]
    stepwise = slots[0]
    for one in slots[1:]:
        stepwise = merged([one, stepwise], MEASURE.bits, START, FIVE)
    assert same(merged(slots, MEASURE.bits, START, FIVE), stepwise)


@given(st.floats(0, 1e6))
def test_a_sum_is_kept_to_half_a_microsecond(seconds: float) -> None:
    """Rounding takes or adds at most 2^-21 s; counts are exact."""
    values = slot([("acme", seconds)]).values[0]
    assert abs(values[QUEUE] - seconds) <= 2.0**-21
    assert values[ROLLUPS.column("outcome_ok")] == 1


def test_rows_of_one_name_become_one() -> None:
    """Keys that are called the same, as all that have lost their names, are one row with one sketch."""
    closed = rollup(Names(), START, [("acme", 1.0), ("zen", 1.0), ("zen", 2.0)])
    one = made(closed, [("other",), ("other",)], MEASURE.bits, FIVE)
    assert (one.names, one.values[:, QUEUE].tolist(), one.cells.arrays()[1].tolist()) == ([("other",)], [4.0], [2, 1])


def test_a_column_that_comes_later_is_0_before() -> None:
    """Bytes written with other columns are read by name: new ones are 0, old ones that went are passed over."""
    before = Slot(0, FIVE, [("a",)], np.array([[3.0, 5.0]]), Cells())
    assert unpack(0, FIVE, pack(before, ["went", "stays"]), ["new", "stays"]).values.tolist() == [[0.0, 5.0]]


def test_other_bytes_are_damage() -> None:
    """Bytes that no slot was packed into are refused."""
    with pytest.raises(DamagedError):
        unpack(0, FIVE, b"other bytes", ROLLUPS.columns)
