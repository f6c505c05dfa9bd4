r"""HAProxy: one HTTP log line for each request, as text or as JSON.

Program: HAProxy 2.x to 3.5.
Switched on: by a `log` target and, for text, `option httplog` (or `httpslog`); its lines may stand behind a syslog
prefix. For JSON by `log-format "%{+json}o %(Ta)Ta …"` from 3.0 on, before that by one that is written by hand, on one
line:

    log-format '{"date":"%tr","TR":"%TR","Tw":"%Tw","Tc":"%Tc","Tr":"%Tr","Ta":"%Ta","status":"%ST","term_state":"%ts",
      "retries":"%rc","server":"%s","method":"%HM","path":"%{+E}HPO","client_port":"%cp","rt":"%rt",
      "tenant":"%[capture.req.hdr(0),json(utf8s)]"}'

The operator names the keys; known are `date`; `TR`, `Tw`, `Tc`, `Tr`, `Ta`; `status` or `ST`; `term_state`,
`termination_state` or `ts`; `retries` or `rc`; `path`, `HPO`, `HP`, `HU` or `request`; `method` or `HM`; `server` or
`s`; `ID` or `unique_id`; `client_port` or `cp`; `tenant`. Captured headers have no names in text:
`fields: {tenant: hr.0, model: hr.1}` takes those of the first braces by place, `hs.0` those of the second.
Example: Mar  3 09:15:02 gw-1 haproxy[14389]: 203.0.113.7:33301 [03/Mar/2026:09:15:00.120] llm_in~ vllm/gpu-a
0/5120/1/2306/7430 200 4388 - - ---- 13/13/8/3/0 0/4 {acme|llama-3.1-70b} {} "POST /v1/chat/completions HTTP/2.0"
Units: milliseconds, -1 for what was never reached; `[date]` is the arrival in local time (`timezone:` of the source).
`Tw` is the wait in the queue before a server (`maxconn`): `queue_s`, which no other gateway here tells.
Missing: tokens; the model and the tenant, unless captured; whether it was a stream; the time to the first token: `Tr`
is that of the headers. Lines of `option logasap` are written when the headers come: they have no duration and no end.
A long request may be cut, without its last quote: its route is what is left of it. `option httplog clf` and TCP lines
are not read. With `option abortonclose` a client that leaves before the answer is logged with status 400.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from capwatch.dialect import Drop, Format, Options, Skip, Stateless, Verdict
from capwatch.dialect.accesslog import READING, asked
from capwatch.dialect.identity import identity
from capwatch.dialect.path import object_of
from capwatch.dialect.route import route
from capwatch.dialect.settle import of_status
from capwatch.dialect.table import Paths, Table, first_told
from capwatch.dialect.upstream import judge
from capwatch.dialect.value import number, text
from capwatch.record import Request

Json = Mapping[str, object]

PATHS: Final[Paths] = {
    "request_id": ("ID", "unique_id", "request_id"),
    "started_at": ("date",),
    "tenant": ("tenant", "x-tenant-id"),
    "route": ("path", "HPO", "HP", "HU", "uri"),
    "status": ("status", "ST"),
    "retries": ("retries", "rc"),
}
STATUSES: Final = ("status", "ST")
STATES: Final = ("term_state", "termination_state", "ts", "tsc")
REQUESTS: Final = ("request", "r")
METHODS: Final = ("method", "HM")
SERVERS: Final = ("server", "s", "srv_name")
PORTS: Final = ("cp", "client_port")
NO_SERVER: Final = "<NOSRV>"
BAD_REQUEST: Final = "<BADREQ>"
"""Printed where no whole request came: idle connections that ended, port scans."""
NEVER_SENT: Final = -1
"""The status of a request that was answered by nothing."""

ENDED_BY: Final = {
    **dict.fromkeys("Cc", "client_abort"),
    "s": "timeout",
    **dict.fromkeys("SD", "upstream_error"),
    **dict.fromkeys("PRIK", "gateway_error"),
}
"""What the first letter of the termination state says; `L` and `-` leave it to the status (manual, section 8.5)."""

_TIMERS: Final = r"(?P<TR>-?\d+)/(?P<Tw>-?\d+)/(?P<Tc>-?\d+)/(?P<Tr>-?\d+)/(?P<Ta>[+-]?\d+)"
_HTTP: Final = re.compile(
    r"(?:.*?\s)??(?P<line>\S+:(?P<cp>\d+) \[(?P<date>\d\d/\w{3}/\d{4}:[\d:.]+)\] \S+ \S*?/(?P<server>\S+) "
    + _TIMERS
    + r" (?P<status>-?\d+) \+?(?P<bytes>\d+) \S+ \S+ (?P<term_state>\S{4}) \d+/\d+/\d+/\d+/(?P<retries>\+?\d+) \d+/\d+"
    r'(?: \{(?P<hr>[^}]*)\})?(?: \{(?P<hs>[^}]*)\})? "(?P<request>[^"]*)(?:"(?: .*)?)?)'
)
_OTHER: Final = re.compile(
    r"(?:.*?\s)??\S+:\d+ \[\d\d/\w{3}/\d{4}:[\d:.]+\] \S+(?: \S*/\S+ -?\d+/-?\d+/\+?\d+ \+?\d+ |: )"
    r"|(?:.*haproxy\[\d+\]: |<\d+>|\[\w+\]\s+\(\d+\) : )?(?:Proxy|Server|Backend|Health check for|backend|Stopping) .*"
    r"|\[(?:NOTICE|WARNING|ALERT)\]"
)
"""Connections without a request (TCP lines, failed handshakes), and what HAProxy says of itself."""


class Lines(Stateless):
    """Reads one line at a time."""

    def __init__(self, options: Options) -> None:
        self._table = Table(PATHS, options, "ms")

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines carry their time
        """One line of the HTTP log, or one that HAProxy says of itself."""
        start = line.find("{")
        if start >= 0 and line.endswith("}") and (row := object_of(line[start:])):  # a syslog prefix may stand before
            return self._judge(row)
        found = _HTTP.fullmatch(line)
        if found is None:
            broken = "broken JSON" if line.lstrip().startswith("{") else "no HTTP log line"
            return Skip("no request in it") if _OTHER.match(line) else Drop("malformed", broken)
        caught = {name: (found[name] or "").split("|") for name in ("hr", "hs")}
        return self._judge({**found.groupdict(), **caught})

    def _judge(self, row: Json) -> Verdict:
        request_line = text(first_told(row, *REQUESTS))
        method, path = asked(request_line)
        if request_line == BAD_REQUEST:
            return Skip("a connection on which no request came")
        if method in READING or first_told(row, *METHODS) in READING:
            return Skip("no request to a model")
        request = self._request(row, path)
        if (request.started_at, request.duration_s, request.status) == (None,) * 3:
            return Drop("malformed", "neither time nor status")
        return request

    def _request(self, row: Json, path: str | None) -> Request:
        request = self._table.read(row)
        early = (text(row.get("Ta")) or "").startswith("+")
        self._table.derive(
            request,
            duration_s=None if early else _milliseconds(row.get("Ta")),
            queue_s=_milliseconds(row.get("Tw")),
            route=request.route or route(path),
        )
        if number(first_told(row, *STATUSES)) == NEVER_SENT:
            self._table.derive(request, status=0)
        server, state = text(first_told(row, *SERVERS)), text(first_told(row, *STATES)) or ""
        reached = None if server is None and not state else server != NO_SERVER and not state.startswith("P")
        judge(self._table, request, reached=reached, told=_outcome(request.status, state, server))
        if request.request_id is None:
            # All that HAProxy prints (times, sizes, counters, port), without what a collector put before it.
            request.dedupe_key = identity(row.get("line") or (first_told(row, *PORTS) and str(sorted(row.items()))))
        return request


def _milliseconds(value: object) -> float | None:
    """A timer in seconds; -1 says that its stage was never reached."""
    read = number(value, 1e-3)
    return None if read is not None and read < 0 else read


def _outcome(code: int | None, state: str, server: str | None) -> str | None:
    """What termination state and status say together, by the precedence of the contract.

    A 503 is overload where HAProxy had no server for it: none that is up, or no place in a queue.
    """
    ended = ENDED_BY.get(state[:1])
    by_status = None if code is None else of_status(code)
    if ended in ("client_abort", "timeout"):
        return ended
    if by_status in ("client_abort", "timeout", "rate_limited", "client_error"):
        return by_status
    if by_status == "ok" and state.startswith("PR"):
        return "ok"  # a redirect, or an answer of HAProxy's own
    if code == 503 and (ended == "gateway_error" or server == NO_SERVER):
        return "overload"
    return ended or by_status


FORMAT = Format(
    name="haproxy",
    kind="gateway",
    title="HAProxy 2.x to 3.5: HTTP log, text (httplog) or JSON",
    reader=Lines,
    duplicates="the same unique id, or without one the same whole line, whatever the collector put before it",
)
