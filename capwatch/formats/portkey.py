"""Portkey: the log export of the hosted or enterprise gateway, one JSON object for each request.

Program: Portkey hosted and enterprise, log export API (documents of 2026-05). The open-source gateway writes no file;
lines of its `/log/stream` are known and cannot be used, since their time is spelt in the reader's own way.
Switched on: by a log export job (`POST /v1/logs/exports`, JSONL) that asks for all columns but `request` and
`response`.
Example: {"id": "f4046a08-…", "trace_id": "fefce67f-…", "created_at": "2026-03-03T09:15:00.900Z", "is_success": true,
"ai_model": "llama-3.1-70b", "req_units": 1530, "res_units": 342, "total_units": 1872, "response_time": 7940,
"request_url": "https://api.portkey.ai/v1/chat/completions", "response_status_code": 200, "mode": "single",
"metadata": {"_user": "u-102", "tenant": "acme"}}
Units: milliseconds; `created_at` is the arrival; units are tokens. The tenant is a key of `metadata` that callers send
in `x-portkey-metadata`: `tenant`, `tenant_id` or `team`, others by `fields:`; never `_user`.
Missing: time to the first token, cached tokens, retries. Streams are known only where `request` was exported too. Some
streams carry no prompt tokens (Vertex, Anthropic).
"""

from __future__ import annotations

from typing import Final

import msgspec

from capwatch.dialect import Drop, Format, Options, Stateless, Verdict
from capwatch.dialect.fields import output
from capwatch.dialect.path import walk
from capwatch.dialect.table import Paths, Table
from capwatch.dialect.value import flag, number

PATHS: Final[Paths] = {
    "request_id": ("id",),
    "attempt_group": ("trace_id",),
    "started_at": ("created_at",),
    "duration_s": ("response_time",),
    "tenant": ("metadata.tenant", "metadata.tenant_id", "metadata.team"),
    "route": ("request_url",),
    "model": ("ai_model", "request.body.model"),
    "stream": ("request.body.stream",),
    "max_output_tokens": ("request.body.max_completion_tokens", "request.body.max_tokens"),
    "prompt_tokens": ("req_units",),
    "output_tokens": ("res_units",),
    "status": ("response_status_code",),
}
OWN_STATUSES: Final = {446: "content_filter", 412: "rate_limited"}
"""Portkey's own: a guardrail refused the request; a budget is used up."""


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options, "ms")

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One exported row."""
        row = msgspec.json.decode(line)
        if not isinstance(row, dict):
            return Drop("malformed", "no JSON object")
        if "requestOptions" in row:
            return Drop("bad_time", "a line of the open-source gateway's log stream")
        if "created_at" not in row or not ("response_status_code" in row or "is_success" in row):
            return Drop("malformed", "no row of a log export")
        request = self._table.read(row)
        told = output(request.prompt_tokens, request.output_tokens, number(walk(row, "total_units")))
        self._table.derive(request, output_tokens=told)
        if request.outcome is None:
            request.outcome = OWN_STATUSES.get(request.status or 0)
        if request.outcome is None and flag(row.get("is_success")) is False and (request.status or 0) < 400:
            request.outcome = "upstream_error"  # it failed, and no status says how
        return request


FORMAT = Format(
    name="portkey",
    kind="gateway",
    title="Portkey log export (JSON lines)",
    reader=Lines,
)
