r"""nginx and OpenResty: one access log line for each request, as JSON or as text.

Program: nginx 1.11.8 to 1.29, OpenResty, ingress-nginx.
Switched on: by a `log_format` with `escape=json`, whose keys are the names of the variables, and an `access_log` that
uses it; in `http { … }`:

    log_format capwatch escape=json
      '{"msec":"$msec","request_id":"$request_id","method":"$request_method","uri":"$uri","status":"$status",'
      '"request_time":"$request_time","request_completion":"$request_completion","connection":"$connection",'
      '"upstream_status":"$upstream_status","upstream_response_time":"$upstream_response_time",'
      '"upstream_cache_status":"$upstream_cache_status","tenant":"$http_x_tenant_id"}';
    access_log /var/log/nginx/capwatch.jsonl capwatch;

Put quotes around all values: a variable that is empty leaves no JSON without them. Lines that are broken so (nothing
or a bare list behind a colon, `\x22` of the default escape) are mended; what else is broken is dropped.

Keys that are called like fields of the record are found by themselves, whatever variable is in them: `tenant`, `model`,
`stream`, `priority`, `prompt_tokens`, `cached_tokens`, `output_tokens`, `ttft_s`, … So OpenResty can tell tokens: set
variables in `body_filter_by_lua` from the usage of the answer and print them under these keys. `fields:` names others.

Text is the common or combined format; `name=value` behind it counts as a key (`rt`, `urt`, `uht` too, after nginx's
own examples), and so does what ingress-nginx has there by default.
Example: {"msec":"1772529302.430","request_id":"7ead13c1…","uri":"/v1/chat/completions","status":"200",
"request_time":"2.310","upstream_status":"502, 200","upstream_response_time":"0.003, 2.307","tenant":"acme"}
Example (text): 203.0.113.7 - - [03/Mar/2026:09:15:02 +0000] "POST /v1/chat/completions HTTP/1.1" 200 4388 "-" "…"
rt=2.310 urt="2.308"
Units: seconds; `$msec`, `$time_iso8601` and `$time_local` are the end of the request, the latter two whole seconds.
`gateway_s` is what `$request_time` has beyond the upstream's times: a client that reads slowly is in it.
Missing: unless OpenResty adds it, tokens; the model; whether it was a stream; the time to the first token:
`$upstream_header_time` is that of the headers, which servers send before they think. The combined format alone has no
duration either. A client that leaves in mid-stream may be logged as 200: only an empty `$request_completion` tells it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.accesslog import COMBINED, QUOTED, READING, asked, is_error_log, pairs
from capwatch.dialect.columns import ColumnScanner, Leaves, each, read_spelled, rows, spelled
from capwatch.dialect.fields import KINDS
from capwatch.dialect.identity import identity
from capwatch.dialect.path import object_of
from capwatch.dialect.route import route
from capwatch.dialect.scan import Leaf
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.upstream import inside, judge, limiter, outcome, retries, total
from capwatch.dialect.value import text
from capwatch.dialect.verdict import Columns
from capwatch.record import Request

Json = Mapping[str, object]

VARIABLES: Final[Paths] = {
    "request_id": ("request_id",),
    "started_at": (),
    "finished_at": ("msec", "time_iso8601", "time_local", "time", "ts"),
    "duration_s": ("request_time",),
    "tenant": ("tenant", "http_x_tenant_id"),
    "route": ("uri", "request_uri"),
    "status": ("status",),
    "cache_hit": (),
}
PATHS: Final[Paths] = {**{name: (name,) for name in KINDS}, **VARIABLES}
"""Fields that no variable of nginx tells are looked for under their own names."""
UPSTREAM: Final = ("upstream_status", "upstream_response_time", "upstream_addr")
"""Variables that have a part for each server that was tried, and nothing where none was."""
CONNECTION: Final = ("connection", "remote_port")
"""What tells apart the requests of one moment, where they have no id."""
MORE: Final = "connection_requests"
SIZES: Final = ("bytes_sent", "body_bytes_sent")
SHORT: Final = {"rt": "request_time", "urt": "upstream_response_time", "uht": "upstream_header_time"}
"""Names that nginx's documents use in text formats."""
CACHED: Final = frozenset({"HIT", "STALE", "UPDATING", "REVALIDATED"})
"""`$upstream_cache_status` of answers that came from the cache."""
_TEXT: Final = re.compile(COMBINED.pattern + r"(?P<rest>(?: .*)?)")
_INGRESS: Final = re.compile(
    rf" {QUOTED} {QUOTED} \d+ (?P<request_time>[\d.]+) \[[^\]]*\] \[[^\]]*\]"
    r" (?P<upstream_addr>-|\S+(?:(?:,| :) \S+)*) (?P<length>-|\d+(?:(?:,| :) \S+)*)"
    r" (?P<upstream_response_time>-|[\d.]+(?:(?:,| :) \S+)*) (?P<upstream_status>-|\d+(?:(?:,| :) \S+)*)"
    r" (?P<request_id>\S+)"
)
"""What ingress-nginx prints behind the combined format."""
_NOTHING: Final = re.compile(r'((?<!\\)":\s*)(?:-\s*)?(?=[,}])')
_LIST: Final = re.compile(r'((?<!\\)":\s*)((?:-|[\d.]+)(?:(?:,\s*|\s+:\s+)(?:-|[\d.]+))+)(?=\s*[,}])')
_BYTES: Final = re.compile(r"(?<!\\)(?:\\x[0-9A-Fa-f]{2})+")


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options)

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One access log line, or a line of the error log."""
        if line.lstrip().startswith("{"):
            row = object_of(line) or object_of(mended(line))
            return self._judge(row) if row else Drop("malformed", "broken JSON")
        found = _TEXT.fullmatch(line)
        if found is None:
            return Skip("line of nginx's error log") if is_error_log(line) else Drop("malformed", "no access log line")
        ingress = _INGRESS.fullmatch(found["rest"])
        pair = pairs(found["rest"]).items()
        extra = ingress.groupdict() if ingress else {SHORT.get(name, name): value for name, value in pair}
        return self._judge({**extra, **found.groupdict()})

    def _judge(self, row: Json) -> Verdict:
        method, path = asked(text(row.get("request")))
        if first_told(row, "request_method", "method") in READING or method in READING:
            return Skip("no request to a model")
        if isinstance(row.get("request"), str) and method is None and first_told(row, *VARIABLES["route"]) is None:
            return Skip("a connection on which no request came")
        request = self._request(row, path)
        if request.duration_s is None and request.status is None:
            return Drop("malformed", "neither duration nor status")
        return request

    def _request(self, row: Json, path: str | None) -> Request:
        request, derive = self._table.read(row), self._table.derive
        derive(
            request,
            route=request.route or route(path),
            cache_hit=text(row.get("upstream_cache_status")) in CACHED,
        )
        if request.retries is None:
            derive(request, retries=retries(first_told(row, *UPSTREAM)))
        if request.gateway_s is None:
            derive(request, gateway_s=inside(request.duration_s, total(row.get("upstream_response_time"))))
        left = _left(row, request.status)
        judge(self._table, request, reached=_reached(row), told="client_abort" if left else None)
        if request.request_id is None:
            said = (first_told(row, *SIZES), first_told(row, *CONNECTION), first_told(row, MORE) or "")
            request.dedupe_key = identity(request.finished_at, request.route, request.duration_s, *said)
        return request


def mended(line: str) -> str:
    r"""The JSON that an access log meant: numbers without quotes leave a hole or a list, the default escape `\x22`.

    >>> mended('{"a":,"b":0.820, 0.820,"c":-}')
    '{"a":"","b":"0.820, 0.820","c":""}'
    """
    line = _BYTES.sub(_escaped, line)
    return _NOTHING.sub(r'\1""', _LIST.sub(r'\1"\2"', line))


def _escaped(found: re.Match[str]) -> str:
    """JSON's escape of bytes that nginx printed one by one."""
    return json.dumps(bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "replace"))[1:-1]


