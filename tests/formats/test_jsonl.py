"""The dialect `jsonl`: whatever a line holds, it is a record, a skipped line or a drop with a reason."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from capwatch.dialect import Decoded, Decoder, Options
from capwatch.formats import shelf
from capwatch.record import Request
from tests.spine import NOW, Spine

WHOLE = '"finished_at":1772529302.43,"duration_s":2.31'


def decode(*lines: bytes | str, options: Options | None = None) -> Decoded:
    """What the lines tell."""
    data = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
    return Decoder(shelf()["jsonl"], options or Options()).decode(data + b"\n", NOW)


def record(line: bytes | str, zone: str = "UTC") -> Request:
    """The only record of a line."""
    decoded = decode(line, options=Options(zone=ZoneInfo(zone)))
    assert len(decoded.batch) == 1, decoded.fates
    return decoded.batch.row(0)


def fate(line: bytes | str) -> str:
    """What became of a line that is no record."""
    decoded = decode(line)
    assert len(decoded.batch) == 0
    return decoded.fates[0][0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"", "skip"),
        (b"   \t\r", "skip"),
        (b"\xff\xfe{}", "bad_utf8"),
        (b'{"tenant":"\xc3\x28",' + WHOLE.encode() + b"}", "bad_utf8"),
        (b"{" + WHOLE.encode() + b'}\0', "malformed"),
        (b'{"tenant":"a\0b",' + WHOLE.encode() + b"}", "malformed"),
        (b"\0" * 4096, "malformed"),
        ('{"finished_at":1772529302.43,"dura', "malformed"),
        ("{" + WHOLE + "}}", "malformed"),
        ("{" + WHOLE + ",}", "malformed"),
        ("{" + WHOLE + "} {" + WHOLE + "}", "malformed"),
        ('{"finished_at":01}', "malformed"),
        ("[1,2]", "malformed"),
        ("null", "malformed"),
        ('"text"', "malformed"),
        ("12", "malformed"),
        ("not JSON at all", "malformed"),
        ('{"x":' + "[" * 100_000 + "]" * 100_000 + "," + WHOLE + "}", "malformed"),
        ('{"x":' + '{"x":' * 100_000 + "1" + "}" * 100_000 + "," + WHOLE + "}", "malformed"),
        ('{"x":' + "9" * 5000 + ',"duration_s":"x",' + WHOLE + "}", "malformed"),
        ("{}", "bad_time"),
        ('{"tenant":"acme"}', "bad_time"),
        ('{"finished_at":0}', "bad_time"),
        ('{"finished_at":"yesterday"}', "bad_time"),
        ('{"finished_at":-5}', "bad_time"),
        ('{"finished_at":true}', "bad_time"),
        ('{"finished_at":1772529302430}', "bad_time"),
        ('{"finished_at":"2026-13-01T00:00:00Z"}', "bad_time"),
        ('{"finished_at":1772529302.43,"prompt_tokens":-5}', "bad_number"),
        ('{"finished_at":1772529302.43,"prompt_tokens":"12"}', "bad_number"),
    ],
)  # fmt: skip
def test_bad_lines_are_dropped_for_a_reason(line: bytes | str, expected: str) -> None:
    """Each costs itself alone."""
    assert fate(line) == expected
    decoded = decode("{" + WHOLE + "}", line, "{" + WHOLE + "}")
    assert (decoded.read, decoded.counted) == (3, 2)


@pytest.mark.parametrize(
    ("told", "name", "value"),
    [
        ('"duration_s":-1.5', "duration_s", None),
        ('"duration_s":NaN', "duration_s", None),
        ('"duration_s":Infinity', "duration_s", None),
        ('"duration_s":1e400', "duration_s", None),
        ('"duration_s":1e7', "duration_s", None),
        ('"duration_s":"2.3"', "duration_s", None),
        ('"duration_s":true', "duration_s", None),
        ('"duration_s":[2]', "duration_s", None),
        ('"duration_s":{"s":2}', "duration_s", None),
        ('"duration_s":-0', "duration_s", 0.0),
        ('"duration_s":0', "duration_s", 0.0),
        ('"duration_s":2e0', "duration_s", 2.0),
        ('"prompt_tokens":0', "prompt_tokens", None),
        ('"prompt_tokens":12.0', "prompt_tokens", 12),
        ('"prompt_tokens":12.5', "prompt_tokens", None),
        ('"prompt_tokens":' + "9" * 400, "prompt_tokens", None),
        ('"prompt_tokens":2000000000', "prompt_tokens", None),
        ('"prompt_tokens":"12"', "prompt_tokens", None),
        ('"prompt_tokens":5,"prompt_tokens":7', "prompt_tokens", 7),
        ('"prompt_tokens":5,"prompt_tokens":null', "prompt_tokens", None),
        ('"tenant":12', "tenant", "12"),
        ('"tenant":""', "tenant", None),
        ('"tenant":" - "', "tenant", None),
        ('"tenant":["a"]', "tenant", None),
        ('"tenant":"\\ud800"', "tenant", "\ud800"),
        ('"stream":"true"', "stream", True),
        ('"stream":1', "stream", None),
        ('"cache_hit":"yes"', "cache_hit", False),
        ('"cache_hit":true', "cache_hit", True),
        ('"outcome":"exploded"', "outcome", "ok"),
        ('"outcome":"timeout","status":200', "outcome", "timeout"),
        ('"status":503', "outcome", "upstream_error"),
        ('"status":"503"', "outcome", "upstream_error"),
        ('"status":"-"', "status", None),
        ('"status":1e300', "status", None),
        ('"status":-1', "status", None),
        ('"request_id":123', "request_id", "123"),
        ('"request_id":"null"', "request_id", None),
        ('"prompt":"a secret","x":{"y":[1]}', "tenant", None),
    ],
)
def test_a_field_that_is_no_good_is_absent(told: str, name: str, value: object) -> None:
    """Never 0, never a guess; the rest of the record stays."""
    request = record('{"finished_at":1772529302.43,"output_tokens":7,' + told + "}")
    assert (getattr(request, name), request.output_tokens, request.finished_at) == (value, 7, 1772529302.43)


@pytest.mark.parametrize(
    ("told", "zone", "expected"),
    [
        ("1772529302.43", "UTC", 1772529302.43),
        ('"1772529302.43"', "UTC", 1772529302.43),
        ('"2026-03-03T09:15:02.430Z"', "Europe/Berlin", 1772529302.43),
        ('"2026-03-03t09:15:02.430z"', "UTC", 1772529302.43),
        ('"2026-03-03T10:15:02.430+01:00"', "UTC", 1772529302.43),
        ('"2026-03-03T09:15:02.430"', "UTC", 1772529302.43),
        ('"2026-03-03T10:15:02.430"', "Europe/Berlin", 1772529302.43),
        ('"2026-03-03 10:15:02,430"', "Europe/Berlin", 1772529302.43),
        ('"2026-03-03T09:15:02.430000999Z"', "UTC", 1772529302.430001),
        ('"2026-10-25T02:30:00"', "Europe/Berlin", 1792888200.0),
    ],
)
def test_times_have_a_zone_or_get_that_of_the_source(told: str, zone: str, expected: float) -> None:
    """RFC 3339 or epoch seconds; in the hour that a clock repeats, the earlier one."""
    assert record('{"duration_s":1,"finished_at":' + told + "}", zone).finished_at == pytest.approx(expected, abs=1e-6)


def test_a_huge_line_is_a_record_like_others() -> None:
    """Its size is the reader's concern, not the dialect's: other keys are passed over."""
    line = "{" + WHOLE + ',"prompt":"' + "x" * 10_000_000 + '","tenant":"acme"}'
    assert record(line).tenant == "acme"


def test_nothing_but_named_fields_comes_out() -> None:
    """Not a text of the line beside them survives in what was decoded."""
    line = json.dumps({"finished_at": NOW, "messages": "CANARY", "CANARY": 1, "tenant": {"x": "CANARY"}, "model": None})
    decoded = decode(line)
    assert "CANARY" not in repr(decoded.batch.row(0)) + repr(decoded.fates)


def test_every_bad_line_together_adds_up() -> None:
    """Law 1 over a block of all of them, seen on the page."""
    bad: list[Any] = [b"", b"{", b"\xff", b"[]", b'{"tenant":1}', b'{"finished_at":5,"retries":-1}', b"\0"]
    spine = Spine()
    spine.feed(*bad, {"finished_at": NOW, "duration_s": 1.0}, *bad)
    lines = {name: spine.total(f"lines_{name}_total") for name in ("read", "counted", "skipped", "dropped")}
    assert lines == {"read": 15, "counted": 1, "skipped": 2, "dropped": 12}
