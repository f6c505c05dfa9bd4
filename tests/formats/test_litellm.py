"""The litellm dialect: payloads and rows drawn anew are understood, and each trap of its logs is known."""

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


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("gateways/litellm_slp.jsonl", {"tenant": "metadata.user_api_key_team_alias", "model": "model_group"}),
        ("gateways/litellm_stdout.log", {}),
        ("captured/litellm_proxy_json_logs.jsonl", {}),
        ("captured/litellm_standard_logging_payload.jsonl", {"tenant": "end_user", "model": "model_group"}),
    ],
)
def test_a_sample_is_understood(name: str, fields: dict[str, str]) -> None:
    """Every line of the shared samples has the expected outcome and record."""
    assert sample_differences(name, "litellm", fields) == []


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a payload or row is to tell, as the record that is expected."""
    duration = draw(st.integers(2, 60_000)) / 1000
    stream = draw(st.booleans())
    prompt = draw(st.integers(1, 100_000))
    output = draw(st.integers(2, 5000))
    return {
        "request_id": draw(st.uuids()).hex,
        "attempt_group": draw(st.uuids()).hex,
        "started_at": START,
        "duration_s": duration,
        "finished_at": START + duration,
        "tenant": draw(st.sampled_from(["acme", "globex", "team a"])),
        "route": "/v1/chat/completions",
        "model": draw(st.sampled_from(["llama-3.1-70b", "org/model:free"])),
        "stream": stream or None,
        "ttft_s": draw(st.integers(1, int(duration * 1000) - 1)) / 1000 if stream else None,
        "prompt_tokens": prompt,
        "cached_tokens": draw(st.none() | st.integers(0, prompt)),
        "output_tokens": output,
        "max_output_tokens": draw(st.none() | st.integers(1, 8192)),
        "gateway_s": draw(st.none() | st.integers(0, 2000).map(lambda ms: ms / 1000)),
        "usage": "provider",
        "outcome": "ok",
        "cache_hit": draw(st.booleans()),
    }


def shuffled(row: dict[str, Any], seed: int) -> str:
    """A line with its keys in any order and with keys of other versions among them."""
    row |= {
        "brand_new": {"messages": [1]},
        "saved_cache_cost": 0.0,
        "messages": [{"content": "text"}],
        "response": None,
    }
    items = list(row.items())
    random.Random(seed).shuffle(items)
    return json.dumps(dict(items))


def payload(record: dict[str, Any]) -> dict[str, Any]:
    """A standard logging payload that tells a record."""
    first = record["ttft_s"]
    cached = record["cached_tokens"]
    return {
        "id": "c1",
        "litellm_call_id": record["request_id"],
        "trace_id": record["attempt_group"],
        "call_type": "acompletion",
        "cache_hit": record["cache_hit"] or None,
        "stream": record["stream"],
        "status": "success",
        "custom_llm_provider": "hosted_vllm",
        "model": f"hosted_vllm/{record['model']}",
        "startTime": record["started_at"],
        "endTime": record["finished_at"],
        "completionStartTime": START + first if first else record["finished_at"],
        "response_time": 99.0,
        "prompt_tokens": record["prompt_tokens"],
        "completion_tokens": record["output_tokens"],
        "total_tokens": record["prompt_tokens"] + record["output_tokens"],
        "model_parameters": {"max_tokens": record["max_output_tokens"]},
        "hidden_params": {"litellm_overhead_time_ms": record["gateway_s"] and record["gateway_s"] * 1000},
        "metadata": {
            "user_api_key_team_alias": record["tenant"],
            "user_api_key_user_email": "u@example.invalid",
            "usage_object": {"prompt_tokens_details": {"cached_tokens": cached} if cached is not None else None},
        },
    }


@settings(max_examples=60, deadline=None)
@given(told(), st.integers(0, 1000))
def test_a_payload_drawn_anew_is_understood(record: dict[str, Any], seed: int) -> None:
    """Any values, any order of keys, keys of other versions among them."""
    got = run_case("litellm", options_of(), None, shuffled(payload(record), seed).encode())
    assert compare({"line": 1, "outcome": "record", "record": record}, got[0]) == []


@settings(max_examples=60, deadline=None)
@given(told(), st.integers(0, 1000), st.booleans())
def test_a_spend_logs_row_drawn_anew_is_understood(record: dict[str, Any], seed: int, as_text: bool) -> None:
    """ISO times without a zone are UTC, metadata is an object or its text, the column `cache_hit` is a word."""

    def iso(at: float) -> str:
        return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()

    row = payload(record)
    meta = {**row.pop("metadata"), "litellm_overhead_time_ms": row.pop("hidden_params")["litellm_overhead_time_ms"]}
    for name in ("startTime", "endTime", "completionStartTime"):
        row[name] = iso(row[name])
    del row["stream"], row["model_parameters"]
    row |= {"spend": 0.1, "cache_hit": str(record["cache_hit"]), "metadata": json.dumps(meta) if as_text else meta}
    record["max_output_tokens"] = None
    got = run_case("litellm", options_of(), None, shuffled(row, seed).encode())
    assert compare({"line": 1, "outcome": "record", "record": record}, got[0]) == []


def line(**changes: Any) -> dict[str, Any]:
    """One payload with changes: what is understood of it."""
    record = {**BASE, **{name: changes.pop(name) for name in list(changes) if name in BASE}}
    got = run_case(
        "litellm", options_of(changes.pop("fields", {})), None, json.dumps(payload(record) | changes).encode()
    )
    return got[0]["record"]  # type: ignore[no-any-return]


BASE: dict[str, Any] = {
    "request_id": "r",
    "attempt_group": "g",
    "started_at": START,
    "finished_at": START + 2.0,
    "tenant": "acme",
    "model": "m",
    "stream": True,
    "ttft_s": 0.5,
    "prompt_tokens": 100,
    "cached_tokens": None,
    "output_tokens": 10,
    "max_output_tokens": 64,
    "gateway_s": 0.01,
    "cache_hit": False,
}


def failure(
    code: str, kind: str, provider: str = "", category: str | None = None, status: str = "failure"
) -> dict[str, Any]:
    """What a payload with this error is understood as."""
    error = {"error_code": code, "error_class": kind, "llm_provider": provider, "error_rate_limit_category": category}
    return line(status=status, error_information=error)


@pytest.mark.parametrize(
    ("code", "kind", "provider", "outcome"),
    [
        ("499", "ClientDisconnected", "hosted_vllm", "client_abort"),
        ("", "ClientDisconnected", "", "client_abort"),
        ("408", "Timeout", "hosted_vllm", "timeout"),
        ("429", "RateLimitError", "hosted_vllm", "rate_limited"),
        ("400", "BudgetExceededError", "", "rate_limited"),
        ("400", "ContentPolicyViolationError", "azure", "content_filter"),
        ("400", "ProxyModelNotFoundError", "", "client_error"),
        ("401", "AuthenticationError", "", "client_error"),
        ("503", "ServiceUnavailableError", "hosted_vllm", "upstream_error"),
        ("500", "InternalServerError", "", "upstream_error"),
        ("502", "SomethingNew", "hosted_vllm", "upstream_error"),
        ("500", "KeyError", "", "gateway_error"),
        ("", "", "", "gateway_error"),
    ],
)
def test_an_error_gives_the_outcome(code: str, kind: str, provider: str, outcome: str) -> None:
    """The class says more than the code, and what no provider made is the gateway's."""
    assert failure(code, kind, provider)["outcome"] == outcome


