"""Laws of every format on the shelf: whatever a line holds, it costs at most itself, and each line has one fate."""

from __future__ import annotations

import json
import math
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch import wrappers
from capwatch.dialect import Decoder, Options
from capwatch.dialect.decode import HELD
from capwatch.formats import shelf

from .compare import NEAR, Case, cases, differences, run_case

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.just("1" * 400),
    st.lists(st.integers(-5, 300), max_size=3),
    st.dictionaries(st.text(max_size=5), st.none(), max_size=2),
)


@cache
def seeds(name: str) -> list[bytes]:
    """The lines of a format's golden logs."""
    return [line for case in cases() if case.log.parent.name == name for line in case.log.read_bytes().splitlines()]


def paths(value: Any, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([before] if before else []), *(path for key, one in inner for path in paths(one, (*before, key)))]


@st.composite
def mutated(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    """A line with a value of another type, or with bytes changed, or cut."""
    line = draw(st.sampled_from(lines))
    if draw(st.booleans()):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        places = paths(found)
        if places:
            *way, key = draw(st.sampled_from(places))
            inner = found
            for step in way:
                inner = inner[step]
            inner[key] = draw(VALUES)
            return json.dumps(found).encode()
    start = draw(st.integers(0, len(line)))
    end = draw(st.integers(start, min(start + 8, len(line))))
    return (line[:start] + draw(st.binary(max_size=4)) + line[end:]).replace(b"\n", b"")


@pytest.mark.parametrize("name", shelf())
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_line_costs_more_than_itself(name: str, data: st.DataObject) -> None:
    """Read = counted + skipped + dropped, each line has one fate, and nothing is raised."""
    block = data.draw(st.lists(mutated(seeds(name)), min_size=1, max_size=4))
    decoder = Decoder(shelf()[name], Options())
    decoded = decoder.decode(b"\n".join([*block, b""]), NEAR)
    given_up = decoder.expire(math.inf)
    for one in (decoded, given_up):
        assert one.read == one.counted + one.skipped + one.dropped.total()
    assert decoded.read + given_up.read == len(block)
    assert decoded.counted + len(decoded.fates) == len(block)


@pytest.mark.parametrize("name", wrappers.shelf())
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_wrapped_line_costs_more_than_itself(name: str, data: st.DataObject) -> None:
    """The same inside a wrapper: parts are read when their record resolves, all but one as skipped."""
    wrapped = {
        "cri": [
            b"2026-03-03T09:15:02.4Z stdout P ab",
            b"2026-03-03T09:15:02.4Z stdout F c",
            b"2026-03-03T09:15:02.4Z stderr F:x ",
        ],
        "docker": [b'{"log":"a","stream":"stdout"}', b'{"log":"b\\n","stream":"stdout","time":"2026-03-03T09:15:02Z"}'],
        "journald": [
            b'{"MESSAGE":"a","_LINE_BREAK":"line-max","_STREAM_ID":"1"}',
            b'{"MESSAGE":[1,2]}',
            b'{"MESSAGE":["a"]}',
        ],
    }
    block = data.draw(st.lists(mutated(wrapped[name]), min_size=1, max_size=6))
    wrapper = wrappers.shelf()[name]()
    decoded = Decoder(shelf()["jsonl"], Options(), wrapper).decode(b"\n".join([*block, b""]), NEAR)
    held = sum(fate == HELD for fate, _ in decoded.fates.values())
    wrapper.expire(float("inf"))
    still_open = sum(wrapper.released().values())
    assert decoded.read == decoded.counted + decoded.skipped + decoded.dropped.total()
    assert decoded.read + still_open == len(block)
    assert still_open <= held


def shuffled(value: Any, rnd: random.Random, *, outer: bool = True) -> Any:
    """A JSON value whose objects have their keys in another order; the outer one has keys of nobody's."""
    if isinstance(value, dict):
        pairs = [(key, shuffled(one, rnd, outer=False)) for key, one in value.items()]
        pairs += [("x_nobody", {"status": 599, "model": "none"}), ("zz_nobody", [1])] * outer
        rnd.shuffle(pairs)
        return dict(pairs)
    return [shuffled(one, rnd, outer=False) for one in value] if isinstance(value, list) else value


def reordered(line: bytes, seed: int) -> bytes:
    """A line with the keys of its JSON object in another order; any other line as it is."""
    try:
        found = json.loads(line)
    except ValueError:
        return line
    one_spelling = isinstance(found, dict) and json.loads(line, object_pairs_hook=len) == len(found)  # no key twice
    return json.dumps(shuffled(found, random.Random(seed))).encode() if one_spelling else line


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.log.parent.name}/{case.log.stem}")
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_keys_and_foreign_keys_tell_nothing(case: Case, seed: int) -> None:
    """JSON objects are read by their keys: in any order, and with keys that nobody knows, the records are the same."""
    said = case.said()
    if said.get("wrapper"):
        pytest.skip("the keys inside a wrapper are those of the plain case")
    lines = [reordered(line, seed) for line in case.log.read_bytes().splitlines()]
    got = run_case(case.log.parent.name, case.options(), None, b"\n".join(lines), said.get("near", NEAR))
    assert differences(case.wanted(), got, exact=True) == []


def keys(line: bytes) -> list[str]:
    """The keys of a line that is a JSON object."""
    try:
        found = json.loads(line)
    except ValueError:
        return []
    return list(found) if isinstance(found, dict) else []


def without(line: bytes, key: str) -> bytes:
    """A JSON line without one of its keys."""
    return json.dumps({name: value for name, value in json.loads(line).items() if name != key}).encode()


def prompt_of(line: dict[str, Any]) -> dict[str, Any]:
    """What the record of a line tells of its prompt."""
    record = line.get("record", {})
    return {name: record[name] for name in ("prompt_tokens", "cached_tokens") if name in record}


GATEWAYS = [
    case for case in cases() if shelf()[case.log.parent.name].kind == "gateway" and not case.said().get("wrapper")
]


@pytest.mark.parametrize("case", GATEWAYS, ids=lambda case: f"{case.log.parent.name}/{case.log.stem}")
def test_a_missing_key_makes_nothing_up(case: Case) -> None:
    """Without any one of its keys a line tells less, or is none: no count of prompt tokens is new, and none is 0."""
    lines = case.log.read_bytes().splitlines()
    whole = {one["line"] - 1: prompt_of(one) for one in case.run() if one["outcome"] == "record" and "record" in one}
    less = [(at, without(lines[at], key)) for at in whole for key in keys(lines[at])]
    data = b"\n".join(line for _, line in less)
    found = run_case(case.log.parent.name, case.options(), None, data) if less else []
    assert [
        line for (at, line), one in zip(less, found, strict=True) if not prompt_of(one).items() <= whole[at].items()
    ] == []
