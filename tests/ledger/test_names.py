"""Ids for texts: given once, never again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capwatch.ledger import CLASS, OTHER, UNKNOWN, Axis, Names

TEXTS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12)


def test_unknown_and_other_have_ids_on_every_axis() -> None:
    """0 and 1."""
    names = Names()
    assert [names.id("tenant", text) for text in ("unknown", "other", "acme")] == [UNKNOWN, OTHER, 2]
    assert names.find("route", "acme") is None


@given(TEXTS)
def test_an_id_is_never_used_twice(steps: list[tuple[str, bool]]) -> None:
    """A name that went and comes again has a new one; the mirror that gets only the changes has the same names."""
    names, mirror = Names(), Names()
    given_: dict[int, str] = {}
    for text, leaves in steps:
        number = names.id("tenant", text)
        assert given_.setdefault(number, text) == text
        if leaves:
            names.forget("tenant", number)
        mirror.put(names.fresh())
        for axis, gone in names.gone():
            mirror.forget(axis, gone)
    assert dict(mirror.texts("tenant")) == dict(names.texts("tenant"))


def test_changes_are_told_once() -> None:
    """Fresh and gone names go with the next delta."""
    names = Names()
    names.id("tenant", "a")
    names.forget("tenant", 2)
    assert [names.fresh(), names.fresh()] == [[("tenant", 2, "a")], []]
    assert [names.gone(), names.gone()] == [[("tenant", 2)], []]


def test_a_copy_goes_its_own_way() -> None:
    """And gives the same ids from then on."""
    names = Names()
    names.id("tenant", "a")
    names.forget("tenant", names.id("tenant", "b"))
    twin = names.copy()
    assert (names.id("tenant", "c"), twin.id("tenant", "d"), twin.find("tenant", "c")) == (4, 4, None)


def test_a_name_that_no_key_has_room_for_is_other() -> None:
    """A key holds so many bits of each id: more would be another name's."""
    names = Names()
    numbers = [names.id(CLASS.name, str(n)) for n in range(1 << CLASS.bits)]
    assert numbers[-3:] == [(1 << CLASS.bits) - 1, OTHER, OTHER]
    assert names.id(CLASS.name, "0") == 2


def test_an_axis_can_be_full() -> None:
    """Its ids have a width."""
    axis, names = Axis("small", 2), Names()
    names.id("small", "a")
    before = names.full(axis)
    names.id("small", "b")
    assert (before, names.full(axis)) == (False, True)