def test_an_abort_is_an_abort_though_its_status_says_success() -> None:
    """LiteLLM logs a client that left as a success."""
    assert failure("499", "ClientDisconnected", status="success")["outcome"] == "client_abort"


def test_the_tokens_of_an_abort_are_estimates() -> None:
    """The provider counts at the end, which nobody waited for."""
    assert failure("499", "ClientDisconnected")["usage"] == "estimated"


@pytest.mark.parametrize(
    ("category", "provider", "limiter"),
    [
        ("litellm_rate_limit", "hosted_vllm", "gateway"),
        ("vendor_rate_limit", "", "upstream"),
        (None, "hosted_vllm", "upstream"),
        (None, "", None),
    ],
)
def test_who_limited(category: str | None, provider: str, limiter: str | None) -> None:
    """The category says it; without one a provider's error is the provider's."""
    assert failure("429", "RateLimitError", provider, category).get("rate_limited_by") == limiter


def test_response_time_is_never_latency() -> None:
    """`response_time` is the time to the first token in streams: only end minus start is the duration."""
    assert line(response_time=0.5)["duration_s"] == 2.0


def test_a_first_token_at_the_end_is_unknown() -> None:
    """The first token's time is the end's where none was noted, also of a stream with one token."""
    assert "ttft_s" not in line(output_tokens=1, completionStartTime=START + 2.0)


