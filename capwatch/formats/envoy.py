r"""Envoy and Envoy AI Gateway: one access log line for each request, as JSON (typed or all texts) or as text.

Program: Envoy 1.2x to 1.40, Envoy AI Gateway 0.3 to 1.1.
Switched on: by `access_log` with `log_format.json_format` (Envoy) or `EnvoyProxy.spec.telemetry.accessLog` (gateway);
the operator names the keys, the defaults here are those of the documents. Token counts exist only in the gateway, where
`llmRequestCosts` is set and printed.
Example: {"start_time": "2026-03-03T09:15:00.900Z", "duration": 7940, "response_code": 200, "response_flags": "-",
"x-envoy-origin-path": "/v1/chat/completions", "x-request-id": "f4046a08-…", "upstream_request_attempt_count": 1,
"gen_ai.usage.input_tokens": 1530, "gen_ai.usage.output_tokens": 342, "gen_ai.token_latency.ttft_ms": 412, …}
Example (text): [2026-03-03T09:15:00.120Z] "POST /v1/chat/completions HTTP/2" 200 - 1858 4148 2310 2307 "…" "…"
"7ead13c1-…" …
Units: whole milliseconds; the start is printed.
Missing: tokens and TTFT in plain Envoy, and in the gateway on everything but a finished 2xx. The header time
(`RESPONSE_DURATION`, `x-envoy-upstream-service-time`) is no time to the first token: servers send their headers before
they think.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from capwatch.dialect import Drop, Format, Going, Options, Skip, Stateless, Verdict
from capwatch.dialect.accesslog import READING
from capwatch.dialect.columns import ColumnScanner, Leaves, each, mapped, rows
from capwatch.dialect.fields import Mapped, model, status
from capwatch.dialect.path import first
from capwatch.dialect.responseflags import limiter, outcome
from capwatch.dialect.route import route
from capwatch.dialect.scan import Leaf
from capwatch.dialect.table import first_told
from capwatch.dialect.value import UNITS, number, text, time
from capwatch.dialect.verdict import Columns
from capwatch.record import Request

Json = Mapping[str, object]

REQUEST_IDS: Final = ("x-request-id", "request_id", "request-id")
ROUTES: Final = ("x-envoy-origin-path", "x-envoy-original-path", "path", ":path")
TENANTS: Final = ("x-tenant-id", "tenant.id", "tenant")
MODELS: Final = ("gen_ai.response.model", "response_model", "gen_ai.request.model", "x-ai-eg-model")
"""The model that answered before the one that was asked for."""
TOKENS: Final = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "cached_tokens": "gen_ai.usage.cached_input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
}
TTFT: Final = ("gen_ai.token_latency.ttft_ms", "token_latency_ttft")
ATTEMPTS: Final = "upstream_request_attempt_count"
METHOD: Final = ("mcp.method.name", "mcp_method")
"""Set on rows of the gateway's tool server (MCP)."""
FINAL_ROWS: Final = frozenset({"DownstreamEnd", "NotSet"})
"""`%ACCESS_LOG_TYPE%` of the one row a request ends with; periodic and upstream rows tell of it before."""
GOING_ROWS: Final = frozenset({"DownstreamStart", "DownstreamPeriodic"})
"""The rows that tell of a request from its arrival on, where `access_log_options` ask for them."""
SENT: Final = "bytes_sent"
"""Bytes of the body so far: none before the first token, while headers may be out."""

_TEXT: Final = re.compile(
    r'\[(?P<start_time>\d[^\]\s]*)\] "(?P<method>[A-Z_-]+) (?P<path>.*?) ?(?P<protocol>HTTP/\S+|-)"'
    r" (?P<response_code>\d+) (?P<response_flags>\S+)"
    r'(?: (?P<response_code_details>\S+) \S+ "[^"]*")?'  # Istio's format
    r" \d+ \d+ (?P<duration>\d+|-) (?:\d+|-)"
    r' "[^"]*" "[^"]*" "(?P<request_id>[^"]*)" "[^"]*" "(?P<upstream_host>[^"]*)".*'
)
_OWN_LOG: Final = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\]\[\d+\]\[\w+\]")
_WITH_UNIT: Final = re.compile(r"\s*([\d.]+)\s*(s|ms|us|ns)\s*")


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._mapped = Mapped(options.fields, options.zone, "ms")

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One access log line, or a line of Envoy's own log."""
        if line.lstrip().startswith("{"):
            try:
                row = msgspec.json.decode(line)
            except msgspec.DecodeError:
                return Drop("malformed", "broken JSON")
            return self._judge(cast("Json", row))
        found = _TEXT.fullmatch(line)
        if found:
            return self._judge(found.groupdict())
        return Skip("line of Envoy's own log") if _OWN_LOG.match(line) else Drop("malformed", "no access log line")

    def _judge(self, row: Json) -> Verdict:
        if "start_time" not in row and "msg" in row and "level" in row:
            return Skip("line of the gateway's own log")
        kind = text(row.get("access_log_type"))
        if kind not in (None, *FINAL_ROWS, *GOING_ROWS):
            return Skip("row of one attempt")
        if row.get("method") in READING:
            return Skip("no request to a model")
        tool = text(first(row, *METHOD))
        if tool not in (None, "tools/call"):
            return Skip("tool server, no call of a tool")
        request = self._request(row)
        if kind in GOING_ROWS:
            sent = number(row.get(SENT))
            if request.request_id is None or request.started_at is None or sent is None:
                return Skip("row of a request that goes on")
            return Going(request, begun=sent > 0)
        if (request.started_at, request.finished_at, request.duration_s, request.status) == (None,) * 4:
            return Drop("malformed", "neither time nor status")
        if tool:
            request.tool_s = request.duration_s
        return request

    def _request(self, row: Json) -> Request:
        attempts = number(row.get(ATTEMPTS))
        code = status(row.get("response_code"))
        request = Request(
            request_id=text(first_told(row, *REQUEST_IDS)),
            started_at=time(row.get("start_time"), self._zone),
            duration_s=_milliseconds(row.get("duration")),
            tenant=text(first_told(row, *TENANTS)),
            route=route(text(first_told(row, *ROUTES))),
            model=model(first_told(row, *MODELS)),
            priority=text(row.get("x-priority")),
            prompt_tokens=number(first_told(row, TOKENS["prompt_tokens"])),
            cached_tokens=number(first_told(row, TOKENS["cached_tokens"])),
            output_tokens=number(first_told(row, TOKENS["output_tokens"])),
            ttft_s=_milliseconds(first_told(row, *TTFT)),
            retries=None if attempts is None else max(attempts - 1, 0),
            status=code,
        )
        self._mapped.fill(request, row)
        if request.ttft_s is not None:
            request.stream = True  # the gateway measures it on streams alone
        if request.request_id:  # clients may send the id, so it is no proof by itself
            request.dedupe_key = f"{request.request_id} {request.started_at} {attempts}"
        if request.outcome is None:
            request.outcome = outcome(row, request.status)
        if request.outcome == "rate_limited" and request.rate_limited_by is None:
            request.rate_limited_by = limiter(row)
        return request


