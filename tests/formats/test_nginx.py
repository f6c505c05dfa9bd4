"""The nginx dialect: JSON and text drawn anew tell the same, broken JSON is mended, nobody can slip a field in."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.dialect import Decoder, Options
from capwatch.formats.nginx import FORMAT, mended

from .compare import compare, options_of, run_case, sample_differences

END = 1772529308


@pytest.mark.parametrize("fields", [{}, {"tenant": "tenant"}], ids=["by itself", "mapped"])
@pytest.mark.parametrize("name", ["gateways/nginx_json.jsonl", "captured/nginx_access_json.jsonl"])
def test_a_sample_is_understood(name: str, fields: dict[str, str]) -> None:
    """Every line of the shared samples has the expected outcome and record."""
    assert sample_differences(name, "nginx", fields) == []


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a line is to tell, as the record that is expected."""
    times = draw(st.lists(st.integers(1, 9000), min_size=1, max_size=3))
    inside = draw(st.integers(0, 50))
    prompt = draw(st.none() | st.integers(1, 100_000))
    statuses = [draw(st.sampled_from([502, 503])) for _ in times[1:]]
    return {
        "request_id": draw(st.uuids()).hex,
        "finished_at": float(END),
        "duration_s": (sum(times) + inside) / 1000,
        "gateway_s": inside / 1000,
        "tenant": draw(st.none() | st.sampled_from(["acme", "globex"])),
        "route": "/v1/chat/completions",
        "model": draw(st.none() | st.sampled_from(["llama-3.1-70b", "bge-m3"])),
        "prompt_tokens": prompt,
        "output_tokens": prompt and draw(st.integers(0, 5000)),
        "usage": "provider" if prompt else "missing",
        "ttft_s": None,
        "status": 200,
        "outcome": "ok",
        "retries": len(statuses),
        "variables": {
            "upstream_status": ", ".join(map(str, [*statuses, 200])),
            "upstream_response_time": ", ".join(f"{one / 1000:.3f}" for one in times),
            "upstream_header_time": "0.001",
            "request_time": f"{(sum(times) + inside) / 1000:.3f}",
            "request_completion": "OK",
        },
    }


def written(expected: dict[str, Any], style: str, seed: int) -> str:
    """A line that tells a record: all texts, numbers without quotes where that is JSON, bare, or text with pairs."""
    row = expected["variables"] | {
        "request_id": expected["request_id"],
        "tenant": expected["tenant"] or "",
        "model": expected["model"] or "",
        "prompt_tokens": str(expected["prompt_tokens"] or ""),
        "output_tokens": "" if expected["output_tokens"] is None else str(expected["output_tokens"]),
    }
    order = random.Random(seed)
    if style == "text":
        pairs = [f'{name}="{value}"' for name, value in row.items()]
        order.shuffle(pairs)
        at = datetime.fromtimestamp(END, UTC)
        head = f'203.0.113.7 - - [{at:%d/%b/%Y:%H:%M:%S +0000}] "POST /v1/chat/completions HTTP/1.1" 200 4388'
        return f'{head} "-" "curl tenant=other status=500" {" ".join(pairs)}'
    row |= {
        "msec": f"{END}.000",
        "request_method": "POST",
        "request_uri": "/v1/chat/completions?key=k",
        "status": "200",
    }
    items = [*row.items(), ("foreign", "x")]
    order.shuffle(items)
    bare = {"texts": (), "bare": ("upstream_response_time", "request_time", "status", "msec", "prompt_tokens")}[style]
    return "{" + ",".join(f'"{name}":' + (value if name in bare else json.dumps(value)) for name, value in items) + "}"


@settings(max_examples=120, deadline=None)
@given(told(), st.sampled_from(["texts", "bare", "text"]), st.integers(0, 1000))
def test_a_line_drawn_anew_is_understood(expected: dict[str, Any], style: str, seed: int) -> None:
    """With or without quotes, as JSON or as text, in any order: the record is the same; headers are no first token."""
    wanted = {name: value for name, value in expected.items() if name != "variables"}
    got = run_case("nginx", options_of(), None, written(expected, style, seed).encode())
    assert compare({"line": 1, "outcome": "record", "record": wanted}, got[0]) == []


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=6), st.one_of(st.text(), st.integers(), st.none(), st.floats(allow_nan=False)), max_size=5
    )
)
def test_what_is_json_is_not_changed(row: dict[str, Any]) -> None:
    """Mending is for lines that are none; on others it would only take care of bytes, which JSON has no escape for."""
    line = json.dumps(row)
    assert json.loads(mended(line)) == row


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({}, {}, True),
        ({}, {"msec": "1772529308.001"}, False),
        ({}, {"connection": "18"}, False),
        ({"connection_requests": "1"}, {"connection_requests": "2"}, False),
        ({"connection": None}, {"connection": None}, False),
        ({"request_id": "a"}, {"request_id": "b"}, False),
        ({"request_id": "a"}, {"request_id": "a", "connection": "18"}, True),
    ],
)
def test_rows_without_an_id_are_told_apart_by_all_that_they_have(
    one: dict[str, Any], other: dict[str, Any], same: bool
) -> None:
    """A burst within a millisecond is no repetition, unless the connection says so."""
    row = {
        "msec": "1772529308.000",
        "uri": "/v1/x",
        "status": "429",
        "request_time": "0.000",
        "bytes_sent": "180",
        "connection": "17",
    }
    lines = [json.dumps(row | change).encode() for change in (one, other)]
    keys = list(Decoder(FORMAT, Options()).decode(b"\n".join(lines), END).batch.dedupe_key)
    assert (keys[0] is not None and keys[0] == keys[1]) is same
