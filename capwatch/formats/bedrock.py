"""AWS Bedrock: the model invocation log, one JSON object for each call.

Program: Amazon Bedrock runtime (InvokeModel, Converse, and their streams), `schemaVersion` 1.0.
Switched on: by model invocation logging, for an account and region, to S3 (gzipped JSON lines) or CloudWatch Logs. It
is off by default; text logging must be on, since times are inside the body, and callers should send `requestMetadata`.
Example: {"schemaType": "ModelInvocationLog", "timestamp": "2026-03-03T09:15:02Z", "requestId": "49169b94-…",
"operation": "ConverseStream", "modelId": "meta.llama3-1-70b-instruct-v1:0", "identity": {"arn": "…"},
"input": {"inputTokenCount": 312, "cacheReadInputTokenCount": 5888}, "output": {"outputTokenCount": 210,
"outputBodyJson": {"metrics": {"latencyMs": 4655}, …}}, "requestMetadata": {"tenant": "globex"}}
Units: milliseconds; the time is the arrival, to the second. Cached and newly cached tokens are outside
`inputTokenCount`, and added. The tenant is `requestMetadata.tenant`, `tenant_id` or `team`, else the role that called,
else the account.
Missing: the HTTP status; durations of calls whose body is not in the log (over 100 kB, images, embeddings, text
logging off) and of failures; time to the first token but for InvokeModelWithResponseStream; retries. The route is the
operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.fields import model
from capwatch.dialect.path import walk
from capwatch.dialect.settle import of_status
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.value import REFUSED, number, text
from capwatch.record import Request

BODY: Final = "output.outputBodyJson"
PATHS: Final[Paths] = {
    "request_id": ("requestId",),
    "started_at": ("timestamp",),
    "tenant": ("requestMetadata.tenant", "requestMetadata.tenant_id", "requestMetadata.team"),
    "route": ("operation",),
    "max_output_tokens": (
        *(f"input.inputBodyJson.{key}" for key in ("inferenceConfig.maxTokens", "max_tokens", "max_gen_len")),
        "input.inputBodyJson.textGenerationConfig.maxTokenCount",
    ),
    "output_tokens": ("output.outputTokenCount",),
}
PARTS: Final = {
    "prompt": ("input.inputTokenCount",),
    "read": ("input.cacheReadInputTokenCount",),
    "write": ("input.cacheWriteInputTokenCount",),
}
"""Three disjoint parts of the prompt."""
METRICS: Final = "amazon-bedrock-invocationMetrics"
LATENCY: Final = ("metrics.latencyMs", "metadata.metrics.latencyMs", f"{METRICS}.invocationLatency")
FIRST: Final = (f"{METRICS}.firstByteLatency",)
STOPPED: Final = ("stopReason", "messageStop.stopReason", "amazon-bedrock-guardrailAction")
GUARDED: Final = frozenset({"guardrail_intervened", "content_filtered", "INTERVENED"})
CODES: Final = {
    "ThrottlingException": "rate_limited",
    "ServiceQuotaExceededException": "rate_limited",
    "ModelTimeoutException": "timeout",
    "RequestTimeoutException": "timeout",
    "ValidationException": "client_error",
    "AccessDeniedException": "client_error",
    "ResourceNotFoundException": "client_error",
    "ConflictException": "client_error",
}
"""What an error code says; every other one is the service's own failure."""


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options, "ms")

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One invocation."""
        row = msgspec.json.decode(line)
        if not isinstance(row, dict):
            return Drop("malformed", "no JSON object")
        if text(row.get("schemaType")) not in (None, "ModelInvocationLog"):
            return Skip("another log of Bedrock")
        if "operation" not in row or "modelId" not in row:
            return Drop("malformed", "no invocation")
        request = self._table.read(row)
        events = _events(walk(row, BODY))
        table = self._table
        table.derive(request, model=model(_named(text(row["modelId"]) or "")))
        table.derive(request, stream="Stream" in str(row["operation"]))
        table.derive(request, duration_s=number(_last(events, LATENCY), 1e-3))
        table.derive(request, ttft_s=number(_last(events, FIRST), 1e-3))
        parts = {name: number(first_told(row, *paths)) for name, paths in PARTS.items()}
        table.derive(request, prompt_tokens=_sum(parts), cached_tokens=parts["read"])
        if request.tenant is None and "tenant" not in table.named:
            request.tenant = _caller(row)
        if request.outcome is None:
            _judge(request, text(row.get("errorCode")), guarded=_last(events, STOPPED) in GUARDED)
        return request


def _events(body: object) -> list[object]:
    """The body as its events: a stream is logged as a list of them, an answer is one, and S3 may hold it instead."""
    if isinstance(body, str):
        body = msgspec.json.decode(body) if body.startswith(("{", "[")) else None
    return body if isinstance(body, list) else [body]


def _last(events: list[object], paths: tuple[str, ...]) -> object:
    """What the last event tells that tells it: figures come at the end of a stream."""
    return next((found for event in reversed(events) if (found := first_told(event, *paths)) is not None), None)


def _sum(parts: Mapping[str, float | None]) -> float | None:
    known = [part for part in parts.values() if part is not None]
    return sum(known) if known else None


def _named(identifier: str) -> str:
    """The model behind an identifier: the last part of an ARN, else the whole."""
    return identifier.rpartition("/")[2] if identifier.startswith("arn:") else identifier


def _caller(row: object) -> str | None:
    """The role that called, or the account; a session's name is often a person's address and left out."""
    kind, _, name = (text(walk(row, "identity.arn")) or "").rpartition(":")[2].partition("/")
    return name.partition("/")[0] if kind == "assumed-role" and name else text(walk(row, "accountId"))


def _judge(request: Request, code: str | None, *, guarded: bool) -> None:
    if code is None:
        request.outcome = "content_filter" if guarded else "ok"
        return
    numeric = number(code)
    known = of_status(int(numeric)) if numeric not in (None, REFUSED) else "upstream_error"
    request.outcome = CODES.get(code, known)
    if request.outcome == "rate_limited":
        request.rate_limited_by = "upstream"


FORMAT = Format(
    name="bedrock",
    kind="gateway",
    title="AWS Bedrock model invocation log",
    reader=Lines,
)