def _milliseconds(value: object) -> float | None:
    """A duration in seconds; a format such as `%DURATION%ms` prints the unit behind the number."""
    found = _WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
    return number(found[1], UNITS[found[2]]) if found else number(value, 1e-3)


def _texts(*keys: str) -> tuple[Leaf, ...]:
    return tuple(Leaf(key, "text") for key in keys)


LEAVES: Final[Leaves] = {
    "request_id": _texts(*REQUEST_IDS),
    "started_at": (Leaf("start_time", "time"),),
    "duration_s": (Leaf("duration", "number", 1e-3),),
    "tenant": _texts(*TENANTS),
    "route": _texts(*ROUTES),
    "model": _texts(*MODELS),
    "priority": _texts("x-priority"),
    **{name: (Leaf(key, "number"),) for name, key in TOKENS.items()},
    "ttft_s": tuple(Leaf(key, "number", 1e-3) for key in TTFT),
    "status": (Leaf("response_code", "number"),),
}
RULES: Final[Leaves] = {
    name: (Leaf(key, "text"),)
    for name, key in {
        "flags": "response_flags",
        "details": "response_code_details",
        "host": "upstream_host",
        "method": "method",
        "kind": "access_log_type",
    }.items()
} | {"tool": _texts(*METHOD), "attempts": (Leaf(ATTEMPTS, "number"),)}
"""What only the rules over a row need, beside the fields of the record."""


def scanner(options: Options) -> ColumnScanner:
    """The fast tier: typed JSON lines of requests, by the same keys and rules as `Lines`."""
    named = mapped(options.fields, "ms")

    def finish(told: Columns) -> tuple[Columns, set[int]]:
        odd = _odd(told)
        ids, starts = told["request_id"], told["started_at"]
        attempts = cast("Sequence[float | None]", told["attempts"])
        told["route"], told["model"] = each(route, told["route"]), each(model, told["model"])
        told["status"] = each(status, told["status"])
        if "retries" not in named:
            told["retries"] = [None if one is None else max(one - 1, 0) for one in attempts]
        spoken = told.get("stream", (None,) * len(ids))
        told["stream"] = [True if ttft is not None else one for ttft, one in zip(told["ttft_s"], spoken, strict=True)]
        told["dedupe_key"] = [
            f"{one} {start} {count}" if one else None for one, start, count in zip(ids, starts, attempts, strict=True)
        ]
        judged = zip(*rows(_judged, told["flags"], told["details"], told["host"], told["status"]), strict=True)
        for name, words in zip(("outcome", "rate_limited_by"), judged, strict=True):
            own = told.get(name, (None,) * len(ids))
            told[name] = [one or word for one, word in zip(own, words, strict=True)]
        return {name: column for name, column in told.items() if name not in RULES}, odd

    return ColumnScanner({**LEAVES, **RULES, **named}, options.zone, finish)


def _odd(told: Columns) -> set[int]:
    """Rows that are no request, or not surely one: the reader knows why."""
    columns = zip(told["started_at"], told["method"], told["kind"], told["tool"], strict=True)
    return {
        at
        for at, (start, method, kind, tool) in enumerate(columns)
        if start is None or kind or tool or method in READING
    }


def _judged(flags: object, details: object, host: object, code: int | None) -> tuple[str | None, str]:
    """Outcome and limiter of a row; of requests that nobody limited settling forgets the limiter."""
    row = {"response_flags": flags, "response_code_details": details, "upstream_host": host}
    return outcome(row, code), limiter(row)


FORMAT = Format(
    name="envoy",
    kind="gateway",
    title="Envoy 1.2x to 1.40 and Envoy AI Gateway: access logs, JSON or text",
    reader=Lines,
    scanner=scanner,
    duplicates="the same `x-request-id`, start and number of attempts (clients may send the id, so it is no proof)",
)
