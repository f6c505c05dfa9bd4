"""What each wrapper takes off a line, and what it makes of lines that are none of its own."""

from __future__ import annotations

import json
from math import inf

import pytest

from capwatch.dialect import Decoder, Drop, Options, Skip, Unwrapped
from capwatch.formats import shelf
from capwatch.wrappers import shelf as wrappers
from capwatch.wrappers.cri import Cri
from capwatch.wrappers.docker import Docker
from capwatch.wrappers.journald import Journald

AT = 1772529302.43


def test_the_shelf_finds_every_wrapper() -> None:
    """A module with a WRAPPER is on the shelf."""
    assert sorted(wrappers()) == ["cri", "docker", "journald"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"2026-03-03T09:15:02.430000190Z stdout F {}", b"{}"),
        (b"2026-03-03T14:45:02.430000001+05:30 stderr F:x a b ", b"a b "),
        (b"2026-03-03T09:15:02.43Z stdout F ", b""),
        (b"2026-03-03T09:15:02.43Z stdout F", b""),
    ],
)
def test_cri_takes_off_time_stream_and_tags(line: bytes, text: bytes) -> None:
    """The time may carry an offset, there may be more tags, the text may be empty."""
    found = Cri().unwrap(line)
    assert isinstance(found, Unwrapped)
    assert (found.line, round(found.at or 0, 6)) == (text, AT)


@pytest.mark.parametrize(
    "line", [b"", b"plain", b"2026-03-03T09:15:02Z stdout X a", b"2026-99-03T09:15:02Z stdout F a", b"{}"]
)
def test_what_is_no_cri_line_is_dropped(line: bytes) -> None:
    """It is malformed, since the source says that all of its lines are wrapped."""
    found = Cri().unwrap(line)
    assert isinstance(found, Drop)
    assert found.reason == "malformed"


def test_cri_joins_bytes_before_it_decodes() -> None:
    """Parts are cut at bytes: a letter may be cut in two, and the other stream may come between."""
    cri, letter = Cri(), "é".encode()
    head = b"2026-03-03T09:15:02.43Z "
    assert cri.unwrap(head + b"stdout P caf" + letter[:1]) is None
    assert cri.unwrap(head + b"stderr F other") == Unwrapped(b"other", AT)
    assert cri.unwrap(head + b"stdout F " + letter[1:]) == Unwrapped("café".encode(), AT)
    assert cri.released() == {"skip": 1}


def test_docker_takes_the_text_out_of_log() -> None:
    """One line feed goes, other keys do not matter."""
    line = {"log": "a\n\n", "stream": "stdout", "time": "2026-03-03T09:15:02.430000190Z", "attrs": {"x": "y"}}
    assert Docker().unwrap(json.dumps(line).encode()) == Unwrapped(b"a\n", AT)


def test_docker_joins_parts_without_a_line_feed() -> None:
    """Per stream; the time is that of the last part."""
    docker = Docker()
    assert docker.unwrap(b'{"log":"a","stream":"stdout","time":"2026-03-03T09:15:01Z"}') is None
    assert docker.unwrap(b'{"log":"x\\n","stream":"stderr"}') == Unwrapped(b"x", None)
    last = b'{"log":"b\\n","stream":"stdout","time":"2026-03-03T09:15:02.43Z"}'
    assert docker.unwrap(last) == Unwrapped(b"ab", AT)
    assert docker.released() == {"skip": 1}


@pytest.mark.parametrize("line", [b"plain", b'{"log": 5}', b'{"stream": "stdout"}', b'{"log": "cut', b"[]"])
def test_what_is_no_docker_line_is_dropped(line: bytes) -> None:
    """Text, another shape, a cut line."""
    found = Docker().unwrap(line)
    assert isinstance(found, Drop)
    assert found.reason == "malformed"


