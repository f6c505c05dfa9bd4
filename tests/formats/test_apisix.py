"""The apisix dialect: JSON and text drawn anew tell the same, and times that mean something else are not believed."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .compare import compare, options_of, run_case, sample_differences

END = 1772529308


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("gateways/apisix_access.log", {}),
        ("gateways/apisix_filelogger.jsonl", {"tenant": "request.headers.x-tenant-id", "route": "request.uri"}),
    ],
)
def test_a_sample_is_understood(name: str, fields: dict[str, str]) -> None:
    """Every line of the shared samples has the expected outcome and record."""
    assert sample_differences(name, "apisix", fields) == []


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a line is to tell, as the record that is expected."""
    duration = draw(st.integers(50, 60_000))
    stream = draw(st.booleans())
    status = draw(st.sampled_from([200, 429, 500, 499]))
    ttft = draw(st.integers(1, duration - 1))
    counted = status == 200
    return {
        "finished_at": float(END),
        "duration_s": duration / 1000,
        "route": "/v1/chat/completions",
        "model": draw(st.sampled_from(["llama-3.1-70b", "gpt-oss-120b"])),
        "stream": stream,
        "ttft_s": ttft / 1000 if stream and status in (200, 499) else None,
        "prompt_tokens": draw(st.integers(1, 100_000)) if counted else None,
        "output_tokens": draw(st.integers(2, 5000)) if counted else None,
        "usage": "provider" if counted else "missing",
        "status": status,
        "outcome": {200: "ok", 429: "rate_limited", 500: "upstream_error", 499: "client_abort"}[status],
        "said_ttft": ttft,
    }


def as_json(expected: dict[str, Any], seed: int) -> str:
    """A line of a logger; untouched defaults are texts."""
    start = round((expected["finished_at"] - expected["duration_s"]) * 1000, 3)
    row = {
        "request": {"uri": "/v1/chat/completions?x=1", "method": "POST", "headers": {"authorization": "Bearer k"}},
        "response": {"status": expected["status"]},
        "upstream": "10.42.7.21:8000",
        "start_time": start,
        "latency": expected["duration_s"] * 1000,
        "llm_summary": {
            "model": expected["model"],
            "request_model": "asked",
            "duration": expected["said_ttft"],
            "stream": "true" if expected["stream"] else "false",
            "prompt_tokens": expected["prompt_tokens"] or "0",
            "completion_tokens": expected["output_tokens"] or "0",
            "total_tokens": expected["output_tokens"] or "0",
        },
    }
    items = list(row.items())
    random.Random(seed).shuffle(items)
    return json.dumps(dict(items))


def as_text(expected: dict[str, Any]) -> str:
    """A line of the access log by the documented format; before 3.18 errors have seconds where others have ms."""
    upstream = round(expected["duration_s"] * 1000) - 4
    kind = "ai_stream" if expected["stream"] else "ai_chat"
    shown = f"{upstream / 1000:.3f}" if expected["status"] in (429, 500) else str(upstream)
    return (
        f"203.0.113.7 - - [{datetime.fromtimestamp(END, UTC):%d/%b/%Y:%H:%M:%S +0000}] gw.example.internal"
        f' "POST /v1/chat/completions HTTP/1.1" {expected["status"]} 4148 {expected["duration_s"]:.3f} "-" "agent"'
        f' 10.42.7.21:8000 {expected["status"]} {shown} "http://vllm.svc/v1/chat/completions" "id"'
        f' "{kind}" "{expected["said_ttft"]}" "{expected["model"]}" "asked" '
        f' "{expected["prompt_tokens"] or 0}" "{expected["output_tokens"] or 0}"'
    )


@settings(max_examples=80, deadline=None)
@given(told(), st.booleans(), st.integers(0, 1000))
def test_a_line_drawn_anew_is_understood(expected: dict[str, Any], text: bool, seed: int) -> None:
    """The first chunk's time is one of good or aborted streams only; 0 tokens are none told."""
    line = as_text(expected) if text else as_json(expected, seed)
    wanted = {name: value for name, value in expected.items() if name != "said_ttft"}
    if text:
        wanted["gateway_s"] = 0.004
    got = run_case("apisix", options_of(), None, line.encode())
    assert compare({"line": 1, "outcome": "record", "record": wanted}, got[0]) == []


def test_what_a_client_sends_in_quotes_is_no_field() -> None:
    """A user agent may look like a pair of the operator's own."""
    line = as_text(
        {
            "finished_at": END,
            "duration_s": 1.0,
            "model": "m",
            "stream": True,
            "said_ttft": 5,
            "status": 200,
            "prompt_tokens": 1,
            "output_tokens": 1,
        }
    )
    got = run_case("apisix", options_of(), None, line.replace('"agent"', '"a consumer_name=other"').encode())[0][
        "record"
    ]
    assert "tenant" not in got
