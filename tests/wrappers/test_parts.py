"""Joining parts of lines: per stream, bounded in bytes and age, remembered over a restart."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect import Drop
from capwatch.dialect.parts import LONGEST_OPEN_S, Parts


@given(st.lists(st.tuples(st.sampled_from("ab"), st.binary(max_size=5), st.booleans()), max_size=30))
def test_parts_join_per_stream(pieces: list[tuple[str, bytes, bool]]) -> None:
    """Each stream gives the lines that its own parts make; held parts and those released add up."""
    parts, got, expected, open_lines, held = Parts(1000), [], [], {"a": b"", "b": b""}, 0
    for stream, piece, last in pieces:
        whole = parts.add(stream, piece, last=last)
        held += whole is None
        got += [] if whole is None else [whole]
        open_lines[stream] += piece
        if last:
            expected.append(open_lines[stream])
            open_lines[stream] = b""
    released = parts.released().get("skip", 0)
    parts.expire(inf)
    given_up = parts.released()
    assert got == expected
    assert held == released + sum(given_up.values())


def test_a_line_that_grows_too_long_is_one_drop() -> None:
    """Its bytes go at once, its end is dropped, its parts are released, and the next line is whole again."""
    parts = Parts(10)
    ends = [parts.add("a", b"x" * 6, last=last) for last in (False, False, False, True)]
    assert ends == [None, None, None, Drop("too_long")]
    assert parts.save() == {}
    assert parts.released() == {"skip": 3}
    assert parts.add("a", b"next", last=True) == b"next"


def test_a_whole_line_that_is_too_long_is_dropped() -> None:
    """The bound is the line's, in one part or many."""
    assert Parts(10).add("a", b"x" * 11, last=True) == Drop("too_long")


def test_open_lines_together_hold_at_most_twice_a_line() -> None:
    """Many streams with open lines cost the one that would pass the bound."""
    parts = Parts(10)
    for stream in "abcd":
        parts.add(stream, b"x" * 8, last=False)
    ends = [parts.add(stream, b"", last=True) for stream in "abcd"]
    assert ends == [b"x" * 8, b"x" * 8, Drop("too_long"), Drop("too_long")]


def test_a_part_whose_end_never_comes_is_given_up() -> None:
    """One drop as partial, the other parts as skipped, once it was seen open for longer than the bound."""
    parts = Parts(10)
    parts.add("a", b"1", last=False)
    parts.add("a", b"2", last=False)
    parts.expire(1000.0)
    parts.expire(1000.0 + LONGEST_OPEN_S)
    assert parts.released() == {}
    parts.expire(1000.1 + LONGEST_OPEN_S)
    assert parts.released() == {"skip": 1, "partial": 1}
    assert parts.add("a", b"3", last=True) == b"3"


def test_open_lines_survive_a_restart() -> None:
    """Any bytes, in any encoding, cut anywhere."""
    before, after = Parts(100), Parts(100)
    before.add("a", b"caf\xc3", last=False)
    before.expire(5.0)
    after.load(before.save())
    assert after.add("a", b"\xa9", last=True) == "café".encode()
    assert after.released() == {"skip": 1}
