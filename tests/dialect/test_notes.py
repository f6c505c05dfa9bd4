"""Deploy notes: what a line must have to be one, and what becomes of one that has it not."""

from __future__ import annotations

import json

import pytest

from capwatch.dialect import Decoder, Options
from capwatch.dialect.notes import FORMAT, LATEST, LONGEST
from capwatch.record import Note

GOOD = {"at": "2026-11-30T09:41:00Z", "text": "retrieval 4 → 8 chunks"}


def test_a_line_is_a_note() -> None:
    """Time as RFC 3339 or seconds, with a pool or about all; other keys are no matter."""
    lines = [GOOD, GOOD | {"at": 5.5, "pool": "chat", "by": "ci"}, GOOD | {"pool": None}]
    found = Decoder(FORMAT, Options()).decode(b"\n".join(json.dumps(line).encode() for line in lines), 0.0)
    text = str(GOOD["text"])
    assert [note for _, note in found.notes] == [
        Note(1796031660.0, None, text),
        Note(5.5, "chat", text),
        Note(1796031660.0, None, text),
    ]
    assert (found.read, found.counted, len(found.batch)) == (3, 3, 0)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"at": None}, "bad_time"),
        ({"at": "yesterday"}, "bad_time"),
        ({"at": -1}, "bad_time"),
        ({"at": LATEST + 1}, "bad_time"),
        ({"at": True}, "bad_time"),
        ({"text": None}, "malformed"),
        ({"text": " "}, "malformed"),
        ({"text": "x" * (LONGEST + 1)}, "malformed"),
        ({"text": "\ud800"}, "malformed"),
        ({"pool": 7}, "malformed"),
    ],
)
def test_what_is_none_is_dropped_with_a_reason(told: dict[str, object], reason: str) -> None:
    """And the lines around it stay."""
    line = json.dumps(GOOD | told).encode()
    found = Decoder(FORMAT, Options()).decode(b"\n".join([json.dumps(GOOD).encode(), line]), 0.0)
    assert (found.counted, dict(found.dropped)) == (1, {reason: 1})


@pytest.mark.parametrize("line", [b"[]", b"deployed", b'{"at": 5', b"[" * 100_000])
def test_what_is_no_object_is_malformed(line: bytes) -> None:
    """Whatever it is."""
    assert dict(Decoder(FORMAT, Options()).decode(line, 0.0).dropped) == {"malformed": 1}
