r"""Apache APISIX with ai-proxy or ai-proxy-multi: one line for each request, JSON of a logger or the access log's text.

Program: APISIX 3.13 to 3.18.
Switched on: JSON by `logging: {summaries: true}` in the AI plugin (off by default; without it no tokens, so no cost)
and a logger such as `file-logger` with `path: /var/log/apisix/capwatch.jsonl`. Leave `payloads` off. A logger's own
`log_format` may name the variables below as keys, without `$`. Text (3.14 and later) by
`nginx_config.http.access_log_format` in config.yaml, on one line:

    $remote_addr - $remote_user [$time_local] $http_host "$request" $status $body_bytes_sent $request_time
    "$http_referer" "$http_user_agent" $upstream_addr $upstream_status $apisix_upstream_response_time
    "$upstream_scheme://$upstream_host$upstream_uri" "$apisix_request_id" "$request_type"
    "$llm_time_to_first_token" "$llm_model" "$request_llm_model"  "$llm_prompt_tokens" "$llm_completion_tokens"

and `name="$variable"` behind it counts as a key (`tenant="$consumer_name"`).
Example: {"start_time":1772529300900.0,"latency":7940.4,"apisix_latency":3.4,"upstream":"10.42.7.21:8000",
"request":{"uri":"/v1/chat/completions","method":"POST",…},"response":{"status":200,…},"consumer":{"username":"acme"},
"llm_summary":{"model":"llama-3.1-70b","stream":"true","duration":412,"prompt_tokens":1530,"completion_tokens":342,…}}
Example (text): 203.0.113.7 - - [03/Mar/2026:09:15:08 +0000] gw.internal "POST /v1/chat/completions HTTP/1.1" 200 10782
7.940 "-" "…" 10.42.7.21:8000 200 7936 "http://vllm-a.svc/v1/chat/completions" "f4046a08-…" "ai_stream" "412"
"llama-3.1-70b" "llama-3.1-70b"  "1530" "342"
Units: milliseconds in JSON, where `start_time` is the arrival; in text `$request_time` is seconds and `$time_local` the
end in whole seconds; `llm_*` are milliseconds in both. The tenant is `consumer.username` (JSON), or `consumer_name`.
Missing: cached tokens before 3.18; retries in JSON; the tenant in text unless added; usage of streams whose client left
(0 means that none was sent). `llm_summary.duration` and `llm_time_to_first_token` are the first chunk of a stream, but
the whole time of another answer, and the time until the error of a failed one: only good streams have them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.accesslog import COMBINED, QUOTED, READING, asked, is_error_log, pairs
from capwatch.dialect.fields import output
from capwatch.dialect.path import object_of
from capwatch.dialect.route import route
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.upstream import attempts, inside, judge, retries
from capwatch.dialect.value import REFUSED, flag, number, text, time
from capwatch.record import Request

Json = Mapping[str, object]

PATHS: Final[Paths] = {
    "request_id": ("apisix_request_id", "request_id", "request.headers.x-request-id"),
    "duration_s": ("latency",),
    "gateway_s": ("apisix_latency",),
    "tenant": ("consumer.username", "consumer_name", "tenant"),
    "route": ("request.uri", "uri", "request_uri", "route_id"),
    "model": ("llm_summary.model", "llm_model", "llm_summary.request_model", "request_llm_model"),
    "prompt_tokens": ("llm_summary.prompt_tokens", "llm_prompt_tokens"),
    "cached_tokens": ("llm_summary.cache_read_input_tokens", "llm_cache_read_input_tokens"),
    "output_tokens": ("llm_summary.completion_tokens", "llm_completion_tokens"),
    "ttft_s": ("llm_summary.duration", "llm_time_to_first_token"),
    "status": ("response.status", "status"),
}
"""The model that answered before the one that was asked for."""
ENDS: Final = ("msec", "time_iso8601", "time_local", "@timestamp")
METHODS: Final = ("request.method", "request_method")
TOTAL: Final = ("llm_summary.total_tokens", "llm_total_tokens")
STREAMS: Final = ("llm_summary.stream", "llm_stream")
CLIENT_LEFT: Final = 499
"""nginx's own status, also of a stream whose first tokens came."""
UPSTREAM: Final = ("upstream", "upstream_status", "upstream_addr", "upstream_latency")
"""Keys of requests that reached an upstream; before 3.17 ai-proxy left them empty."""
UPSTREAM_TIMES: Final = (
    "llm_summary.upstream_response_time",
    "apisix_upstream_response_time",
    "upstream_response_time",
)
TYPES: Final = {"ai_stream": True, "ai_chat": False}
"""`$request_type` of requests through ai-proxy."""
MARKS: Final = re.compile(r'"(?:apisix_\w+|(?:request_)?llm_\w+|route_id|service_id)"\s*:')
"""Keys that no other server's log has."""

