"""OpenTelemetry: GenAI spans and log records as OTLP JSON, an export with any number of them in each line.

Program: Whatever writes OTLP JSON lines: the collector's `file` exporter (`format: json`, without compression), the
Python SDK's `opentelemetry-exporter-otlp-json-file`. Semantic conventions for GenAI from before 1.28 to 1.44, and the
names of OpenLLMetry, OpenInference, LiteLLM and vLLM, which tells queue, prefill and decode of each request.
Switched on: by a `file` exporter behind the collector's `otlp` receiver, for spans or for log records (event
`gen_ai.client.inference.operation.details`), not both; content capture stays off. vLLM: `--otlp-traces-endpoint`.
Example: {"resourceSpans": [{"resource": {…}, "scopeSpans": [{"spans": [{"traceId": "10648238…", "spanId": "29e17c60…",
"parentSpanId": "947a4dff…", "name": "chat llama-3.1-70b", "startTimeUnixNano": "1772529300900000000",
"endTimeUnixNano": "1772529308840000000", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue":
"chat"}}, {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "1530"}}, …]}, …]}]}]}
Units: nanoseconds since the epoch, durations in attributes in seconds, tokens inclusive of cached ones (where more
are cached than asked, they were left out and are added). The tenant is `tenant.id` or `tenant`, others by `fields:`;
tenant, route and named ids are also taken from the spans around.

A call of a model is a request. Of calls inside each other the innermost one that tells tokens counts, since those
around it repeat them; agents and workflows are none. Spans of tools and retrievals are no requests: in a source with
`role: times` they complete the request of the same trace, or of the same id where `request_id` is named, that another
source counts; in any source, that of a request within whose time they lie. A stage inside a stage is a part of it.

Missing: the gateway's own time, retries but as calls of their own, the status unless it is an attribute; time to the
first token before version 1.41, but for vLLM and for OpenLLMetry's events of chunks. Log records tell no duration.
An aborted stream may carry no sign of it. A parent that comes in a later line than its child is known by their
common `gen_ai.response.id` alone. Exporters write in batches, seconds late: spans that complete another log's requests
should come before those are counted, so keep the batches short.
"""

from __future__ import annotations

from typing import Final

import msgspec

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.fields import status
from capwatch.dialect.settle import of_status
from capwatch.dialect.spans import Item, attributes, items
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.value import REFUSED, number, text
from capwatch.record import EngineSample, Request

LATENCY: Final = "gen_ai.latency"
PATHS: Final[Paths] = {
    "model": (
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.response.model",
        "llm.request.model",
        "llm.model_name",
    ),
    "stream": ("gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming"),
    "max_output_tokens": (
        "gen_ai.request.max_tokens",
        "gen_ai.request.max_completion_tokens",
        "llm.request.max_tokens",
    ),
    "prompt_tokens": (
        *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
        "llm.token_count.prompt",
    ),
    "cached_tokens": (
        *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        "llm.token_count.prompt_details.cache_read",
    ),
    "output_tokens": (
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"),
        "llm.token_count.completion",
    ),
    "ttft_s": (
        *("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token"),
        f"{LATENCY}.time_to_first_token",
    ),
    "queue_s": (f"{LATENCY}.time_in_queue",),
    "prefill_s": (f"{LATENCY}.time_in_model_prefill",),
    "decode_s": (f"{LATENCY}.time_in_model_decode",),
    "status": ("http.response.status_code", "http.status_code"),
}
AROUND: Final[Paths] = {
    "request_id": (),
    "attempt_group": (),
    "tenant": ("tenant.id", "tenant"),
    "route": ("http.route", "url.path", "http.target"),
    "priority": (),
}
"""What the spans around a call may tell of it, the nearest first."""
WRITTEN: Final = ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens")
IDS: Final = ("gen_ai.response.id", "gen_ai.request.id")
OPERATION: Final = ("gen_ai.operation.name", "llm.request.type", "openinference.span.kind", "traceloop.span.kind")
MODEL: Final = "model"
STAGES: Final = {"retrieval": "retrieval_s", "tool": "tool_s"}
KINDS: Final = {
    **dict.fromkeys(("chat", "text_completion", "completion", "generate_content", "responses", "llm"), MODEL),
    **dict.fromkeys(("embeddings", "embedding", "rerank", "reranker"), MODEL),
    **dict.fromkeys(("retrieval", "retriever"), "retrieval"),
    **dict.fromkeys(("execute_tool", "tool"), "tool"),
}
"""What an operation is; agents, workflows and chains are none of them."""
EMBEDS: Final = frozenset({"embeddings", "embedding", "rerank", "reranker"})
"""Calls of models that are a part of the retrieval around them."""
STORES: Final = frozenset({"chroma", "lancedb", "marqo", "milvus", "pinecone", "qdrant", "weaviate"})
"""Vector stores, as `db.system` calls them."""
CHUNKS: Final = frozenset({"gen_ai.content.completion.chunk", "llm.content.completion.chunk"})
EVENT: Final = "gen_ai.client.inference.operation.details"
WORDS: Final = (
    ("client_abort", ("cancel", "generatorexit", "disconnect", "client_closed")),
    ("timeout", ("timeout", "timed_out", "deadline")),
    ("rate_limited", ("ratelimit", "rate_limit", "resource_exhausted", "throttl", "quota")),
    ("content_filter", ("content_filter", "contentfilter", "contentpolicy", "content_policy", "guardrail")),
    (
        "client_error",
        ("badrequest", "invalid", "authentication", "permission", "notfound", "unprocessable", "conflict"),
    ),
)
"""Parts of error types, in the order of precedence; types are words of providers, and names of exceptions."""


