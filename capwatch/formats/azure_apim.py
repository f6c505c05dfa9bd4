"""Azure API Management: the diagnostic logs of its gateway, two rows for each request to a model.

Program: Azure API Management, diagnostic categories `GatewayLogs` and `GatewayLlmLogs`, joined by `correlationId`.
Switched on: by a diagnostic setting of the service with both categories and LLM logging on in the API; rows of both
must be in one file, as a consumer of an event hub writes them (one row a line, out of their `records`), since each
file is read on its own. Message bodies need not be logged.
Example: {"category": "GatewayLogs", "correlationId": "f4046a08-…", "time": "2026-03-03T09:15:00.9000001Z",
"durationMs": 7940, "properties": {"apimSubscriptionId": "sub-acme", "responseCode": 200, "backendResponseCode": 200,
"backendTime": 7935, "clientTime": 3, "url": "https://synth-apim.azure-api.net/v1/chat/completions"}}
Example (LLM): {"category": "GatewayLlmLogs", "correlationId": "f4046a08-…", "time": "2026-03-03T09:15:08.8400001Z",
"properties": {"modelName": "gpt-4o", "isStreamCompletion": true, "promptTokens": 1530, "completionTokens": 342,
"totalTokens": 1872, "sequenceNumber": 0}}
Units: milliseconds; the time of `GatewayLogs` is the arrival, that of `GatewayLlmLogs` the end. The tenant is the
subscription, else the product. A request's own time in the gateway is what neither client nor backend took.

The row of a good answer waits for its tokens, up to five minutes, and is a record of its own if they do not come;
while a file has shown a thousand without LLM rows, none waits. An answer whose messages were split has
several LLM rows: the first with tokens counts, the others are parts of it.

Missing: time to the first token, cached tokens, retries; tokens of failures, and of all requests without the LLM
category. The names inside LLM rows are taken in both spellings that the documents use.
"""

from __future__ import annotations

import re
from math import inf
from typing import Final, cast

import msgspec

from capwatch.dialect import Drop, Format, Held, Options, Skip, Verdict
from capwatch.dialect.fields import model, output
from capwatch.dialect.settle import of_status
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.value import REFUSED, number, text
from capwatch.record import Request

GATEWAY: Final[Paths] = {
    "request_id": ("correlationId",),
    "started_at": ("time",),
    "duration_s": ("durationMs",),
    "tenant": ("properties.apimSubscriptionId", "properties.productId"),
    "route": ("properties.url", "properties.operationId"),
    "status": ("properties.responseCode",),
}
LLM: Final[Paths] = {
    "model": tuple(f"properties.{key}" for key in ("modelName", "ModelName", "deploymentName", "DeploymentName")),
    "stream": ("properties.isStreamCompletion", "properties.IsStreamCompletion"),
    "prompt_tokens": ("properties.promptTokens", "properties.PromptTokens"),
    "output_tokens": ("properties.completionTokens", "properties.CompletionTokens"),
}
TOTALS: Final = ("properties.totalTokens", "properties.TotalTokens")
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that ask no model anything."""
LIMITS: Final = frozenset({"RateLimitExceeded", "QuotaExceeded", "TokenLimitExceeded"})
"""What the gateway's own limits say when they refuse."""
WAIT_S: Final = 300.0
"""How long a row waits for the other: the categories are delivered in batches of their own, a minute or so apart."""
MOST_OPEN: Final = 5000
"""Rows that wait at most: 50 s at 100 requests/s. Beyond that a request is told without its tokens."""
MOST_ALONE: Final = 1000
"""Rows without an LLM row, and none in between, after which none is waited for: that category is not there."""
MOST_TOLD: Final = 1000
"""Requests told whose further LLM rows are known."""

_DEPLOYMENT: Final = re.compile(r"/deployments/([^/?]+)/")


class _Open(msgspec.Struct):
    """A row that waits for the other one of its request."""

    request: Request
    read: int
    """Number of the call that read its line."""
    answers: bool
    """Whether it is the LLM row."""
    since: float | None = None
    """When `expire` first saw it; None before that."""


class _Memory(msgspec.Struct):
    """What the reader remembers between lines."""

    open: dict[str, _Open] = {}
    """By correlation id, in the order of their lines."""
    told: dict[str, None] = {}
    reads: int = 0
    alone: int = 0
    """Rows that waited in vain since the last LLM row."""


