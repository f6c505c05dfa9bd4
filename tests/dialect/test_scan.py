"""The fast tier and the line tier are one dialect: whatever a line holds, both give the same settled record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capwatch.dialect import Decoder, Field, Options
from capwatch.dialect.fields import KINDS
from capwatch.formats.jsonl import FORMAT
from capwatch.record import Request

NOW = 1_772_529_300.0
SLOW = replace(FORMAT, scanner=None)
MAPPED = Options(
    {
        "tenant": Field("metadata.team.alias"),
        "route": Field("http.route"),
        "model": Field("model.name"),
        "ttft_s": Field("timing.ttft_ms", "ms"),
        "duration_s": Field("timing.total", "us"),
        "queue_s": Field("queue_ns", "ns"),
        "prompt_tokens": Field("usage.input"),
        "cached_tokens": Field("usage.input.cached"),
        "finished_at": Field("time.end", "ms"),
    },
    ZoneInfo("Europe/Berlin"),
)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5000),
    st.integers(),
    st.floats(),
    st.floats(0, 1e5),
    st.text(max_size=8),
    st.text(st.characters(codec=None), max_size=3),
    st.sampled_from(["12", "", " - ", "null", "ok", "true", "1772529300", "2026-03-03T10:15:08.840123999Z"]),
    st.sampled_from(["2026-03-03T10:15:08", "2026-10-25T02:30:00", "2026-03-03t10:15:08z", "0001-01-01T00:00:00Z"]),
    st.datetimes().map(lambda at: at.isoformat()),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["team", "alias", "input", "cached", "ttft_ms", "end", "x"]), inner, max_size=3
        ),
        st.dictionaries(st.sampled_from(["team", "alias"]), inner, max_size=2).map(json.dumps),
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *KINDS,
        *("metadata", "metadata.team.alias", "metadata.team", "http", "http.route", "model.name", "foreign"),
        *("timing", "timing.ttft_ms", "timing.total", "queue_ns", "time", "time.end"),
        *("usage", "usage.input", "usage.input.cached"),
    ]
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=8)


def read(form: Any, options: Options, *lines: bytes) -> list[tuple[int, Request] | tuple[str, str]]:
    """What a tier makes of lines: records with their lines, then fates."""
    decoded = Decoder(form, options).decode(b"\n".join([*lines, b""]), NOW)
    records = [(line, decoded.batch.row(row)) for row, line in enumerate(decoded.lines.tolist())]
    return [*records, *sorted((str(line), fate) for line, (fate, _) in decoded.fates.items())]


def agree(options: Options, *lines: bytes) -> None:
    """Both tiers say the same."""
    assert read(FORMAT, options, *lines) == read(SLOW, options, *lines)


@pytest.mark.parametrize("options", [Options(), MAPPED], ids=["own names", "mapped"])
@given(st.lists(OBJECTS, min_size=1, max_size=3))
@settings(max_examples=150)
def test_both_tiers_read_any_object_alike(options: Options, found: list[dict[str, Any]]) -> None:
    """Of any types, under flat and nested keys, in JSON texts inside."""
    agree(options, *(json.dumps(one).encode() for one in found))


@pytest.mark.parametrize("options", [Options(), MAPPED], ids=["own names", "mapped"])
@given(st.lists(OBJECTS, min_size=1, max_size=3), st.data())
@settings(max_examples=80)
def test_both_tiers_read_any_bytes_alike(options: Options, found: list[dict[str, Any]], data: st.DataObject) -> None:
    """Cut, changed, not ASCII, with keys twice."""
    block = b"\n".join(
        json.dumps(one, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass") for one in found
    )
    start = data.draw(st.integers(0, len(block)))
    end = data.draw(st.integers(start, min(start + 6, len(block))))
    agree(options, *(block[:start] + data.draw(st.binary(max_size=5)) + block[end:]).split(b"\n"))


@given(st.lists(st.sampled_from([b'"a"', b"1", b"null", b"{}", b"2.5"]), min_size=2, max_size=4))
@example([b"1", b"null"])
def test_of_a_key_told_twice_both_take_the_last(values: list[bytes]) -> None:
    """As JSON readers do."""
    body = b",".join(b'"duration_s":%b' % value for value in values)
    agree(Options(), b'{"finished_at":%d,%b}' % (NOW, body))


@pytest.mark.parametrize(
    "fields",
    [
        {"route": "tenant.route"},
        {"tenant": "meta", "route": "meta.route"},
        {"tenant": "meta.route.x", "route": "meta.route"},
        {"duration_s": "started_at"},
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        {"tenant": {"route": "r"}, "meta": {"route": "q"}},
        {"tenant": "a", "meta": "m"},
        {"meta": {"route": {"x": "y"}}},
        {"started_at": 2.5},
        {},
    ],
)
def test_paths_that_run_through_each_other_are_no_mistake(fields: dict[str, str], line: dict[str, Any]) -> None:
    """A key that two fields read in different ways is left to the reader; other lines stay fast."""
    options = Options({name: Field(path) for name, path in fields.items()})
    agree(options, json.dumps({"finished_at": NOW} | line).encode())


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ({"metadata.team.alias": "flat", "metadata": {"team": {"alias": "deep"}}}, "tenant", "flat"),
        ({"metadata": {"team.alias": "half"}}, "tenant", "half"),
        ({"metadata": {"team": {"alias": "deep"}}}, "tenant", "deep"),
        ({"metadata": '{"team": {"alias": "text"}}'}, "tenant", "text"),
        ({"metadata": {"team": '{"alias": "text"}'}}, "tenant", "text"),
        ({"tenant": "own"}, "tenant", None),
        ({"timing": {"ttft_ms": 412.3, "total": 2_310_007}}, "ttft_s", 0.4123),
        ({"timing": {"ttft_ms": 412.3, "total": 2_310_007}}, "duration_s", 2.310007),
        ({"queue_ns": 1_500_000_000}, "queue_s", 1.5),
        ({"usage": {"input": 12}}, "prompt_tokens", 12),
        ({"usage": {"input": "12"}, "queue_ns": 1}, "prompt_tokens", None),
    ],
)
def test_mapped_fields_are_found(line: dict[str, Any], name: str, value: object) -> None:
    """Flat keys first, then nested ones, JSON texts on the way; numbers in their unit."""
    body = json.dumps({"time": {"end": NOW * 1000}} | line).encode()
    for form in (FORMAT, SLOW):
        decoded = Decoder(form, MAPPED).decode(body, NOW)
        assert (getattr(decoded.batch.row(0), name), decoded.batch.row(0).finished_at) == (value, NOW)


def test_lines_the_fast_tier_leaves_keep_their_place() -> None:
    """Records stand in the order of the file, whichever tier read them."""
    lines = [b'{"finished_at":%d,"tenant":%b}' % (NOW, one) for one in (b"1", b'"b"', b"3", b'"d"')]
    decoded = Decoder(FORMAT, Options()).decode(b"\n".join(lines), NOW)
    assert [decoded.batch.row(row).tenant for row in range(4)] == ["1", "b", "3", "d"]


@pytest.mark.parametrize(
    "block",
    [
        b'{"a":1}{"tenant":"a"}\n{\n"tenant":"b"}\n',
        b'{"tenant":"a"}{"tenant":"b"}\n\n',
        b'{"tenant":"a"}\n{"tenant":"b"} {"tenant":"c"}\n',
        b'{"a":{}\n}\n{"tenant":"a"}{"tenant":"b"}\n',
        b'{"a":[{}\n,{}]}\n{"tenant":"a"}{"tenant":"b"}\n',
        b'{"a":"}\n{"}\n{"tenant":"a"}\n{"tenant":"b"}{"tenant":"c"}\n',
        b'\n{"tenant":"a"}\n',
        b'{"tenant":"a"}\r\n{"tenant":"b"}\r\n',
        b'{"tenant":"a"}\n{"tenant":"b"}',
        b'{"tenant":"\0"}\n{"tenant":"b"}\n',
        b'{"tenant":"\xc3"}\n{"tenant":"b"}\n',
        b"{}\n{}\n",
        b"}\n{\n",
    ],
)
def test_a_block_is_read_as_its_lines(block: bytes) -> None:
    """Values that share a line, or go on over several, are what they are when each line is read by itself."""
    agree(Options(), *block.removesuffix(b"\n").split(b"\n"))


@given(st.lists(st.sampled_from([b'{"tenant":"a"}', b'{"a":{}', b'{"a":[', b"{", b"}", b",", b" ", b"\n", b"]}"])))
@settings(max_examples=300)
def test_any_block_of_braces_is_read_as_its_lines(parts: list[bytes]) -> None:
    """Whatever is torn."""
    agree(Options(), *b"".join(parts).split(b"\n"))
