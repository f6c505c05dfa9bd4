r"""LiteLLM proxy: what it tells of each request, and its own output around it.

Program: LiteLLM 1.x (read in 1.108 and 1.110). Reads three things, told apart line by line:

* standard logging payloads, one JSON object a line;
* SpendLogs rows: ISO times in UTC, `metadata` as object or text;
* the proxy's standard output, JSON (`json_logs: true`) or text: it tells of no request what capwatch needs, and is
  skipped, also a payload printed over many lines (`LITELLM_PRINT_STANDARD_LOGGING_PAYLOAD`).

Switched on: by a callback that appends `kwargs["standard_logging_object"]` (`deploy/litellm/capwatch_callback.py`), or
`callbacks: ["generic_api"]` (`ndjson`, and `json_array` line by line); SpendLogs by `GET /spend/logs`, or the table as
JSON lines.
Example: {"litellm_call_id": "49169b94-…", "trace_id": "b79096da-…", "startTime": 1772529302.4,
"endTime": 1772529307.055, "completionStartTime": 1772529302.586, "stream": true, "status": "success",
"model": "hosted_vllm/llama-3.1-70b", "prompt_tokens": 6200, "completion_tokens": 210, "metadata": {…}, …}
Units: epoch seconds; `*_ms` milliseconds.
Missing: rows of streams that clients left, in versions before mid-2026; tokens of failures; the HTTP status of
successes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from typing import Final, cast

import msgspec

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.fields import Mapped, model, output, status
from capwatch.dialect.route import route
from capwatch.dialect.value import REFUSED, flag, number, text, time
from capwatch.record import EngineSample, Request

Json = Mapping[str, object]

ROUTES: Final = {
    "completion": "/v1/chat/completions",
    "text_completion": "/v1/completions",
    "embedding": "/v1/embeddings",
    "responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "rerank": "/v1/rerank",
    "moderation": "/v1/moderations",
    "image_generation": "/v1/images/generations",
    "transcription": "/v1/audio/transcriptions",
    "speech": "/v1/audio/speech",
    "call_mcp_tool": "/mcp",
}
"""The route of a `call_type` (an `a` before it is the async variant), for versions that do not log the route."""
GENERATES: Final = frozenset({"completion", "text_completion", "responses", "anthropic_messages"})
"""Calls that write tokens, so that a cap on them means something."""
CAPS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample")
TENANTS: Final = (
    ("metadata", "user_api_key_team_alias"),
    ("metadata", "user_api_key_team_id"),
    ("row", "team_id"),
    ("metadata", "user_api_key_org_alias"),
    ("metadata", "user_api_key_org_id"),
    ("row", "organization_id"),
    ("metadata", "user_api_key_alias"),
)
"""Who pays, the most readable name first; never users or their addresses."""
PRIORITY: Final = "x-litellm-priority"
"""Header that becomes the tag `x-litellm-priority: high` by `extra_spend_tag_headers`."""
CLASSES: Final = {
    "ClientDisconnected": "client_abort",
    "Timeout": "timeout",
    "APITimeoutError": "timeout",
    "RateLimitError": "rate_limited",
    "BudgetExceededError": "rate_limited",
    "ContentPolicyViolationError": "content_filter",
    "GuardrailRaisedException": "content_filter",
    "ServiceUnavailableError": "upstream_error",
    "InternalServerError": "upstream_error",
    "BadGatewayError": "upstream_error",
    "APIConnectionError": "upstream_error",
}
"""Error classes that say more than the status code beside them."""
CODES: Final = {499: "client_abort", 408: "timeout", 504: "timeout", 429: "rate_limited"}
OPENERS: Final = frozenset({"{", "[{", "{}"})
"""First lines of payloads that are printed over many lines; their others are indented or closing brackets."""


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._mapped = Mapped(options.fields, options.zone)

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One payload, one row, or a line of output that is none."""
        if not line.startswith(("{", "[{")) or line.rstrip() in OPENERS:
            return Skip("line of the proxy's own output")
        found = _decoded(line)
        if isinstance(found, list):
            records: list[Request | EngineSample] = [self._request(row) for row in found if _is_row(row)]
            return records or Drop("malformed", "a list without payloads")
        if _is_row(found):
            return self._request(cast("Json", found))
        if isinstance(found, dict) and "message" in found and ("level" in found or "timestamp" in found):
            return Skip("line of the proxy's own output")
        return Drop("malformed", "neither payload nor SpendLogs row")

    def _request(self, row: Json) -> Request:
        meta, hidden = _object(row.get("metadata")), _object(row.get("hidden_params"))
        usage = _object(meta.get("usage_object")) or _object(hidden.get("usage_object"))
        request = Request(
            started_at=time(row.get("startTime"), UTC),
            finished_at=time(row.get("endTime"), UTC),
            duration_s=number(row.get("request_duration_ms"), 1e-3),
            gateway_s=number(
                _first(hidden.get("litellm_overhead_time_ms"), meta.get("litellm_overhead_time_ms")), 1e-3
            ),
            retries=number(meta.get("attempted_retries")),
            cache_hit=flag(row.get("cache_hit")) or False,
            prompt_tokens=number(row.get("prompt_tokens")),
            output_tokens=_output(row),
            cached_tokens=_cached(usage, meta),
        )
        tags = _tags(row.get("request_tags"))
        _identify(request, row, meta, tags)
        _stream(request, row)
        _judge(request, row, meta)
        _stages(request, row, meta)
        self._mapped.fill(request, {**row, "request_tags": tags})
        return request