_TEXT: Final = re.compile(
    COMBINED.pattern + rf" (?P<request_time>[\d.]+|-) {QUOTED} {QUOTED}"
    r" (?P<upstream_addr>\S+(?:(?:,| :) \S+)*?) (?P<upstream_status>(?:\d{3}|-)(?:(?:,| :) (?:\d{3}|-))*)"
    r" (?P<apisix_upstream_response_time>(?:[\d.]+|-)(?:(?:,| :) (?:[\d.]+|-))*)(?P<rest>(?: .*)?)"
)
_AI: Final = re.compile(
    r' "[^"]*" "(?P<apisix_request_id>[^"]*)"(?: "(?P<request_type>[^"]*)" "(?P<llm_time_to_first_token>[^"]*)"'
    r' "(?P<llm_model>[^"]*)" "(?P<request_llm_model>[^"]*)" +"(?P<llm_prompt_tokens>[^"]*)"'
    r' "(?P<llm_completion_tokens>[^"]*)")?(?P<more>(?: .*)?)'
)
_SECONDS: Final = re.compile(r"\d+\.\d{3}")
"""How nginx prints seconds; the AI plugins print whole milliseconds into the same variable."""


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._table = Table(PATHS, options, "ms")

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One line of a logger or of the access log, or a line of the error log."""
        if line.lstrip().startswith("{"):
            row = object_of(line)
            if row is None:
                return Drop("malformed", "broken JSON")
            if not ("start_time" in row and isinstance(row.get("request"), dict)) and not MARKS.search(line):
                return Drop("malformed", "no line of a logger")
            return self._judge(row)
        found = _TEXT.fullmatch(line)
        if found is None or found["http_host"] is None:
            return Skip("line of the error log") if is_error_log(line) else Drop("malformed", "no access log line")
        ai = _AI.fullmatch(found["rest"])
        told_more = pairs(ai["more"] if ai else found["rest"])
        return self._judge({**told_more, **(ai.groupdict() if ai else {}), **found.groupdict()})

    def _judge(self, row: Json) -> Verdict:
        method, path = asked(text(row.get("request")))
        if method in READING or first_told(row, *METHODS) in READING:
            return Skip("no request to a model")
        if isinstance(row.get("request"), str) and method is None:
            return Skip("a connection on which no request came")
        return self._request(row, path)

    def _request(self, row: Json, path: str | None) -> Request:
        request, derive = self._table.read(row), self._table.derive
        starts = "start_time" in row
        took = number(row.get("request_time")) if request.duration_s is None else request.duration_s
        derive(
            request,
            started_at=time(row.get("start_time"), self._zone, 1e-3),
            finished_at=None if starts else time(first_told(row, *ENDS), self._zone),
            duration_s=took,
            route=route(path) or request.route,
            stream=_stream(row),
            output_tokens=output(request.prompt_tokens, request.output_tokens, number(first_told(row, *TOTAL))),
            retries=retries(row.get("upstream_status")),
        )
        if request.gateway_s is None:
            derive(request, gateway_s=inside(took, _seconds(first_told(row, *UPSTREAM_TIMES))))
        if not request.stream or _failed(request.status):
            derive(request, ttft_s=None)
        judge(self._table, request, reached=_reached(row))
        if request.request_id:  # clients may send the id, so it is no proof by itself
            request.dedupe_key = f"{request.request_id} {request.started_at or request.finished_at}"
        return request


def _failed(status: int | None) -> bool:
    """Whether an answer was an error, for which the first token's time stands for something else."""
    return status is not None and status >= 400 and status != CLIENT_LEFT


def _stream(row: Json) -> bool | None:
    """Whether it was a stream: as the request's type, or as a flag that is "false" where nobody set it."""
    kind = text(row.get("request_type"))
    return flag(first_told(row, *STREAMS)) if kind is None else TYPES.get(kind)


def _seconds(value: object) -> float | None:
    """All attempts' times in seconds: whole milliseconds of the AI plugins, or nginx's seconds with three decimals.

    Before 3.18 the AI plugins, too, printed seconds beside a 429 or 5xx.
    """
    parts = [(one, number(one)) for one in attempts(value)]
    times = [read if _SECONDS.fullmatch(one) else read / 1000 for one, read in parts if read is not None]
    return sum(times) if times else None


def _reached(row: Json) -> bool:
    """Whether an upstream was asked: it has an address, a status, or a time that is more than nothing."""
    took = _seconds(first_told(row, *UPSTREAM_TIMES))
    return first_told(row, *UPSTREAM) is not None or (took is not None and 0 < took < REFUSED)


FORMAT = Format(
    name="apisix",
    kind="gateway",
    title="Apache APISIX 3.13 to 3.18 with ai-proxy: JSON of its loggers, or access log text",
    reader=Lines,
    duplicates="the same request id and time (clients may send the id, so it is no proof)",
)
