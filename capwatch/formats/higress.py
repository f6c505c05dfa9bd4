r"""Higress with ai-statistics: Envoy's access log as JSON, and in it what the plugin tells as a JSON text.

Program: Higress 2.0 to 2.2.
Switched on: by the plugins ai-statistics and, for the usage of streams, ai-proxy; the access log's format in the chart
has `"ai_log":"%FILTER_STATE(wasm.ai_log:PLAIN)%"` by default. Leave the plugin's attributes `question` and `answer`
off; add `consumer` (from the header `x-mse-consumer`) and `cached_tokens`.
Example: {"start_time":"2026-03-03T09:15:00.900Z","duration":"7940","method":"POST","path":"/v1/chat/completions",
"response_code":"200","response_flags":"-","request_id":"f4046a08-…","upstream_host":"10.42.7.21:8000",
"ai_log":"{\"response_type\":\"stream\",\"model\":\"llama-3.1-70b\",\"input_token\":1530,\"output_token\":342,
\"llm_first_token_duration\":412,\"llm_service_duration\":7940,\"consumer\":\"acme-search\"}"}
Units: milliseconds; `start_time` is the arrival. All values are texts, in `ai_log` numbers or, of old plugins, texts.
The tenant is `consumer`, in `ai_log` or beside it; outcomes are Envoy's response flags.
Missing: all of `ai_log` for paths that `enable_path_suffixes` does not name (by default `/v1/messages` and
`/v1/responses` are among them), so no tokens of these; tokens of streams without ai-proxy, and of clients that left;
retries, unless `upstream_request_attempt_count` is added to the format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.accesslog import READING
from capwatch.dialect.fields import output
from capwatch.dialect.path import object_of, walk
from capwatch.dialect.responseflags import limiter, outcome
from capwatch.dialect.table import Paths, Table
from capwatch.dialect.value import number, text
from capwatch.record import Request

Json = Mapping[str, object]

PATHS: Final[Paths] = {
    "request_id": ("request_id", "x-request-id"),
    "started_at": ("start_time",),
    "duration_s": ("duration", "ai_log.llm_service_duration"),
    "tenant": ("ai_log.consumer", "consumer"),
    "route": ("path", "x-envoy-origin-path", "route_name"),
    "model": ("ai_log.model",),
    "prompt_tokens": ("ai_log.input_token",),
    "cached_tokens": ("ai_log.cached_tokens", "ai_log.input_token_details.cached_tokens"),
    "output_tokens": ("ai_log.output_token",),
    "ttft_s": ("ai_log.llm_first_token_duration",),
    "status": ("response_code",),
}
ATTEMPTS: Final = "upstream_request_attempt_count"
TYPES: Final = {"stream": True, "normal": False}

_OWN_LOG: Final = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\]\[\d+\]|\d{4}-\d\d-\d\dT[\d:.]+Z\s+\w+\s")


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options, "ms")

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One access log line, or a line that the gateway or its agent says of itself."""
        if _OWN_LOG.match(line):
            return Skip("line of the gateway's own log")
        row = object_of(line)
        if row is None:
            return Drop("malformed", "broken JSON" if line.lstrip().startswith("{") else "no access log line")
        if "start_time" not in row and "msg" in row and "level" in row:
            return Skip("line of the gateway's own log")
        if "ai_log" not in row:  # without it the line is Envoy's, and tells what the format `envoy` finds
            return Drop("malformed", "no ai_log in the access log's format")
        if text(row.get("method")) in READING:
            return Skip("no request to a model")
        request = self._request({**row, "ai_log": _inner(row.get("ai_log"))})
        if (request.started_at, request.finished_at, request.duration_s, request.status) == (None,) * 4:
            return Drop("malformed", "neither time nor status")
        return request

    def _request(self, row: Json) -> Request:
        request, count = self._table.read(row), number(row.get(ATTEMPTS))
        # Old plugins do not say what is a stream, but measure a first token of streams alone.
        told = TYPES.get(text(walk(row, "ai_log.response_type")) or "", request.ttft_s is not None or None)
        total = number(walk(row, "ai_log.total_token"))
        self._table.derive(
            request,
            stream=told,
            output_tokens=output(request.prompt_tokens, request.output_tokens, total),
            retries=None if count is None else max(count - 1, 0),
        )
        if request.request_id:  # clients may send the id, so it is no proof by itself
            request.dedupe_key = f"{request.request_id} {request.started_at} {count}"
        self._table.derive(request, outcome=outcome(row, request.status))
        if request.outcome == "rate_limited":
            self._table.derive(request, rate_limited_by=limiter(row))
        return request


def _inner(value: object) -> object:
    """What the plugin tells, decoded once; a text that is cut or none costs only what is in it."""
    return object_of(value) if isinstance(value, str) else value


FORMAT = Format(
    name="higress",
    kind="gateway",
    title="Higress 2.0 to 2.2 with ai-statistics: access log, JSON",
    reader=Lines,
    duplicates="the same `request_id`, start and number of attempts (clients may send the id, so it is no proof)",
)
