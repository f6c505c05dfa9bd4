"""NVIDIA Dynamo's log: the front end's finished requests, and the statistics that its workers' engines print.

Program: Dynamo 0.7 to 1.6, front end and workers.
Switched on: by default, to stderr; JSON lines with `DYN_LOGGING_CONSOLE_FORMAT=jsonl` (before: `DYN_LOGGING_JSONL=1`).
Example: 2026-10-20T03:01:18.000300Z  INFO http-request: dynamo_llm::http::service::metrics: request completed
request_id=0b0f model=a/model endpoint=chat_completions request_type=stream status=success elapsed_ms=4100
input_tokens=400 output_tokens=90 ttft_ms="212.00"
Units: milliseconds; times are UTC, or have their offset; numbers may be quoted. The messages of vLLM, SGLang and
TensorRT-LLM workers are read by the same code as those engines' own logs. A request's id is that of the `x-request-id`
header where one came, so that it meets its row in a gateway's log; each log alone tells half: the front end's has
requests, a worker's has engine statistics.
Missing: cached tokens, tenants; statistics of engines whose workers log elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import tzinfo
from typing import Final, cast

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.batches import batch
from capwatch.dialect.colour import plain
from capwatch.dialect.fields import model
from capwatch.dialect.iterations import Iteration, iteration
from capwatch.dialect.path import first
from capwatch.dialect.route import route
from capwatch.dialect.starts import Starts
from capwatch.dialect.statistics import capacity, statistics
from capwatch.dialect.value import REFUSED, number, text, time
from capwatch.record import EngineSample, Request

COMPLETED: Final = "request completed"
OUTCOMES: Final = {
    "validation": "client_error",
    "not_found": "client_error",
    "not_implemented": "client_error",
    "overload": "overload",
    "unavailable": "upstream_error",
    "internal": "upstream_error",
    "cancelled": "client_abort",
    "response_timeout": "timeout",
}
"""What the front end's kinds of errors are."""
KEYS: Final = (
    "request_id",
    "x_request_id",
    "model",
    "uri",
    "request_type",
    "status",
    "error_type",
    "elapsed_ms",
    "input_tokens",
    "output_tokens",
    "ttft_ms",
)

_PREFIX = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) +(?:TRACE|DEBUG|INFO|WARN|ERROR) "
    r"(?:[\w.-]+(?:\{[^{}]*\})?: )?([\w.:]*\w): ",
    re.ASCII,
)
_PAIR = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|.*?)(?= \w+=|$)')
_READY = re.compile(r"has been initialized$")
_START = re.compile(
    r"vLLM (?:API )?server version |Initializing an? (?:V\d )?LLM engine |server_args=|TensorRT-LLM inited"
)


class Lines:
    """Reads one line at a time; remembers starts not told yet."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._starts = Starts()

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines have their date
        """A completed request is a record, an engine's statistics are a sample."""
        line = plain(line).rstrip()
        if line.startswith("{"):
            return self._json(line)
        prefix = _PREFIX.match(line)
        if not prefix:
            return Skip("other output")
        at, message = time(prefix[1], self._zone), line[prefix.end() :]
        if message.startswith(COMPLETED):
            return _completed(at, _pairs(message.removeprefix(COMPLETED)))
        return self._engine(at, message)

    def _json(self, line: str) -> Verdict:
        try:
            found = cast("object", json.loads(line))
        except ValueError:
            return Drop("malformed", "broken JSON") if line.startswith('{"time"') else Skip("other output")
        message = first(found, "message", "fields.message")
        if not isinstance(message, str):
            return Skip("other output")
        at = time(first(found, "time", "timestamp"), self._zone)
        if message == COMPLETED:
            return _completed(at, {key: first(found, key, f"fields.{key}", f"span.{key}") for key in KEYS})
        return self._engine(at, message)

    def _engine(self, at: float | None, message: str) -> Verdict:
        """What a worker passes on of its engine."""
        if _START.match(message):
            return Skip("start of an engine") if self._starts.open else self._starts.begin(at)
        if _READY.search(message):
            return self._starts.reach("ready", at, Skip("no request"))
        found = statistics(message) or capacity(message) or batch(message) or _iteration(message, self._zone)
        if not isinstance(found, EngineSample):
            return found or Skip("no request")
        if at is None or at == REFUSED:
            return Drop("bad_time")
        found.at = at
        told = self._starts.tell(found)
        return told if told.kv_capacity_tokens is None else self._starts.reach("kv_cache", at, told)

    def save(self) -> object:
        """Starts not told yet."""
        return self._starts.save()

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._starts.load(saved)


def _iteration(message: str, zone: tzinfo) -> EngineSample | Skip | Drop | None:
    found = iteration(message, zone) if message.startswith("iter = ") else None
    if not isinstance(found, Iteration):
        return found
    return Skip("repeats another rank") if found.rank else found.sample


def _pairs(body: str) -> Mapping[str, object]:
    """The fields of a readable line. What is said twice is last said by the span, with quotes where a client wrote it.

    The detail of an error is prose that quotes its client, so it is passed over, up to the field that follows it.
    """
    detail, after = body.find(" error_detail="), body.rfind(" elapsed_ms=")
    if 0 <= detail < after:
        body = body[:detail] + body[after:]
    return {key: value.removeprefix('"').removesuffix('"') for key, value in _PAIR.findall(body)}


def _completed(at: float | None, told: Mapping[str, object]) -> Request | Drop:
    """The record of a completed request."""
    status, elapsed = told.get("status"), number(told.get("elapsed_ms"), 1e-3)
    if status not in ("success", "error") or elapsed is None or elapsed == REFUSED:
        return Drop("malformed", "request cut short")
    kind = text(told.get("request_type"))
    return Request(
        request_id=text(told.get("x_request_id")) or text(told.get("request_id")),
        finished_at=at,
        model=model(told.get("model")),
        route=route(text(told.get("uri"))),
        stream={"stream": True, "unary": False}.get(kind or ""),
        prompt_tokens=number(told.get("input_tokens")),
        output_tokens=number(told.get("output_tokens")),
        duration_s=elapsed,
        ttft_s=number(told.get("ttft_ms"), 1e-3),
        outcome="ok" if status == "success" else OUTCOMES.get(str(told.get("error_type")), "upstream_error"),
    )


FORMAT = Format(name="dynamo", kind="engine", title="NVIDIA Dynamo log (0.7 to 1.6)", reader=Lines, mappable=False)
