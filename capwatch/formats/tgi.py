"""Text Generation Inference's log: finished requests with their waits, refusals, and the token budget.

Program: TGI 2 and 3, to the last release 3.3.7; lines of launcher and router in one stream.
Switched on: by default, as text or with `--json-output`. Colours are on also without a terminal; `LOG_COLORIZE=1`
takes them away, in spite of its name.
Example: 2026-01-12T16:22:00.000005Z  INFO generate{parameters=GenerateParameters { max_new_tokens: Some(30), … }
total_time="402.004ms" queue_time="33.001µs" inference_time="401.669199ms" time_per_token="13.4ms" seed="None"}:
text_generation_router::server: router/src/server.rs:432: Success
Units: durations as Rust prints them (s, ms, µs, ns); times are UTC. Output tokens are the inference time divided by
the time per token, so they are marked as estimated: exact where the log has all digits. The capacity is a budget of
tokens that requests reserve, the only one that TGI has. A start is told from the launcher's `Args` on: shards with
their weights, the budget, `Connected`, the first success.
Missing: prompt tokens, first tokens, tenants and models; statistics of the engine, of which there is no line at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, cast

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.colour import plain
from capwatch.dialect.duration import duration
from capwatch.dialect.path import first
from capwatch.dialect.starts import LAST, Starts
from capwatch.dialect.value import REFUSED, time
from capwatch.record import EngineSample, Request

MOST_FIELDS: Final = 12
"""Fields of a span that are read from its end; the router writes seven."""
REFUSALS: Final = (
    ("no permits available", "overload", 429),
    ("Request failed during generation", "upstream_error", 424),
    ("`", "client_error", 422),  # validation names the parameter first
)
"""How messages of refused requests begin, what became of these, and the status that the client got."""
ROUTES: Final = {
    "generate": "/generate",
    "generate_stream": "/generate_stream",
    "compat_generate": "/",
    "completions": "/v1/completions",
    "chat_completions": "/v1/chat/completions",
}
"""The path of the span that a request was received in."""

_PREFIX = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) +(TRACE|DEBUG|INFO|WARN|ERROR) +", re.ASCII
)
_EVENT = r"\}(?::\w+)*: text_generation_router[\w:]*: (?:\S+:\d+: )?"
_SUCCESS = re.compile(_EVENT + r"Success$", re.ASCII)
_OTHER = re.compile(_EVENT + r"\S", re.ASCII)
_SPANS = re.compile(r"\w+(?::\w+)*(?=\{)", re.ASCII)
_KEY = re.compile(r"[ {](\w{1,40})=$", re.ASCII)
_INFER = re.compile(r": text_generation_router::infer: (?:\S+:\d+: )?(.*)", re.ASCII)
_PARAMETERS: Final = "parameters="
_CAP = re.compile(r'"?GenerateParameters \{[^"\[\]]*\bmax_new_tokens: (?:Some\((\d{1,9})\)|(None))', re.ASCII)
_BUDGET = re.compile(r"(?:Setting|Inferred) max batch total tokens(?: to|:)(?: (\d{1,15}))?$", re.ASCII)
_LAUNCH: Final = "text_generation_launcher: Args {"
_START: Final = "Starting Webserver"
"""The launcher's first word of a start; where that is not in the log, the one before the router is started."""
_SHARD = re.compile(r"Shard ready in \S+ rank=\d+$", re.ASCII)
_READY: Final = ": Connected"