def entry(**fields: object) -> bytes:
    """A journal entry."""
    return json.dumps({"__REALTIME_TIMESTAMP": "1772529302430000", "_PID": "9", **fields}).encode()


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("a", b"a"),
        ([99, 97, 102, 195], b"caf\xc3"),
        ([27, 91, 51, 50, 109, 97, 27, 91, 48, 109], b"a"),
        (["first", "second"], b"first"),
        ([[97], [98]], b"a"),
        ([], b""),
    ],
)
def test_journald_takes_the_text_out_of_message(message: object, text: bytes) -> None:
    """A text, bytes (with a terminal's colours), the first of several values."""
    assert Journald().unwrap(entry(MESSAGE=message)) == Unwrapped(text, AT)


def test_the_time_of_the_sender_is_nearer() -> None:
    """The journal notes both."""
    line = entry(MESSAGE="a", _SOURCE_REALTIME_TIMESTAMP="1772529302420000")
    assert Journald().unwrap(line) == Unwrapped(b"a", 1772529302.42)


def test_a_message_that_the_journal_left_out_is_dropped() -> None:
    """`MESSAGE: null` was too large to export; the text says what to do."""
    assert Journald().unwrap(entry(MESSAGE=None)) == Drop("too_long", "MESSAGE is null: export with journalctl --all")


@pytest.mark.parametrize("line", [entry(), b"-- Boot 1 --", b""])
def test_an_entry_without_a_message_is_skipped(line: bytes) -> None:
    """Such entries, and the lines that journalctl prints between boots, are no records."""
    assert isinstance(Journald().unwrap(line), Skip)


def test_journald_joins_what_line_max_cut() -> None:
    """Per stream of the sender."""
    journald = Journald()
    assert journald.unwrap(entry(MESSAGE="a", _LINE_BREAK="line-max", _STREAM_ID="1")) is None
    assert journald.unwrap(entry(MESSAGE="x", _STREAM_ID="2")) == Unwrapped(b"x", AT)
    assert journald.unwrap(entry(MESSAGE="b", _STREAM_ID="1")) == Unwrapped(b"ab", AT)


@pytest.mark.parametrize("message", [5, {"a": 1}, [300], [[None]]])
def test_a_message_of_another_shape_costs_only_its_line(message: object) -> None:
    """It is malformed."""
    data = entry(MESSAGE=message) + b"\n" + entry(MESSAGE='{"finished_at": 1772529302}') + b"\n"
    decoded = Decoder(shelf()["jsonl"], Options(), Journald()).decode(data, 0.0)
    assert (decoded.counted, dict(decoded.dropped)) == (1, {"malformed": 1})


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("cri", b"2026-03-03T09:15:02.43Z stdout P a", b"2026-03-03T09:15:02.43Z stdout F b"),
        ("docker", b'{"log":"a"}', b'{"log":"b\\n"}'),
        ("journald", b'{"MESSAGE":"a","_LINE_BREAK":"line-max"}', b'{"MESSAGE":"b"}'),
    ],
)
def test_open_parts_are_part_of_the_state(name: str, first: bytes, last: bytes) -> None:
    """What one wrapper held, the next one joins; given up they are one partial line."""
    before, after, late = (wrappers()[name]() for _ in range(3))
    assert before.unwrap(first) is None
    for one in (after, late):
        one.load(before.save())
    whole = after.unwrap(last)
    assert isinstance(whole, Unwrapped)
    assert whole.line == b"ab"
    late.expire(inf)
    assert late.released() == {"skip": 0, "partial": 1}


@pytest.mark.parametrize("name", ["cri", "docker", "journald"])
def test_the_longest_line_is_given_to_the_factory(name: str) -> None:
    """`limits.line_bytes` bounds what is inside."""
    line = {
        "cri": b"2026-03-03T09:15:02.43Z stdout F 12345",
        "docker": b'{"log":"12345\\n"}',
        "journald": b'{"MESSAGE":"12345"}',
    }[name]
    assert wrappers()[name](line_bytes=4).unwrap(line) == Drop("too_long")
