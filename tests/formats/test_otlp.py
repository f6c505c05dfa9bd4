"""The otlp dialect: which spans are requests, what lies around them, and what their errors mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .compare import CASES, options_of, read_lines, run_case

START = 1772529300
TRACE = "0af7651916cd43dd8448eb211c80319c"
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
USED = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20}
KINDS = {str: "stringValue", bool: "boolValue", float: "doubleValue"}


def attributes(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP spells them: whole numbers as texts."""
    values = {
        key: {KINDS[type(one)]: one} if type(one) in KINDS else {"intValue": str(one)} for key, one in told.items()
    }
    return [{"key": key, "value": value} for key, value in values.items()]


def span(
    one: str, told: dict[str, Any], parent: str = "", begin: float = 0, end: float = 2, **more: Any
) -> dict[str, Any]:
    """A span with an id, attributes, a parent and times in seconds from `START`."""
    times = {"startTimeUnixNano": str(round((START + begin) * 1e9)), "endTimeUnixNano": str(round((START + end) * 1e9))}
    return {"traceId": TRACE, "spanId": one, "parentSpanId": parent, **times, "attributes": attributes(told), **more}


def understood(*spans: dict[str, Any], fields: dict[str, str] | None = None, resource: Any = None) -> dict[str, Any]:
    """What is understood of a line with these spans."""
    around = {"resource": {"attributes": attributes(resource or {})}, "scopeSpans": [{"spans": list(spans)}]}
    return run_case("otlp", options_of(fields), None, json.dumps({"resourceSpans": [around]}).encode())[0]


def records(*spans: dict[str, Any], **how: Any) -> list[dict[str, Any]]:
    """The records of a line with these spans."""
    got = understood(*spans, **how)
    return got.get("records", [got["record"]] if "record" in got else [])  # type: ignore[no-any-return]


def ids(*spans: dict[str, Any]) -> list[str]:
    """The spans that are requests."""
    return [one["request_id"].removeprefix(f"{TRACE}-") for one in records(*spans)]


@pytest.mark.parametrize("order", [1, -1], ids=["parents first", "children first"])
def test_usage_inside_usage_counts_once(order: int) -> None:
    """Of nested calls with tokens only the innermost is a request, in whatever order they are exported."""
    spans = [
        span("a", CHAT | USED),
        span("b", CHAT | USED, "a"),
        span("c", CHAT | USED, "b"),
        span("d", CHAT | USED, "a"),
    ]
    assert sorted(ids(*spans[::order])) == ["c", "d"]


def test_an_agent_around_calls_is_no_request() -> None:
    """Its tokens are those of its calls."""
    agent = {"gen_ai.operation.name": "invoke_agent", **USED}
    assert ids(span("a", agent), span("b", CHAT | USED, "a"), span("c", CHAT | USED, "a")) == ["b", "c"]
    assert ids(span("a", agent)) == []


def test_a_call_inside_that_tells_no_tokens_repeats_the_one_around() -> None:
    """An HTTP client's span of the same call, say; the one with the tokens counts."""
    assert ids(span("a", CHAT | USED), span("b", CHAT, "a")) == ["a"]
    assert ids(span("a", CHAT), span("b", CHAT, "a")) == ["b"]


def test_a_failed_attempt_beside_the_good_one_is_a_request() -> None:
    """The span around both repeats the good one."""
    failed = CHAT | {"error.type": "503"}
    assert ids(span("a", CHAT | USED), span("b", failed, "a"), span("c", CHAT | USED, "a")) == ["c", "b"][::-1]


def test_spans_in_a_circle_end() -> None:
    """An exporter's error costs no time without end."""
    assert len(records(span("a", CHAT, "b"), span("b", CHAT, "a"))) <= 2


def test_labels_come_from_the_spans_around() -> None:
    """The nearest first; the server's span knows tenant and route, the client's the model."""
    server = span("a", {"tenant.id": "acme", "http.route": "/v1/answers"})
    got = records(server, span("b", CHAT, "a"), span("c", CHAT | {"tenant.id": "globex"}, "a"))
    assert [(one["tenant"], one["route"]) for one in got] == [("acme", "/v1/answers"), ("globex", "/v1/answers")]


