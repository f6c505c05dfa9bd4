"""Joining parts of lines: per stream, bounded in bytes and age, remembered over a restart."""

from __future__ import annotations

import tracemalloc
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect import Drop
from capwatch.dialect.parts import LONGEST_OPEN_S, MOST_OPEN, Parts


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


def test_open_lines_are_bounded_in_number() -> None:
    """Of more streams than can be, the oldest open line is given up: one drop, its other parts skipped."""
    parts = Parts(10_000)
    for number in range(MOST_OPEN + 1):
        parts.add(str(number), b"x", last=False)
        parts.add(str(number), b"y", last=False)
    assert (parts.released(), parts.held) == ({"skip": 1, "partial": 1}, 2 * MOST_OPEN)
    assert [parts.add(one, b"z", last=True) for one in ("0", "1")] == [b"z", b"xyz"]


def test_a_stream_of_any_name_is_one() -> None:
    """Names are hashed where they are long, so that they take no memory."""
    parts, long = Parts(100), "s" * 10_000
    parts.add(long + "a", b"1", last=False)
    parts.add(long + "b", b"2", last=False)
    assert len(repr(parts.save())) < 1000
    assert [parts.add(long + one, b"-", last=True) for one in "ab"] == [b"1-", b"2-"]


def test_parts_of_a_few_bytes_take_no_more_than_their_bytes() -> None:
    """As many empty parts as parts of one byte are one line of so many bytes."""
    parts = Parts(2 << 20)
    tracemalloc.start()
    try:
        for _ in range(1 << 17):
            parts.add("a", b"", last=False)
            parts.add("a", b"x", last=False)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (parts.held, most < 1 << 19) == (1 << 17, True)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=9), st.booleans()), max_size=40))
def test_what_is_held_is_what_is_saved(pieces: list[tuple[str, bytes, bool]]) -> None:
    """The count of bytes agrees with the open lines at every step, also after a restart, within the bound."""
    parts = Parts(12)
    for stream, piece, last in pieces:
        parts.add(stream, piece, last=last)
        saved = parts.save()
        again = Parts(12)
        again.load(saved)
        assert isinstance(saved, dict)
        assert parts.held == again.held == sum(len(text) for text, *_ in saved.values()) <= 24
