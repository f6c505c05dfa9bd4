r"""Traefik: one access log line for each request, as JSON or as text.

Program: Traefik 2 and 3 (to 3.7).
Switched on: by the static configuration; keep the headers that tell tenants and requests apart.

    accessLog:
      filePath: /var/log/traefik/access.jsonl
      format: json
      fields: {headers: {names: {X-Tenant-Id: keep, X-Request-Id: keep}}}

Example: {"StartUTC":"2026-03-03T09:15:00.120000Z","Duration":2310000000,"Overhead":311204,"OriginStatus":200,
"OriginDuration":2309688796,"DownstreamStatus":200,"RequestMethod":"POST","RequestPath":"/v1/chat/completions",
"RetryAttempts":0,"request_X-Tenant-Id":"acme",…}
Example (text, `common`): 203.0.113.7 - - [03/Mar/2026:09:15:00 +0000] "POST /v1/chat/completions HTTP/2.0" 200 4148
"-" "…" 1001 "llm@kubernetes" "http://10.42.7.21:8000" 2310ms
Units: nanoseconds in JSON, milliseconds in text; `StartUTC` and the time of the text are the arrival, in text in whole
seconds. `genericCLF` (3.7) has no duration.
The tenant is the header `X-Tenant-Id` where it is kept, else `ClientUsername`; `fields:` names other headers, as
`request_Canonical-Name`.
Missing: tokens; the model, unless a header has it; whether it was a stream; the time to the first token. Text has no
headers, so no tenant but the user, and no retries. What `filters:` leave out of the log is missing in all rates.
A client that leaves is 499, or 0 where the answer was a stream of events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.accesslog import COMBINED, QUOTED, READING, asked
from capwatch.dialect.identity import identity
from capwatch.dialect.path import object_of
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.upstream import judge
from capwatch.dialect.value import number, text, time
from capwatch.record import Request

Json = Mapping[str, object]

PATHS: Final[Paths] = {
    "request_id": ("request_X-Request-Id", "downstream_X-Request-Id"),
    "started_at": ("StartUTC", "StartLocal", "time_local"),
    "duration_s": ("Duration",),
    "route": ("RequestPath", "RouterName"),
    "status": ("DownstreamStatus",),
    "retries": ("RetryAttempts",),
}
TENANTS: Final = ("request_X-Tenant-Id", "ClientUsername")
REDACTED: Final = "REDACTED"
"""Stands for the value of a header that is logged with `redact`."""
MARKS: Final = ("DownstreamStatus", "Duration", "RequestMethod", "RequestPath")
"""Keys of which every access line has one; lines of Traefik's own log have none."""

JSON_NAMES: Final = {
    "status": "DownstreamStatus",
    "body_bytes_sent": "DownstreamContentSize",
    "remote_user": "ClientUsername",
}
"""What the parts of a text line are called in JSON."""

_OWN: Final = Skip("line of Traefik's own log")
_FOREIGN: Final = Drop("malformed", "no access log line")
_TEXT: Final = re.compile(
    COMBINED.pattern + rf"(?: {QUOTED} {QUOTED}(?: (?P<RequestCount>\d+|-) "
    r'"(?P<RouterName>[^"]*)" "(?P<ServiceURL>[^"]*)" (?P<milliseconds>\d+)ms)?)?'
)
_OWN_LOG: Final = re.compile(r'time="|\d{4}-\d\d-\d\dT\S+ [A-Z]{3} ')


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._table = Table(PATHS, options, "ns")

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One access log line, or a line of Traefik's own log."""
        if line.lstrip().startswith("{"):
            row = object_of(line)
            return self._judge(row) if row is not None else Drop("malformed", "broken JSON")
        found = _TEXT.fullmatch(line)
        if found is None:
            return _OWN if _OWN_LOG.match(line) else _FOREIGN
        method, path = asked(found["request"])
        names = {JSON_NAMES.get(name, name): value for name, value in found.groupdict().items()}
        took = number(found["milliseconds"], 1e6)
        return self._judge({**names, "RequestMethod": method, "RequestPath": path, "Duration": took})

    def _judge(self, row: Json) -> Verdict:
        if not any(name in row for name in MARKS):
            return _OWN if "level" in row else _FOREIGN
        if text(row.get("RequestMethod")) in READING:
            return Skip("no request to a model")
        return self._request(row)

    def _request(self, row: Json) -> Request:
        request = self._table.read(row)
        kept = (name for name in map(text, map(row.get, TENANTS)) if name not in (None, REDACTED))
        end = None if request.started_at is not None else time(row.get("time"), self._zone)
        self._table.derive(request, tenant=next(kept, None), finished_at=end, gateway_s=_overhead(row))
        judge(self._table, request, reached=_reached(row))
        if request.request_id is not None:  # clients may send the id, so it is no proof by itself
            request.dedupe_key = f"{request.request_id} {request.started_at}"
        else:  # the count is one of a process, so the rest has to tell processes apart
            count, size = first_told(row, "RequestCount"), row.get("DownstreamContentSize")
            port = row.get("ClientPort") or ""
            request.dedupe_key = identity(count, request.started_at, request.route, request.duration_s, size, port)
        return request


def _reached(row: Json) -> bool | None:
    """Whether a service answered: JSON lacks the origin where Traefik answered by itself, text has a dash."""
    if "ServiceURL" in row and "milliseconds" in row:
        return first_told(row, "ServiceURL") is not None if row["ServiceURL"] is not None else None
    return "OriginStatus" in row if "DownstreamStatus" in row else None


def _overhead(row: Json) -> float | None:
    """Seconds in Traefik itself; of an aborted stream the origin's time is lost, and all would be overhead."""
    lost = "OriginDuration" in row and not number(row["OriginDuration"])
    return None if lost else number(row.get("Overhead"), 1e-9)


FORMAT = Format(
    name="traefik",
    kind="gateway",
    title="Traefik 2 and 3: access logs, JSON or text (common)",
    reader=Lines,
    duplicates="the same `X-Request-Id` and start (clients may send the id, so it is no proof), or without one the "
    "same count, start, route, duration, size and port",
)