def _reached(row: Json) -> bool | None:
    """Whether an upstream was asked; None where the log has none of its variables."""
    return first_told(row, *UPSTREAM) is not None if any(row.get(name) is not None for name in UPSTREAM) else None


def _left(row: Json, code: int | None) -> bool:
    """Whether the client left an answer whose headers were out: it is logged with the status that it was sent."""
    whole = row.get("request_completion") is None or text(row["request_completion"]) is not None
    return not whole and code is not None and 200 <= code < 400


RULES: Final[Leaves] = {
    "method": (Leaf("request_method", "text"), Leaf("method", "text")),
    "request": (Leaf("request", "text"),),
    "cache": (Leaf("upstream_cache_status", "text"),),
    "size": tuple(Leaf(key, "spelled") for key in SIZES),
    "whose": tuple(Leaf(key, "spelled") for key in CONNECTION),
    "more": (Leaf(MORE, "spelled"),),
    **{name: (Leaf(name, "raw"),) for name in (*UPSTREAM, "request_completion")},
}
"""What only the rules over a row need, beside the fields of the record."""


def scanner(options: Options) -> ColumnScanner:
    """The fast tier: JSON lines of requests, by the same table and rules as `Lines`."""

    def finish(told: Columns) -> tuple[Columns, set[int]]:
        read_spelled(told, options, "s")
        seen = rows(_seen, *(told[name] for name in (*UPSTREAM, "request_completion", "status")))
        reached, tries, left = zip(*seen, strict=True)
        derived: Columns = {
            "cache_hit": each(lambda one: one in CACHED, told["cache"]),
            "retries": _else(told["retries"], tries),
            "gateway_s": _else(told["gateway_s"], map(_inside, told["duration_s"], told["upstream_response_time"])),
            "outcome": _else(told["outcome"], rows(_outcome, told["status"], reached, left)),
        }
        told |= {name: column for name, column in derived.items() if name not in options.fields}
        if "rate_limited_by" not in options.fields:
            told["rate_limited_by"] = _else(told["rate_limited_by"], rows(_limiter, told["outcome"], reached))
        whose = zip(
            *(told[name] for name in ("finished_at", "route", "duration_s", "size", "whose", "more")), strict=True
        )
        told["dedupe_key"] = [
            identity(*parts, more or "") if one is None else None
            for one, (*parts, more) in zip(told["request_id"], whose, strict=True)
        ]
        return {name: column for name, column in told.items() if name not in RULES}, _odd(told)

    return ColumnScanner({**spelled(PATHS, options.fields), **RULES}, options.zone, finish)


