"""Cloudflare AI Gateway: Logpush events, and rows of its REST list of logs.

Program: Cloudflare AI Gateway, Logpush dataset `ai_gateway_events`; rows of `GET …/ai-gateway/gateways/…/logs` as
lines.
Switched on: by a Logpush job for `ai_gateway_events` with all fields but the bodies. It delivers gzipped JSON lines,
minutes late, and stops when the gateway holds ten million logs.
Example: {"Cached": false, "Endpoint": "v1/chat/completions", "Metadata": {"tenant": "acme"}, "Model": "llama-3.1-70b",
"Metrics": {"durationMs": 7940, "tokensIn": 1530, "tokensOut": 342}, "RequestedModel": "llama-3.1-70b",
"RateLimited": false, "StatusCode": 200, "Timestamp": 1772529300900000000}
Example (REST): {"id": "01J…", "created_at": "2026-03-03T09:15:00Z", "duration": 7940, "tokens_in": 1530, "tokens_out":
342, "cached": false, "success": true, "status_code": 200, "path": "v1/chat/completions", "model": "llama-3.1-70b"}
Units: milliseconds; the time is the arrival, as RFC 3339 or as s, ms, µs or ns since the epoch, told apart by size.
The tenant is a key of `cf-aig-metadata`: `tenant`, `tenant_id` or `team`, others by `fields:`.
Missing: time to the first token, cached tokens, retries; events have no id. An event delivered twice is known by its
whole line, and only where its time is finer than a second: coarser ones may be alike without being the same.
"""

from __future__ import annotations

from typing import Final

import msgspec
from xxhash import xxh3_64_hexdigest

from capwatch.dialect import Drop, Format, Options, Stateless, Verdict
from capwatch.dialect.route import route
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.value import REFUSED, flag, number, text, time
from capwatch.record import Request

PATHS: Final[Paths] = {
    "request_id": ("id",),
    "duration_s": ("Metrics.durationMs", "Metrics.duration_ms", "Metrics.duration", "duration"),
    "tenant": tuple(f"{where}.{key}" for where in ("Metadata", "metadata") for key in ("tenant", "tenant_id", "team")),
    "model": ("Model", "model", "RequestedModel"),
    "prompt_tokens": (
        *(f"Metrics.{key}" for key in ("tokensIn", "tokens_in", "inputTokens", "input_tokens", "promptTokens")),
        "tokens_in",
    ),
    "output_tokens": (
        *(f"Metrics.{key}" for key in ("tokensOut", "tokens_out", "outputTokens", "output_tokens", "completionTokens")),
        "tokens_out",
    ),
    "status": ("StatusCode", "status_code"),
    "cache_hit": ("Cached", "cached"),
}
"""The keys inside `Metrics` are not documented, so every likely spelling is taken."""
TIMES: Final = ("Timestamp", "created_at")
ROUTES: Final = ("Endpoint", "path")
SCALES: Final = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Epoch numbers from here on are ns, µs, ms: one reading of each lies between the years 1973 and 5138."""


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options, "ms")
        self._zone = options.zone

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One event or row."""
        row = msgspec.json.decode(line)
        if not isinstance(row, dict) or not ({"StatusCode", "status_code", "Metrics", "tokens_in"} & row.keys()):
            return Drop("malformed", "neither an event nor a row")
        request = self._table.read(row)
        at = first_told(row, *TIMES)
        self._table.derive(request, started_at=time(at, self._zone, _scale(at)))
        path = text(first_told(row, *ROUTES))
        self._table.derive(request, route=route(path if path is None or "://" in path else f"/{path.lstrip('/')}"))
        self._judge(request, flag(row.get("RateLimited")), flag(row.get("success")))
        if request.request_id is None and request.started_at not in (None, REFUSED) and request.started_at % 1:
            request.dedupe_key = xxh3_64_hexdigest(line.encode())
        return request

    def _judge(self, request: Request, limited: bool | None, success: bool | None) -> None:
        """Of a refused request the gateway says whether its own limit refused it."""
        if request.outcome is None and limited:
            request.outcome = "rate_limited"
        elif request.outcome is None and success is False and (request.status or 0) < 400:
            request.outcome = "upstream_error"  # it failed, and no status says how
        if limited is not None and (limited or request.status == 429) and request.rate_limited_by is None:
            request.rate_limited_by = "gateway" if limited else "upstream"


def _scale(at: object) -> float:
    """The unit of an epoch time, by its size."""
    size = number(at)
    return next((unit for least, unit in SCALES if size not in (None, REFUSED) and size >= least), 1.0)


FORMAT = Format(
    name="cloudflare",
    kind="gateway",
    title="Cloudflare AI Gateway: Logpush `ai_gateway_events` and REST log rows",
    reader=Lines,
    duplicates="the same id, or without one the same whole line where its time is finer than a second",
)
