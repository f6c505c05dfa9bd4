"""The envoy dialect: lines drawn anew are understood, and flags, statuses and rows mean what they should."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .compare import compare, options_of, run_case, sample_differences

AI = {
    "tenant": "x-tenant-id",
    "route": "x-envoy-origin-path",
    "model": "gen_ai.request.model",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "cached_tokens": "gen_ai.usage.cached_input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "ttft_s": "gen_ai.token_latency.ttft_ms",
}
START = 1772529300.0
ROW: dict[str, Any] = {
    "start_time": "2026-03-03T09:15:00.000Z",
    "duration": 2000,
    "method": "POST",
    "response_code": 200,
    "response_code_details": "via_upstream",
    "response_flags": "-",
    "upstream_host": "10.42.7.21:8000",
    "x-request-id": "r",
    "path": "/v1/chat/completions",
}


@pytest.mark.parametrize(
    ("name", "fields", "wrapper"),
    [
        ("gateways/envoy_ai_gateway.jsonl", AI, None),
        ("captured/envoy_access_json.jsonl", {"tenant": "tenant", "route": "path", "request_id": "request_id"}, None),
        ("gateways/k8s_cri.log", AI, "cri"),
        ("gateways/journald.jsonl", AI, "journald"),
    ],
)
def test_a_sample_is_understood(name: str, fields: dict[str, str], wrapper: str | None) -> None:
    """Every line of the shared samples has the expected outcome and record."""
    assert sample_differences(name, "envoy", fields, wrapper) == []


def understood(**changes: Any) -> dict[str, Any]:
    """What is understood of one line with changes; a change to None is null."""
    return run_case("envoy", options_of(), None, json.dumps(ROW | changes).encode())[0]


def record(**changes: Any) -> dict[str, Any]:
    """The record of one line with changes."""
    return understood(**changes)["record"]  # type: ignore[no-any-return]


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a line is to tell, as the record that is expected."""
    duration = draw(st.integers(2, 60_000))
    prompt = draw(st.none() | st.integers(1, 100_000))
    ttft = draw(st.none() | st.integers(1, duration - 1))
    return {
        "request_id": draw(st.uuids()).hex,
        "started_at": START + draw(st.integers(0, 999)) / 1000,
        "duration_s": duration / 1000,
        "tenant": draw(st.none() | st.sampled_from(["acme", "globex"])),
        "route": "/v1/responses",
        "model": draw(st.sampled_from(["llama-3.1-70b", "gpt-oss-120b"])),
        "stream": True if ttft else None,
        "ttft_s": ttft and ttft / 1000,
        "prompt_tokens": prompt,
        "cached_tokens": prompt and draw(st.none() | st.integers(0, prompt)),
        "output_tokens": prompt and draw(st.none() | st.integers(2, 5000)),
        "usage": "provider" if prompt else "missing",
        "status": 200,
        "outcome": "ok",
        "retries": draw(st.none() | st.integers(0, 4)),
        "cache_hit": False,
    }


def written(expected: dict[str, Any], style: str, seed: int) -> str:
    """A line that tells a record: typed, all texts with a dash for nothing, or without what is empty."""
    row = {
        "start_time": datetime.fromtimestamp(expected["started_at"], UTC).isoformat(timespec="milliseconds"),
        "duration": round(expected["duration_s"] * 1000),
        "method": "POST",
        "response_code": 200,
        "response_flags": None,
        "x-request-id": expected["request_id"],
        "x-tenant-id": expected["tenant"],
        "x-envoy-origin-path": "/v1/responses?api-version=1",
        "gen_ai.request.model": expected["model"],
        "gen_ai.token_latency.ttft_ms": expected["ttft_s"] and round(expected["ttft_s"] * 1000),
        "gen_ai.usage.input_tokens": expected["prompt_tokens"],
        "gen_ai.usage.cached_input_tokens": expected["cached_tokens"],
        "gen_ai.usage.output_tokens": expected["output_tokens"],
        "upstream_request_attempt_count": None if expected["retries"] is None else expected["retries"] + 1,
        "x-envoy-upstream-service-time": "7",
        "bytes_sent": 10,
        "foreign": {"gen_ai": {"usage": {"input_tokens": 5}}},
    }
    items = [(key, value) for key, value in row.items() if style != "sparse" or value is not None]
    if style == "texts":
        items = [(key, "-" if value is None else str(value)) for key, value in items]
    random.Random(seed).shuffle(items)
    return json.dumps(dict(items))


@settings(max_examples=80, deadline=None)
@given(told(), st.sampled_from(["typed", "texts", "sparse"]), st.integers(0, 1000))
def test_a_line_drawn_anew_is_understood(expected: dict[str, Any], style: str, seed: int) -> None:
    """Typed, all texts or without empty values, in any order, with foreign keys: the record is the same."""
    got = run_case("envoy", options_of(), None, written(expected, style, seed).encode())
    assert compare({"line": 1, "outcome": "record", "record": expected}, got[0]) == []