def _else(own: Sequence[object], otherwise: Iterable[object]) -> list[object]:
    """A column, and where it says nothing what the rules say."""
    return [other if one is None else one for one, other in zip(own, otherwise, strict=True)]


def _odd(told: Columns) -> set[int]:
    """Rows that are no request, or not surely one: the reader knows why."""
    columns = zip(told["method"], told["request"], told["duration_s"], told["status"], strict=True)
    return {
        at
        for at, (method, request, duration, code) in enumerate(columns)
        if method in READING or request is not None or (duration is None and code is None)
    }


def _seen(*values: object) -> tuple[bool | None, int | None, bool]:
    """Whether an upstream was asked, how often again, and whether the client left: of a row's values for the rules."""
    row = dict(zip((*UPSTREAM, "request_completion"), values[:-1], strict=True))
    return _reached(row), retries(first_told(row, *UPSTREAM)), _left(row, cast("int | None", values[-1]))


def _inside(duration: object, times: object) -> float | None:
    return inside(cast("float | None", duration), total(times))


def _outcome(code: int | None, reached: bool | None, left: bool) -> str | None:
    return "client_abort" if left else outcome(code, reached=reached)


def _limiter(word: str | None, reached: bool | None) -> str | None:
    return limiter(word, reached=reached)


FORMAT = Format(
    name="nginx",
    kind="gateway",
    title="nginx 1.11.8 to 1.29 and OpenResty: access logs, JSON or text",
    reader=Lines,
    scanner=scanner,
    duplicates="the same `$request_id`, or without one the same end, route, duration, size and connection",
)