class Lines(Stateless):
    """Reads one line at a time, each on its own."""

    def __init__(self, options: Options) -> None:
        fields = options.fields
        inner = {name: path for name, path in fields.items() if name not in AROUND}
        around = {name: path for name, path in fields.items() if name in AROUND}
        self._table = Table(PATHS, Options(inner, options.zone))
        self._around = Table(AROUND, Options(around, options.zone))

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One export: spans, log records or metrics."""
        found = msgspec.json.decode(line)
        if isinstance(found, dict) and "resourceSpans" in found:
            spans = items(found, "resourceSpans")
            records = [*self._spans(spans)]
        elif isinstance(found, dict) and "resourceLogs" in found:
            records = [self._event(one) for one in items(found, "resourceLogs") if _is_event(one)]
        elif isinstance(found, dict) and "resourceMetrics" in found:
            return Skip("metrics")
        else:
            return Drop("malformed", "no OTLP export")
        return records or Skip("no call of a model, a tool or a retrieval")

    def _spans(self, spans: list[Item]) -> list[Request | EngineSample]:
        kinds = {id(one): kind_of(one) for one in spans}
        calls = [one for one in spans if kinds[id(one)] == MODEL]
        counted = {id(one) for one in innermost(calls)}
        records: list[Request | EngineSample] = []
        for one in spans:
            kind = kinds[id(one)]
            if id(one) in counted:
                records.append(self._call(one))
            elif kind in STAGES and not any(kinds[id(above)] in STAGES for above in one.ancestors):
                inside = sum(
                    call.seconds for call in calls if id(call) in counted and one in call.ancestors and not embeds(call)
                )
                records.append(self._stage(one, STAGES[kind], max(one.seconds - inside, 0.0)))
        return records

    def _call(self, one: Item) -> Request:
        """The record of a call of a model."""
        request = self._request(one, self._table.read(one.attributes))
        answer = text(first_told(one.attributes, *IDS))
        request.dedupe_key = f"{one.trace} {answer or one.span}"
        if request.status is None and "status" not in self._table.named:
            request.status = status(first_told(one.attributes, "error.type"))
        if request.request_id is None and "request_id" not in self._around.named:
            request.request_id = answer or (f"{one.trace}-{one.span}" if one.span else None)
        if request.route is None and "route" not in self._around.named:
            request.route = text(first_told(one.attributes, *OPERATION[:2]))
        self._tokens(request, one)
        if request.ttft_s is None and request.stream and one.started_at not in (None, REFUSED):
            chunks = [number(event.get("timeUnixNano"), 1e-9) for event in _events(one) if event.get("name") in CHUNKS]
            at = min((chunk for chunk in chunks if chunk), default=None)
            self._table.derive(request, ttft_s=None if at is None else at - one.started_at)
        if request.outcome is None:
            request.outcome = outcome(one, request.status)
        return request

    def _stage(self, one: Item, field: str, seconds: float) -> Request:
        """The record of a tool or a retrieval: a part of a request that others tell of."""
        request = self._request(one, Request(part=True))
        request.dedupe_key = f"{one.trace} {one.span}"
        setattr(request, field, seconds)
        return request

    def _event(self, one: Item) -> Request:
        """The record of a log record: it is written at the end of the operation."""
        request = self._call(one)
        times = (number(one.raw.get(name), 1e-9) for name in ("timeUnixNano", "observedTimeUnixNano"))
        request.finished_at = next((at for at in times if at), None)
        return request

    def _request(self, one: Item, request: Request) -> Request:
        """What both have: times, the trace, and what the spans around tell."""
        request.started_at, request.finished_at = one.started_at, one.ended_at
        if None not in (one.started_at, one.ended_at) and one.ended_at < one.started_at:  # type: ignore[operator]
            request.finished_at = None  # the clock went back; the start is what the caller saw
        around: dict[str, object] = {}
        for above in (*reversed(one.ancestors), one):
            around |= {key: value for key, value in above.attributes.items() if value is not None}
        told = self._around.read(around)
        for name in AROUND:
            setattr(request, name, getattr(told, name))
        if request.attempt_group is None and "attempt_group" not in self._around.named:
            request.attempt_group = one.trace
        return request

    def _tokens(self, request: Request, one: Item) -> None:
        """Add cached tokens to a prompt that is told without them: it cannot be less than a part of it."""
        prompt, cached = request.prompt_tokens, request.cached_tokens
        written = number(first_told(one.attributes, *WRITTEN))
        if REFUSED in (prompt, cached, written) or prompt is None or cached is None:
            return
        if cached + (written or 0) > prompt:
            self._table.derive(request, prompt_tokens=prompt + cached + (written or 0))


def kind_of(one: Item) -> str | None:
    """`model`, `retrieval`, `tool`, or None for all else, such as agents and what lies around HTTP."""
    told = one.attributes
    operation = text(first_told(told, *OPERATION))
    if operation is not None:
        return KINDS.get(operation.lower())
    if told.get("mcp.method.name") == "tools/call":
        return "tool"
    if text(first_told(told, "db.system.name", "db.system")) in STORES:
        return "retrieval"
    asked = told.get("gen_ai.request.model") is not None and first_told(told, "gen_ai.system", "gen_ai.provider.name")
    return MODEL if tells_tokens(one) or asked else None


def embeds(one: Item) -> bool:
    """Whether a call of a model belongs to a retrieval."""
    return text(first_told(one.attributes, *OPERATION)) in EMBEDS


def tells_tokens(one: Item) -> bool:
    """Whether a span carries usage."""
    return first_told(one.attributes, *PATHS["prompt_tokens"], *PATHS["output_tokens"]) is not None


def innermost(calls: list[Item]) -> list[Item]:
    """Of calls inside each other: those with tokens that are around none with tokens; without any, the innermost."""
    told = [one for one in calls if tells_tokens(one)]
    repeating = {id(above) for one in told for above in one.ancestors}
    first = [one for one in told if id(one) not in repeating]
    taken = {id(one) for one in first}
    holding = {id(above) for one in calls for above in one.ancestors}
    silent = [one for one in calls if not tells_tokens(one) and id(one) not in holding]
    return first + [one for one in silent if not any(id(above) in taken for above in one.ancestors)]


def outcome(one: Item, code: int | None) -> str:
    """What the error's type, the status and the reasons for the end say together."""
    kinds = [first_told(one.attributes, "error.type")]
    kinds += [first_told(attributes(event), "exception.type") for event in _events(one)]
    kind = next((told for told in map(text, kinds) if told is not None), "").lower().replace(" ", "_")
    word = next((word for word, parts in WORDS if any(part in kind for part in parts)), None)
    word = word or (None if code is None else of_status(code))
    if word not in (None, "ok"):
        return word
    if kind or _failed(one.raw.get("status")):
        return "upstream_error"
    reasons = first_told(one.attributes, "gen_ai.response.finish_reasons")
    return "content_filter" if isinstance(reasons, list) and "content_filter" in reasons else "ok"


def _failed(status: object) -> bool:
    code = status.get("code") if isinstance(status, dict) else None
    return code in (2, "2", "STATUS_CODE_ERROR")


def _events(one: Item) -> list[dict[str, object]]:
    events = one.raw.get("events")
    return [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []


def _is_event(one: Item) -> bool:
    return EVENT in (one.raw.get("eventName"), one.attributes.get("event.name"))


FORMAT = Format(
    name="otlp",
    kind="gateway",
    title="OpenTelemetry GenAI spans and log records as OTLP JSON lines",
    reader=Lines,
    duplicates="the same trace and `gen_ai.response.id`, or without one the same span",
)
