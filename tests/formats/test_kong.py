"""The kong dialect: lines of every version drawn anew are understood, and the traps of its statistics are known."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .compare import compare, options_of, run_case, sample_differences

START = 1772529300.0
NAMES = {
    "3.6": ("ai-proxy", "prompt_token", "completion_token"),
    "3.8": ("ai-proxy-advanced", "prompt_tokens", "completion_tokens"),
    "3.9": ("proxy", "prompt_tokens", "completion_tokens"),
    "3.12": ("proxy", "prompt_tokens", "completion_tokens"),
}


def test_the_sample_is_understood() -> None:
    """Every line of the shared sample has the expected outcome and record."""
    fields = {"tenant": "consumer.custom_id", "route": "request.uri"}
    assert sample_differences("gateways/kong_filelog.jsonl", "kong", fields) == []


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a line is to tell, as the record that is expected of the newest version."""
    duration = draw(st.integers(20, 60_000))
    prompt = draw(st.integers(1, 100_000))
    stream = draw(st.booleans())
    return {
        "request_id": draw(st.uuids()).hex,
        "started_at": START + draw(st.integers(0, 999)) / 1000,
        "duration_s": duration / 1000,
        "gateway_s": draw(st.integers(0, 9)) / 1000,
        "tenant": draw(st.none() | st.sampled_from(["acme", "globex"])),
        "route": "/v1/chat/completions",
        "model": draw(st.sampled_from(["llama-3.1-70b", "gpt-oss-120b"])),
        "stream": stream,
        "ttft_s": draw(st.integers(10, duration - 1)) / 1000 if stream else None,
        "prompt_tokens": prompt,
        "cached_tokens": draw(st.none() | st.integers(0, prompt)),
        "output_tokens": draw(st.integers(2, 5000)),
        "usage": "provider",
        "status": 200,
        "outcome": "ok",
        "retries": draw(st.integers(0, 3)),
    }


def written(expected: dict[str, Any], version: str, seed: int) -> dict[str, Any]:
    """A line that tells a record, as a version writes it."""
    child, prompt, output = NAMES[version]
    usage = {prompt: expected["prompt_tokens"], output: expected["output_tokens"], "time_per_token": 23.2}
    meta = {"response_model": expected["model"], "request_model": "asked", "llm_latency": 5}
    if version == "3.12":
        usage["time_to_first_token"] = expected["ttft_s"] and round(expected["ttft_s"] * 1000)
        usage["prompt_tokens_details"] = {"cached_tokens": expected["cached_tokens"]}
        meta["request_mode"] = "stream" if expected["stream"] else "oneshot"
    row = {
        "started_at": round(expected["started_at"] * 1000),
        "latencies": {
            "kong": round(expected["gateway_s"] * 1000),
            "proxy": 3,
            "request": round(expected["duration_s"] * 1000),
        },
        "request": {"id": expected["request_id"], "uri": "/v1/chat/completions?key=k", "method": "POST"},
        "response": {
            "status": 200,
            "headers": {"content-type": "text/event-stream" if expected["stream"] else "application/json"},
        },
        "upstream_status": ", ".join(["503"] * expected["retries"] + ["200"]),
        "tries": [{}] * (expected["retries"] + 1),
        "consumer": expected["tenant"] and {"username": expected["tenant"]},
        "ai": {
            "ai-response-transformer": {"meta": {"response_model": "x"}, "usage": {prompt: 7, output: 9}},
            child: {"meta": meta, "usage": usage},
        },
    }
    items = list(row.items())
    random.Random(seed).shuffle(items)
    return dict(items)


@settings(max_examples=80, deadline=None)
@given(told(), st.sampled_from(sorted(NAMES)), st.integers(0, 1000))
def test_a_line_drawn_anew_is_understood(expected: dict[str, Any], version: str, seed: int) -> None:
    """By the names of each version; what a version does not tell stays unknown."""
    if version != "3.12":
        expected = expected | {"ttft_s": None, "cached_tokens": None}
    got = run_case("kong", options_of(), None, json.dumps(written(expected, version, seed)).encode())
    assert compare({"line": 1, "outcome": "record", "record": expected}, got[0]) == []


@pytest.mark.parametrize(
    ("prompt", "completion", "usage", "output"),
    [(0, 57, "estimated", 57), (0, 0, "missing", None), (None, 57, "estimated", 57), (12, 57, "provider", 57)],
)
def test_an_output_without_a_prompt_is_an_estimate(
    prompt: object, completion: int, usage: str, output: int | None
) -> None:
    """Kong counts characters where a stream brought no usage."""
    row = {
        "started_at": 1772529300000,
        "latencies": {"request": 900},
        "request": {},
        "response": {"status": 200},
        "ai": {"proxy": {"meta": {}, "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}},
    }
    got = run_case("kong", options_of(), None, json.dumps(row).encode())[0]["record"]
    assert [got["usage"], got.get("output_tokens"), got.get("prompt_tokens")] == [usage, output, prompt or None]