def test_named_attributes_may_be_of_the_resource_or_around() -> None:
    """`fields:` reach all of them; numbers only the span's own."""
    fields = {"tenant": "app.customer", "request_id": "http.request.header.x-request-id", "queue_s": "wait.ms:ms"}
    server = span("a", {"http.request.header.x-request-id": "r-1", "wait.ms": 70})
    got = records(server, span("b", CHAT | {"wait.ms": 250}, "a"), fields=fields, resource={"app.customer": "acme"})
    assert [got[0]["tenant"], got[0]["request_id"], got[0]["queue_s"]] == ["acme", "r-1", 0.25]


STAGES: list[tuple[dict[str, Any], str]] = [
    ({"gen_ai.operation.name": "execute_tool"}, "tool_s"),
    ({"mcp.method.name": "tools/call"}, "tool_s"),
    ({"traceloop.span.kind": "tool"}, "tool_s"),
    ({"openinference.span.kind": "TOOL"}, "tool_s"),
    ({"gen_ai.operation.name": "retrieval"}, "retrieval_s"),
    ({"openinference.span.kind": "RETRIEVER"}, "retrieval_s"),
    ({"db.system": "qdrant"}, "retrieval_s"),
    ({"db.system.name": "milvus"}, "retrieval_s"),
]


@pytest.mark.parametrize(("told", "field"), STAGES)
def test_a_stage_is_a_part(told: dict[str, Any], field: str) -> None:
    """A tool or a retrieval has its seconds and the trace, and is no request of its own."""
    (got,) = records(span("a", told, end=1.5))
    assert (got["part"], got[field], got["attempt_group"]) == (True, 1.5, TRACE)


@pytest.mark.parametrize(
    "told", [{"mcp.method.name": "tools/list"}, {"db.system": "postgresql"}, {"http.route": "/x"}, {}]
)
def test_other_spans_are_none(told: dict[str, Any]) -> None:
    """Understood, and no record."""
    assert understood(span("a", told))["outcome"] == "skip"


def test_a_stage_inside_a_stage_is_a_part_of_it() -> None:
    """The store's span under the retrieval is the same time again."""
    got = records(span("a", {"gen_ai.operation.name": "retrieval"}, end=2), span("b", {"db.system": "qdrant"}, "a"))
    assert [one["retrieval_s"] for one in got] == [2]


def test_a_tools_time_is_its_own() -> None:
    """What a model works inside it is a request's prefill and decode; embeddings belong to a retrieval."""
    tool = span("a", {"gen_ai.operation.name": "execute_tool"}, end=5)
    got = records(tool, span("b", CHAT | USED, "a", 1, 4))
    assert [one["tool_s"] for one in got if "tool_s" in one] == [2]
    search = span("a", {"gen_ai.operation.name": "retrieval"}, end=5)
    got = records(search, span("b", {"gen_ai.operation.name": "embeddings", **USED}, "a", 1, 4))
    assert [one["retrieval_s"] for one in got if "retrieval_s" in one] == [5]


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ({"error.type": "429"}, "rate_limited"),
        ({"error.type": "503"}, "upstream_error"),
        ({"error.type": "504"}, "timeout"),
        ({"error.type": "timeout"}, "timeout"),
        ({"error.type": "openai.APITimeoutError"}, "timeout"),
        ({"error.type": "DEADLINE_EXCEEDED"}, "timeout"),
        ({"error.type": "RateLimitError"}, "rate_limited"),
        ({"error.type": "content_filter"}, "content_filter"),
        ({"error.type": "asyncio.CancelledError"}, "client_abort"),
        ({"error.type": "BadRequestError"}, "client_error"),
        ({"error.type": "_OTHER"}, "upstream_error"),
        ({"http.response.status_code": 429}, "rate_limited"),
        ({"http.status_code": 500}, "upstream_error"),
        ({"http.response.status_code": 200}, "ok"),
        ({}, "ok"),
    ],
)
def test_error_types_and_statuses(told: dict[str, Any], outcome: str) -> None:
    """A type is a status as text, a provider's word or the name of an exception."""
    assert records(span("a", CHAT | told))[0]["outcome"] == outcome


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"status": {"code": 2}}, "upstream_error"),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, "upstream_error"),
        ({"status": {"code": 1}}, "ok"),
        (
            {"events": [{"name": "exception", "attributes": attributes({"exception.type": "ReadTimeout"})}]},
            "timeout",
        ),
    ],
)
def test_a_failure_may_be_told_beside_the_attributes(more: dict[str, Any], outcome: str) -> None:
    """By the span's status, or by an event with the exception."""
    assert records(span("a", CHAT, **more))[0]["outcome"] == outcome