def _is_row(found: object) -> bool:
    """Whether an object is a payload or a SpendLogs row: both have these keys in every version."""
    return isinstance(found, dict) and "startTime" in found and "call_type" in found


def _decoded(line: str) -> object:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return json.loads(line)  # Python writes NaN and Infinity, which are no JSON


def _object(value: object) -> Json:
    """An object, also one printed as JSON text; empty where there is none, which costs only what is in it."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = _decoded(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _first(*values: object) -> object:
    return next((value for value in values if text(value) is not None), None)


def _output(row: Json) -> float | None:
    return output(*(number(row.get(name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens")))


def _cached(usage: Json, meta: Json) -> float | None:
    details, added = _object(usage.get("prompt_tokens_details")), _object(meta.get("additional_usage_values"))
    keys = (details.get("cached_tokens"), usage.get("cache_read_input_tokens"), added.get("cache_read_input_tokens"))
    return number(_first(*keys))


def _identify(request: Request, row: Json, meta: Json, tags: Json) -> None:
    """Who asked whom for what. Only `litellm_call_id` is unique: other ids are the provider's and may repeat."""
    call = text(row.get("litellm_call_id"))
    other = text(_first(row.get("request_id"), row.get("id")))
    request.request_id = call or (other and other.partition("_cache_hit")[0])
    if other and not call:
        request.dedupe_key = f"{request.request_id} {request.started_at}"
    request.attempt_group = text(row.get("trace_id"))
    request.tenant = text(_first(*({"row": row, "metadata": meta}[place].get(name) for place, name in TENANTS)))
    kind = _kind(row)
    request.route = route(text(meta.get("user_api_key_request_route"))) or ROUTES.get(kind, kind or None)
    served, provider = text(row.get("model")), text(row.get("custom_llm_provider"))
    served = served.removeprefix(f"{provider}/") if served and provider else served
    request.model = model(served) or model(row.get("model_group"))
    headers = _object(meta.get("requester_custom_headers"))
    request.priority = text(_first(tags.get(PRIORITY), headers.get(PRIORITY)))


def _kind(row: Json) -> str:
    kind = text(row.get("call_type")) or ""
    return kind[1:] if kind[1:] in ROUTES else kind