def test_a_first_token_before_the_start_is_unknown() -> None:
    """After a fallback older versions kept the time of the attempt before."""
    assert "ttft_s" not in line(completionStartTime=START - 1.0)


def test_zero_tokens_are_unknown_and_not_zero() -> None:
    """Counts default to 0."""
    record = line(prompt_tokens=0, output_tokens=0)
    assert [record.get("prompt_tokens"), record.get("output_tokens"), record["usage"]] == [None, None, "missing"]


def test_hidden_reasoning_is_output() -> None:
    """A total beyond its parts is reasoning that the provider does not list."""
    assert line(total_tokens=150)["output_tokens"] == 50


def test_a_response_cache_hit_keeps_its_request_id() -> None:
    """`id` gets a suffix on hits; without a call id the suffix goes."""
    record = line(litellm_call_id=None, id="chatcmpl-1_cache_hit1772529313.409", cache_hit="True")
    assert [record["request_id"], record["cache_hit"]] == ["chatcmpl-1", True]


def test_headers_copied_into_tags_can_be_mapped() -> None:
    """`extra_spend_tag_headers` writes `name: value` texts: a path names the header."""
    tags = ["User-Agent: curl", "x-tenant-id: acme-eu", "x-litellm-priority: high"]
    record = line(request_tags=tags, fields={"tenant": "request_tags.x-tenant-id"})
    assert [record["tenant"], record["priority"]] == ["acme-eu", "high"]


def test_a_request_without_a_cap_is_told() -> None:
    """Parameters without any cap, of a call that writes tokens and succeeded."""
    assert line(model_parameters={"stream": True})["uncapped"] is True
    assert "uncapped" not in line(model_parameters={}, call_type="aembedding")


def test_a_search_in_a_vector_store_is_retrieval() -> None:
    """Spans add up; one without an end is not counted."""
    searches = [
        {"start_time": 1.0, "end_time": 1.5, "query": "text"},
        {"start_time": 2.0},
        {"start_time": 3.0, "end_time": 3.25},
    ]
    meta = {"vector_store_request_metadata": searches}
    assert line(metadata=meta)["retrieval_s"] == 0.75


def test_a_tool_call_is_the_tool_phase() -> None:
    """`call_mcp_tool` rows take all their time in the tool."""
    assert line(call_type="call_mcp_tool")["tool_s"] == 2.0


def test_without_a_route_the_call_type_names_it() -> None:
    """Old versions log no route."""
    assert line(call_type="aembedding")["route"] == "/v1/embeddings"


def test_what_a_client_sent_as_model_may_be_prose() -> None:
    """A name with blanks is no name."""
    assert "model" not in line(model="hosted_vllm/tell me a story", model_group="tell me a story")
