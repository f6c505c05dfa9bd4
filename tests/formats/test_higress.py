"""The higress dialect: lines drawn anew are understood, whatever types the plugin writes and however it ends."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .compare import compare, options_of, run_case, sample_differences

START = 1772529300.0


def test_the_sample_is_understood() -> None:
    """Every line of the shared sample has the expected outcome and record."""
    assert sample_differences("gateways/higress.jsonl", "higress", {"tenant": "ai_log.consumer"}) == []


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a line is to tell, as the record that is expected."""
    duration = draw(st.integers(2, 60_000))
    stream = draw(st.booleans())
    prompt = draw(st.none() | st.integers(1, 100_000))
    return {
        "request_id": str(draw(st.uuids())),
        "started_at": START + draw(st.integers(0, 999)) / 1000,
        "duration_s": duration / 1000,
        "tenant": draw(st.none() | st.sampled_from(["acme", "globex"])),
        "route": "/v1/chat/completions",
        "model": draw(st.sampled_from(["llama-3.1-70b", "qwen-turbo"])),
        "stream": stream,
        "ttft_s": draw(st.integers(1, duration - 1)) / 1000 if stream else None,
        "prompt_tokens": prompt,
        "cached_tokens": prompt and draw(st.none() | st.integers(0, prompt)),
        "output_tokens": prompt and draw(st.integers(2, 5000)),
        "usage": "provider" if prompt else "missing",
        "status": 200,
        "outcome": "ok",
        "retries": draw(st.none() | st.integers(0, 4)),
    }


def written(expected: dict[str, Any], style: str, seed: int) -> str:
    """A line that tells a record: the plugin writes numbers, texts as old ones did, or cached tokens as details."""
    ai = {
        "model": expected["model"],
        "response_type": "stream" if expected["stream"] else "normal",
        "input_token": expected["prompt_tokens"],
        "output_token": expected["output_tokens"],
        "llm_first_token_duration": expected["ttft_s"] and round(expected["ttft_s"] * 1000),
        "llm_service_duration": 1,
        "consumer": expected["tenant"],
        "answer": "never",
    }
    if style == "details":
        ai["input_token_details"] = json.dumps({"cached_tokens": expected["cached_tokens"]})
    else:
        ai["cached_tokens"] = expected["cached_tokens"]
    told = {name: str(value) if style == "texts" else value for name, value in ai.items() if value is not None}
    row = {
        "ai_log": json.dumps(told),
        "start_time": datetime.fromtimestamp(expected["started_at"], UTC).isoformat(timespec="milliseconds"),
        "duration": str(round(expected["duration_s"] * 1000)),
        "method": "POST",
        "path": "/v1/chat/completions?k=v",
        "request_id": expected["request_id"],
        "response_code": "200",
        "response_flags": "-",
        "upstream_request_attempt_count": "-" if expected["retries"] is None else str(expected["retries"] + 1),
        "upstream_service_time": "7",
    }
    items = list(row.items())
    random.Random(seed).shuffle(items)
    return json.dumps(dict(items))


@settings(max_examples=80, deadline=None)
@given(told(), st.sampled_from(["numbers", "texts", "details"]), st.integers(0, 1000))
def test_a_line_drawn_anew_is_understood(expected: dict[str, Any], style: str, seed: int) -> None:
    """Numbers or texts, in any order: the record is the same, and the header time is not in it."""
    got = run_case("higress", options_of(), None, written(expected, style, seed).encode())
    assert compare({"line": 1, "outcome": "record", "record": expected}, got[0]) == []


@pytest.mark.parametrize("ai", ["-", "", "{", '{"model": "m', "[1]", None, 7])
def test_a_plugin_that_says_nothing_costs_only_what_it_says(ai: object) -> None:
    """The request is counted, with its outcome and times."""
    row = {
        "ai_log": ai,
        "start_time": "2026-03-03T09:15:00Z",
        "duration": "250",
        "response_code": "200",
        "path": "/v1/x",
    }
    got = run_case("higress", options_of(), None, json.dumps(row).encode())[0]["record"]
    assert [got["duration_s"], got["outcome"], got["usage"], got.get("model")] == [0.25, "ok", "missing", None]