def _tags(tags: object) -> Json:
    """Request tags of the form `name: value` by their name, and all of them by their place."""
    texts = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    named = {name.strip(): value.strip() for name, colon, value in (tag.partition(":") for tag in texts) if colon}
    return {**{str(i): tag for i, tag in enumerate(texts)}, **named}


def _stream(request: Request, row: Json) -> None:
    """Whether it was a stream, and its first chunk: the first token's time is the end's where none was ever noted."""
    asked = _object(row.get("model_parameters"))
    start, first, end = request.started_at, time(row.get("completionStartTime"), UTC), request.finished_at
    known = first not in (None, REFUSED) and start not in (None, REFUSED) and first != end
    told = _first_flag(row.get("stream"), asked.get("stream"))
    if told is None and known and "spend" in row:
        told = True  # SpendLogs has no word about streams, but a first token apart from the end
    request.stream = told
    if told and known:
        after = cast("float", first) - cast("float", start)
        request.ttft_s = after if after > 0 else None  # after a fallback the old attempt's first token came before
    given = next((asked[name] for name in CAPS if asked.get(name) is not None), None)
    request.max_output_tokens = number(given)
    generates = _kind(row) in GENERATES and isinstance(row.get("model_parameters"), dict)
    request.uncapped = generates and given is None and row.get("status") == "success"


def _first_flag(*values: object) -> bool | None:
    return next((told for told in map(flag, values) if told is not None), None)


def _judge(request: Request, row: Json, meta: Json) -> None:
    """Outcome and status: the error's class, then its code; the word "success" alone does not make an answer whole."""
    error = _object(row.get("error_information")) or _object(meta.get("error_information"))
    code, kind = status(error.get("error_code")), text(error.get("error_class")) or ""
    failed = text(_first(row.get("status"), meta.get("status"))) == "failure"
    if not (failed or kind or code):
        request.outcome = "ok"
        return
    request.status = code
    guard = _object(row.get("status_fields")).get("guardrail_status") == "guardrail_intervened"
    provider = text(error.get("llm_provider"))
    request.outcome = _outcome(kind, code, guard=guard, upstream=provider is not None)
    if request.outcome == "client_abort":
        request.usage = "estimated"  # the provider's count comes with the end that nobody waited for
    category = text(error.get("error_rate_limit_category")) or ""
    if category.startswith("litellm") or kind == "BudgetExceededError":
        request.rate_limited_by = "gateway"
    elif category.startswith("vendor") or provider:
        request.rate_limited_by = "upstream"


def _outcome(kind: str, code: int | None, *, guard: bool, upstream: bool) -> str:
    """The outcome of a failure, by the precedence of the contract: aborts and timers before refusals before errors."""
    word = CLASSES.get(kind) or CODES.get(code or 0)
    if word in ("client_abort", "timeout", "rate_limited"):
        return word
    if guard or word == "content_filter":
        return "content_filter"
    if code is not None and 400 <= code < 500:
        return "client_error"
    return word or ("upstream_error" if upstream else "gateway_error")


def _stages(request: Request, row: Json, meta: Json) -> None:
    """Seconds in vector stores and in tools; what was asked there is content and is not looked at."""
    if _kind(row) == "call_mcp_tool":
        start, end = request.started_at, request.finished_at
        request.tool_s = end - start if start and end and REFUSED not in (start, end) else None
    searches = meta.get("vector_store_request_metadata")
    if isinstance(searches, list):
        spans = [(number(one.get("start_time")), number(one.get("end_time"))) for one in map(_object, searches)]
        took = [end - start for start, end in spans if start and end and REFUSED not in (start, end) and end >= start]
        request.retrieval_s, request.retrieval_visits = (sum(took), len(took)) if took else (None, None)


FORMAT = Format(
    name="litellm",
    kind="gateway",
    title="LiteLLM proxy 1.x: standard logging payloads and SpendLogs rows as JSON lines",
    reader=Lines,
    duplicates="the same `litellm_call_id`, or without one the same id (less `_cache_hit…`) and start",
)