class Lines:
    """Reads one line at a time; remembers the rows that wait, and whose requests were told."""

    def __init__(self, options: Options) -> None:
        answers = {name: path for name, path in options.fields.items() if name in LLM}
        others = {name: path for name, path in options.fields.items() if name not in LLM}
        self._gateway = Table(GATEWAY, Options(others, options.zone), "ms")
        self._llm = Table(LLM, Options(answers, options.zone), "ms")
        self._memory = _Memory()
        self._released = 0

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One row."""
        self._memory.reads += 1
        row = msgspec.json.decode(line)
        if not isinstance(row, dict) or "category" not in row:
            return Drop("malformed", "no row of a diagnostic log")
        kind = str(row["category"]).lower()
        if "llm" not in kind and kind != "gatewaylogs":
            return Skip("another category")
        one = text(row.get("correlationId"))
        if one is None:
            return Drop("malformed", "no correlation id")
        return self._answer(one, row) if "llm" in kind else self._request(one, row)

    def _request(self, one: str, row: object) -> Verdict:
        """A row of the gateway: the request, without its tokens."""
        if first_told(row, "properties.method") in READING:
            return Skip("no request to a model")
        request = self._gateway.read(row)
        self._llm.derive(request, model=model(_deployment(row)))
        self._gateway.derive(request, gateway_s=_own_time(row), cache_hit=first_told(row, "properties.cache") == "hit")
        judge(request, row)
        memory = self._memory
        before = memory.open.get(one)
        if before is not None:
            return self._close(one, request, before.request) if before.answers else Skip("a row that waits, once more")
        hopeless = memory.alone >= MOST_ALONE or len(memory.open) >= MOST_OPEN
        if hopeless or one in memory.told or not 200 <= (request.status or 0) < 300:
            self._tell(one)
            return request
        return self._hold(one, request, answers=False)

    def _answer(self, one: str, row: object) -> Verdict:
        """A row of the answer: tokens and model."""
        memory = self._memory
        memory.alone = 0
        if one in memory.told:
            return Skip("part of an answer that was told")
        answer = self._llm.read(row)
        told = output(answer.prompt_tokens, answer.output_tokens, number(first_told(row, *TOTALS)))
        self._llm.derive(answer, output_tokens=told)
        if not (answer.prompt_tokens or answer.output_tokens):
            return Skip("part of an answer, without tokens")
        before = memory.open.get(one)
        if before is not None and not before.answers:
            return self._close(one, before.request, answer)
        answer.request_id = one
        answer.finished_at = self._gateway.read(row).started_at
        if before is not None or len(memory.open) >= MOST_OPEN:
            return Skip("part of an answer")
        return self._hold(one, answer, answers=True)

    def _hold(self, one: str, request: Request, *, answers: bool) -> Held:
        self._memory.open[one] = _Open(request, self._memory.reads, answers)
        return Held("waits for the other row of its request")

    def _close(self, one: str, request: Request, answer: Request) -> Request:
        """Both rows are there."""
        del self._memory.open[one]
        self._released += 1
        self._tell(one)
        for name in LLM:
            told = getattr(answer, name)
            setattr(request, name, getattr(request, name) if told is None else told)
        return request

    def _give_up(self, one: str) -> _Open:
        given_up = self._memory.open.pop(one)
        self._memory.alone += not given_up.answers
        self._tell(one)
        return given_up

    def _tell(self, one: str) -> None:
        told = self._memory.told
        told[one] = None
        if len(told) > MOST_TOLD:
            del told[next(iter(told))]

    def released(self) -> int:
        """See `capwatch.dialect.Holding`."""
        released, self._released = self._released, 0
        return released

    def expire(self, now: float) -> list[tuple[int, Request]]:
        """See `capwatch.dialect.Holding`."""
        found = []
        for one, waiting in list(self._memory.open.items()):
            waiting.since = now if waiting.since is None else min(waiting.since, now)
            if now == inf or now - waiting.since > WAIT_S:
                found.append((self._memory.reads - waiting.read, self._give_up(one).request))
        return found

    def save(self) -> object:
        """The rows that wait, and whose requests were told."""
        return cast("object", msgspec.to_builtins(self._memory))

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._memory = msgspec.convert(saved, _Memory)


def _deployment(row: object) -> str | None:
    """The deployment that was asked, for rows without an answer."""
    found = _DEPLOYMENT.search(text(first_told(row, "properties.backendUrl", "properties.url")) or "")
    return found[1] if found else None


def _own_time(row: object) -> float | None:
    """What neither client nor backend took (s); None where they overlap, as they may in streams."""
    parts = [
        number(first_told(row, name), 1e-3)
        for name in ("durationMs", "properties.backendTime", "properties.clientTime")
    ]
    whole, backend, client = parts
    if whole is None or backend is None or REFUSED in parts:
        return None
    own = whole - backend - (client or 0)
    return own if own >= 0 else None


def judge(request: Request, row: object) -> None:
    """Outcome and limiter: the gateway's last error, then the status, of which the backend's says who made it."""
    reason = text(first_told(row, "properties.lastError.reason")) or ""
    source = text(first_told(row, "properties.lastError.source")) or ""
    backend = number(first_told(row, "properties.backendResponseCode"))
    by_status = "ok" if request.status is None else of_status(request.status)
    if reason == "ClientConnectionFailure":
        said = "client_abort"
    elif reason == "Timeout":
        said = "timeout"
    elif reason in LIMITS:
        said = "rate_limited"
    elif "content-safety" in source:
        said = "content_filter"
    elif by_status == "upstream_error" and backend is None and reason != "BackendConnectionFailure":
        said = "overload" if request.status == 503 else "gateway_error"
    else:
        said = by_status
    if request.outcome is None:
        request.outcome = said
    if request.outcome == "rate_limited" and request.rate_limited_by is None:
        request.rate_limited_by = "gateway" if reason in LIMITS or backend is None else "upstream"


FORMAT = Format(
    name="azure_apim",
    kind="gateway",
    title="Azure API Management diagnostic logs `GatewayLogs` and `GatewayLlmLogs`",
    reader=Lines,
)