@pytest.mark.parametrize(
    ("code", "flags", "details", "outcome"),
    [
        (200, "-", "via_upstream", "ok"),
        (200, "DC", "via_upstream", "client_abort"),
        (0, "DC", "downstream_remote_disconnect", "client_abort"),
        (200, "-", "downstream_remote_disconnect", "client_abort"),
        (0, "UT", "", "timeout"),
        (504, "UT", "response_timeout", "timeout"),
        (408, "SI", "", "timeout"),
        (429, "RL", "request_rate_limited", "rate_limited"),
        (429, "URX", "via_upstream", "rate_limited"),
        (503, "UO", "upstream_reset_before_response_started{overflow}", "overload"),
        (503, "UH", "no_healthy_upstream", "overload"),
        (503, "URX", "via_upstream", "upstream_error"),
        (503, "UF,URX", "upstream_reset_before_response_started", "upstream_error"),
        (200, "UC", "upstream_reset_after_response_started", "upstream_error"),
        (404, "NR", "route_not_found", "client_error"),
        (503, "NC", "cluster_not_found", "gateway_error"),
        (500, "-", "ext_proc_error_gRPC_error_14", "gateway_error"),
        (500, "-", "via_upstream", "upstream_error"),
        (403, "UAEX", "ext_authz_denied", "client_error"),
        (200, "DC,UC", "via_upstream", "client_abort"),
    ],
)
def test_flags_details_and_status_give_the_outcome(code: int, flags: str, details: str, outcome: str) -> None:
    """By the precedence of the contract; of a 5xx the flags say who made it."""
    got = record(response_code=code, response_flags=flags, response_code_details=details)
    assert got["outcome"] == outcome


@pytest.mark.parametrize(
    ("changes", "limiter"),
    [
        ({"response_flags": "RL"}, "gateway"),
        ({"response_flags": "-"}, "upstream"),
        ({"response_flags": "-", "upstream_host": None}, "gateway"),
    ],
)
def test_who_limited(changes: dict[str, Any], limiter: str) -> None:
    """Envoy's own limiters set a flag; without an upstream nobody else can have."""
    assert record(response_code=429, **changes)["rate_limited_by"] == limiter


def test_a_header_time_is_no_first_token() -> None:
    """Servers flush headers at once."""
    got = record(response_duration=43, **{"x-envoy-upstream-service-time": "43"})
    assert "ttft_s" not in got


@pytest.mark.parametrize("tokens", [0, "0", None, "-"])
def test_no_usage_is_not_zero_tokens(tokens: object) -> None:
    """Costs that the provider never sent are printed as 0."""
    got = record(**{"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": tokens})
    assert [got.get("prompt_tokens"), got.get("output_tokens"), got["usage"]] == [None, None, "missing"]


@pytest.mark.parametrize(
    ("kind", "outcome"), [("DownstreamEnd", "record"), ("DownstreamPeriodic", "skip"), ("UpstreamEnd", "skip")]
)
def test_only_the_last_row_of_a_request_counts(kind: str, outcome: str) -> None:
    """Periodic rows tell of a request that goes on, upstream rows of one attempt."""
    assert understood(access_log_type=kind)["outcome"] == outcome


def test_a_tool_call_is_the_tool_phase() -> None:
    """Rows of the tool server: calls of tools are records, the protocol around them is none."""
    assert record(**{"mcp.method.name": "tools/call"})["tool_s"] == 2.0
    assert understood(**{"mcp.method.name": "initialize"})["outcome"] == "skip"


def test_who_only_reads_asks_no_model() -> None:
    """Lists of models and health checks are understood and no records."""
    assert understood(method="GET", path="/v1/models")["outcome"] == "skip"


@pytest.mark.parametrize(
    ("printed", "seconds"), [(250, 0.25), ("250", 0.25), ("250ms", 0.25), ("250000us", 0.25), ("2s", 2.0)]
)
def test_a_duration_may_carry_its_unit(printed: object, seconds: float) -> None:
    """Milliseconds, unless the format string printed a unit behind the number."""
    assert record(duration=printed)["duration_s"] == seconds


def test_the_operator_names_keys_and_units() -> None:
    """A mapped duration is in milliseconds, as all of Envoy's, unless a unit is given."""
    row = json.dumps(ROW | {"first": 500, "first_us": 700_000, "in": 12, "who": "acme"}).encode()
    fields = {"ttft_s": "first", "queue_s": "first_us:us", "prompt_tokens": "in", "tenant": "who"}
    got = run_case("envoy", options_of(fields), None, row)[0]["record"]
    assert [got["ttft_s"], got["queue_s"], got["prompt_tokens"], got["tenant"]] == [0.5, 0.7, 12, "acme"]


def test_the_text_format_tells_the_same() -> None:
    """Envoy's default format: start, request, status, flags, bytes, durations, quoted headers."""
    text = (
        '[2026-03-03T09:15:00.000Z] "POST /v1/chat/completions HTTP/2" 503 UO 10 20 2000 7'
        ' "203.0.113.7" "agent with \\"quotes" "r" "llm" "10.42.7.21:8000"'
    ).replace('\\"', "")
    got = run_case("envoy", options_of(), None, text.encode())[0]["record"]
    assert got == record(response_code=503, response_flags="UO")