@pytest.mark.parametrize(
    ("prompt", "cached", "written", "expected"),
    [(100, 40, 0, 100), (100, 100, 0, 100), (24, 4096, 5000, 9120), (100, 40, 80, 220), (100, None, None, 100)],
)
def test_a_prompt_without_its_cached_tokens_is_completed(
    prompt: int, cached: int | None, written: int | None, expected: int
) -> None:
    """Parts that are more than the whole were left out of it."""
    told = {"gen_ai.usage.input_tokens": prompt, "gen_ai.usage.output_tokens": 1}
    told |= {} if cached is None else {"gen_ai.usage.cache_read.input_tokens": cached}
    told |= {} if written is None else {"gen_ai.usage.cache_creation.input_tokens": written}
    assert records(span("a", CHAT | told))[0]["prompt_tokens"] == expected


@pytest.mark.parametrize(
    ("prompt", "output"),
    [
        ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        ("llm.usage.prompt_tokens", "llm.usage.completion_tokens"),
        ("llm.token_count.prompt", "llm.token_count.completion"),
    ],
)
def test_old_and_new_names_of_tokens(prompt: str, output: str) -> None:
    """Before and after version 1.28, and those of others; a span with tokens and no operation is a call."""
    got = records(span("a", {prompt: 100, output: 20}))[0]
    assert (got["prompt_tokens"], got["output_tokens"]) == (100, 20)


def test_the_first_chunk_is_an_attribute_or_an_event() -> None:
    """Seconds since the start; of streams only."""
    events = [
        {"name": "gen_ai.content.completion.chunk", "timeUnixNano": str(round((START + at) * 1e9))} for at in (1, 0.5)
    ]
    stream = CHAT | USED | {"gen_ai.is_streaming": True}
    assert records(span("a", stream, events=events))[0]["ttft_s"] == 0.5
    assert (
        records(span("a", stream | {"gen_ai.response.time_to_first_chunk": 0.25}, events=events))[0]["ttft_s"] == 0.25
    )
    assert "ttft_s" not in records(span("a", CHAT | USED, events=events))[0]


def test_a_vllm_span_tells_every_phase() -> None:
    """By the id that the engine goes by, so that a gateway's row can be completed."""
    told = {
        f"gen_ai.latency.time_in_{name}": at
        for name, at in (("queue", 0.5), ("model_prefill", 0.25), ("model_decode", 1.0))
    }
    got = records(
        span("a", {"gen_ai.request.id": "chatcmpl-7e", "gen_ai.latency.time_to_first_token": 0.75, **told} | USED)
    )[0]
    assert [got[name] for name in ("request_id", "queue_s", "prefill_s", "decode_s", "ttft_s")] == [
        "chatcmpl-7e",
        0.5,
        0.25,
        1.0,
        0.75,
    ]


def test_one_bad_span_costs_itself() -> None:
    """The others of the line are records; a line with nothing else is dropped."""
    good, bad = (
        span("a", CHAT | USED),
        span("b", CHAT | USED) | {"startTimeUnixNano": "soon", "endTimeUnixNano": "later"},
    )
    assert len(records(good, bad, 7)) == 1  # type: ignore[arg-type]
    assert understood(bad)["outcome"] == "drop"


def test_the_sdks_own_output_tells_the_calls_that_were_made() -> None:
    """Captured: answers of 3 and 1 calls with 20 tokens each, two tools, two retrievals, two failures, one event."""
    lines = read_lines(CASES / "otlp" / "opentelemetry-sdk-1.45.2.expected.jsonl")
    told = [one for line in lines for one in line.get("records", [line["record"]] if "record" in line else [])]
    parts, calls = [one for one in told if one.get("part")], [one for one in told if not one.get("part")]
    assert [
        (one["tenant"], one["output_tokens"]) for one in calls if one["model"] == "llama-3.1-70b" and "tenant" in one
    ] == [
        *[("acme", 20)] * 3,
        ("globex", 20),
    ]
    assert [one["model"] for one in calls].count("bge-m3") == 2
    assert [one["outcome"] for one in calls if one["outcome"] != "ok"] == ["rate_limited", "timeout"]
    assert [len([one for one in parts if name in one]) for name in ("tool_s", "retrieval_s")] == [2, 2]
    streamed = [one for one in calls if one.get("stream") and "duration_s" in one]
    assert all(0.05 <= one["ttft_s"] < 0.08 < one["duration_s"] for one in streamed)  # the server waited 50 ms
    assert calls[-1]["request_id"] == "chatcmpl-0007"