class Lines:
    """Reads one line at a time; remembers starts not told yet."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._starts = Starts()

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines have their date
        """A finished or refused request is a record, a budget a sample."""
        line = plain(line).rstrip()
        if line.startswith("{"):
            return self._json(line)
        prefix = _PREFIX.match(line)
        if not prefix:
            return Skip("other output")
        at, message = time(prefix[1], self._zone), line[prefix.end() :]
        spans = _SPANS.match(message)
        if spans and (end := _SUCCESS.search(message)):
            span = message[: end.start()]
            finished = _finished(at, spans[0], _fields(span), span.partition(_PARAMETERS)[2])
            return self._starts.reach(LAST, at, finished)
        if prefix[2] == "ERROR":
            refused = _INFER.search(message)
            return _refused(at, spans[0] if spans else "", refused[1]) if refused else Skip("no request")
        if spans and _PARAMETERS in message:  # the times are written with the success, so without it this is cut
            other = _OTHER.search(message)
            if not other or "total_time" in _fields(message[: other.start()]):
                return Drop("malformed", "request cut short")
        return self._engine(at, message)

    def _json(self, line: str) -> Verdict:
        try:
            found = cast("object", json.loads(line))
        except ValueError:
            return Drop("malformed", "broken JSON") if line.startswith('{"timestamp"') else Skip("other output")
        message, target = first(found, "message", "fields.message"), first(found, "target")
        if not isinstance(message, str) or not isinstance(target, str) or not target.startswith("text_generation_"):
            return Skip("other output")
        at, name = time(first(found, "timestamp"), self._zone), str(first(found, "span.name", "spans.0.name"))
        if message == "Success":
            span = first(found, "span")
            fields = {key: str(value) for key, value in span.items()} if isinstance(span, dict) else {}
            return self._starts.reach(LAST, at, _finished(at, name, fields, fields.get("parameters", "")))
        if target == "text_generation_router::infer" and first(found, "level") == "ERROR":
            return _refused(at, name, message)
        return self._engine(at, message)

    def _engine(self, at: float | None, message: str) -> Verdict:
        """What launcher and router say of themselves."""
        if message.endswith(_LAUNCH):
            return self._starts.begin(at)
        if message.endswith(_START):
            part = self._starts.open and _START not in self._starts.phases
            verdict = Skip("start of the server") if part else self._starts.begin(at)
            self._starts.phases.add(_START)
            return verdict
        budget = _BUDGET.search(message)
        if not budget:
            phase = "weights" if _SHARD.search(message) else "ready" if message.endswith(_READY) else ""
            return self._starts.reach(phase, at, Skip("no request")) if phase else Skip("no request")
        if not budget[1]:
            return Drop("malformed", "capacity cut short")
        if at is None or at == REFUSED:
            return Drop("bad_time")
        return self._starts.reach(
            "kv_cache", at, self._starts.tell(EngineSample(at=at, kv_capacity_tokens=float(budget[1])))
        )

    def save(self) -> object:
        """Starts not told yet."""
        return self._starts.save()

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._starts.load(saved)


def _fields(span: str) -> dict[str, str]:
    """The quoted fields of a span beside its parameters, in which a client may have written anything.

    They are read from the right end, and from the left of the first parameters.
    """
    found: dict[str, str] = {}
    for piece in (span, span.partition(_PARAMETERS)[0].rstrip()):
        while piece.endswith('"') and len(found) < MOST_FIELDS:
            opened = piece.rfind('"', 0, -1)
            key = _KEY.search(piece, 0, max(opened, 0))
            if not key or key[1] + "=" == _PARAMETERS:
                break
            found.setdefault(key[1], piece[opened + 1 : -1])
            piece = piece[: key.start()]  # noqa: PLW2901 - what is left of it
    return found


def _finished(at: float | None, spans: str, fields: Mapping[str, str], parameters: str) -> Request | Drop:
    """The record of a span that ended well; ``parameters`` begins with those of the request."""
    lasted = duration(fields.get("total_time", ""))
    if lasted is None:
        return Drop("malformed", "request without its times")
    worked, each = duration(fields.get("inference_time", "")), duration(fields.get("time_per_token", ""))
    output = float(round(worked / each)) if worked and each else None
    cap = _CAP.match(parameters)
    return Request(
        finished_at=at,
        route=ROUTES.get(spans.partition(":")[0]),
        stream=_stream(spans),
        max_output_tokens=float(cap[1]) if cap and cap[1] else None,
        uncapped=bool(cap and cap[2]),
        output_tokens=output,
        usage="estimated" if output else None,
        duration_s=lasted,
        queue_s=duration(fields.get("queue_time", "")),
        outcome="ok",
        status=200,
    )


def _refused(at: float | None, spans: str, message: str) -> Request | Skip:
    for begin, outcome, status in REFUSALS:
        if message.startswith(begin):
            route = ROUTES.get(spans.partition(":")[0])
            return Request(finished_at=at, route=route, outcome=outcome, status=status)
    return Skip("no request")


def _stream(spans: str) -> bool | None:
    """Only the paths of TGI's own say it: both kinds of chat have one span."""
    names = spans.split(":")
    return True if "generate_stream" in names else False if "generate" in names else None


FORMAT = Format(name="tgi", kind="engine", title="Text Generation Inference log (2, 3)", reader=Lines, mappable=False)
