"""SGLang's server log: batches, retractions and KV capacity, and finished requests where they are logged.

Program: SGLang 0.2 to 0.5.23.
Switched on: batch lines by default. Requests with their tokens: `--log-requests --log-requests-format json` (or text),
`--enable-request-time-stats-logging`, or the files of `--export-metrics-to-file`.
Example: [2026-10-12 14:01:10] Decode batch, #running-req: 61, #token: 176810, token usage: 0.98, cuda graph: True,
gen throughput (token/s): 2103.40, #queue-req: 38
Units: whole requests, shares with two decimals, tokens/s; times are process local, in 2024 without a date. Lines have
no level. A decode line comes every 40 steps, a prefill line with every batch, and an idle engine is silent.
A start is told from `server_args=` on: weights, KV cache, ready, and the first request or batch after that.
Each data-parallel rank is an engine of its own; tensor, pipeline and context ranks repeat it and are passed over. The
`rid` of a request is the id of its answer, so that it meets the row of a gateway that logs that id.
Missing: requests that were refused before they were queued (the client's 503 has no line), models, routes; tenants,
unless a header that SGLang was told to log names them (`fields: {tenant: headers.x-tenant}`).
"""

from __future__ import annotations

import ast
import json
import re
from typing import Final, cast

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.batches import batch
from capwatch.dialect.colour import plain
from capwatch.dialect.fields import Mapped, status
from capwatch.dialect.path import first, walk
from capwatch.dialect.starts import LAST, Starts
from capwatch.dialect.value import REFUSED, flag, number, text, time
from capwatch.dialect.yearless import dateless
from capwatch.record import EngineSample, Request

FIRST_EPOCH: Final = 1e9
"""Seconds below this count from the start of a machine; versions of 2025-08 printed such start times."""
MOST_RANKS: Final = 256
"""Data-parallel ranks remembered; more than a server has."""
PHASES: Final = {
    "Load weight end": "weights",
    "KV Cache is allocated": "kv_cache",
    "Application startup complete": "ready",
    "The server is fired up and ready to roll": "ready",
}
"""Words of a start, and the phase that it has come to with them; the last of several counts."""
LONGEST_REPR: Final = 65_536
"""Characters of a Python literal that is read; `meta_info` has a few hundred."""

_PREFIX = re.compile(r"\[(\d{4}-\d\d-\d\d )?(\d\d:\d\d:\d\d(?:\.\d{1,6})?)((?: [A-Z_]+\d+)*)\] ?", re.ASCII)
_CLOCKLESS = re.compile(r"\[gpu(?:_id)?=\d+\] ", re.ASCII)
_RANK = re.compile(r" ([A-Z_]+)(\d+)", re.ASCII)
_JSON_LOG = re.compile(r'\{\s*"(?:timestamp|event|rid|request_parameters)"')
_TIMES = re.compile(r"Req ?Time ?Stats\(")
_TIMED = re.compile(
    r"Req ?Time ?Stats\(rid=([^,()]{1,256})((?:, [^,()]+=[^,()]*)*)\): "
    r"queue_duration=(\d+\.\d+)ms, forward_duration=(\d+\.\d+)ms, (?:start|entry)_time=(\d+\.\d{3})",
    re.ASCII,
)
_NAMED = re.compile(r", ([^,()=]+)=([^,()]*)")
_META = "'meta_info': {"


class Lines:
    """Reads one line at a time; remembers starts not told yet, and which tensor rank speaks for each replica."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._mapped = Mapped(options.fields, options.zone)
        self._starts = Starts()
        self._speakers: dict[str, int] = {}

    def read(self, line: str, near: float) -> Verdict:
        """One line is at most one sample, or the requests of one call."""
        line = plain(line)
        prefix = _PREFIX.match(line)
        message = line[prefix.end() :] if prefix else _CLOCKLESS.sub("", line, count=1)
        if message.startswith("{"):
            return self._first(self._json(message))
        at = self._time(prefix, near)
        if message.startswith("server_args="):
            self._speakers.clear()
            return self._starts.begin(at)
        if _TIMES.match(message):
            return self._first(self._timed(message, at))
        if message.startswith("Finish: "):
            return self._first(self._finish(message, at))
        verdict = batch(message)
        if not isinstance(verdict, EngineSample):
            phase = next((phase for words, phase in PHASES.items() if words in message), "")
            found = verdict or Skip("no statistics")
            return self._starts.reach(phase, at, found) if phase else found
        if at == REFUSED or (at is None and not _CLOCKLESS.match(line)):
            return Drop("bad_time")
        verdict.at = at
        replica = self._replica(prefix[3] if prefix else "")
        if replica is None:
            return Skip("repeats another rank")
        verdict.engine = replica or None
        told = self._starts.tell(verdict)
        if told.kv_capacity_tokens is not None and "kv_cache" not in self._starts.phases:  # 2024: no line before it
            return self._starts.reach("kv_cache", at, told)
        # Before it is ready a server sends itself a request.
        return self._starts.reach(LAST, at, told) if told.output_tokens_per_s and self._starts.ready else told

    def _first(self, verdict: Verdict) -> Verdict:
        """The verdict on a request, the first good one of which ends a start."""
        if isinstance(verdict, Request) and verdict.outcome == "ok" and self._starts.ready:
            return self._starts.reach(LAST, verdict.finished_at, verdict)
        return verdict

    def _time(self, prefix: re.Match[str] | None, near: float) -> float | None:
        if prefix is None:
            return None
        if prefix[1]:
            return time(prefix[1] + prefix[2], self._zone)
        return dateless(prefix[2], self._zone, near)

    def _replica(self, ranks: str) -> str | None:
        """The data-parallel rank of a line, empty without one; None for a rank that repeats another one.

        With attention in parallel, each data-parallel rank has tensor ranks of its own and its first one speaks.
        """
        found = {name: int(number) for name, number in _RANK.findall(ranks)}
        tensor = found.get("TP", 0)
        if found.get("PP") or found.get("ATTN_CP") or (tensor and "DP" not in found):
            return None
        replica = str(found.get("DP", ""))
        if self._speakers.setdefault(replica, tensor) < tensor or len(self._speakers) > MOST_RANKS:
            return None
        self._speakers[replica] = tensor
        return replica

    def _timed(self, message: str, at: float | None) -> Verdict:
        """A line of `--enable-request-time-stats-logging`, in the spelling of either time."""
        found = _TIMED.fullmatch(message)
        if not found:
            return Drop("malformed", "request times cut short")
        named = {name.replace(" ", "_"): value for name, value in _NAMED.findall(found[2])}
        queued, worked, entered = float(found[3]) / 1000, float(found[4]) / 1000, float(found[5])
        request = Request(
            request_id=found[1],
            started_at=entered if entered >= FIRST_EPOCH else None,
            finished_at=at if entered < FIRST_EPOCH else None,
            prompt_tokens=number(named.get("input_len")),
            cached_tokens=number(named.get("cached_input_len")),
            output_tokens=number(named.get("output_len")),
            duration_s=queued + worked,
            queue_s=queued,
            outcome="ok",
        )
        kind = named.get("type")
        if kind in ("prefill", "decode"):  # of a server that does only this
            setattr(request, f"{kind}_s", worked)
        return request

    def _finish(self, message: str, at: float | None) -> Verdict:
        """A line of `--log-requests` in text: the counts of its last `meta_info`, whatever texts stand before it."""
        begin = message.rfind(_META)
        end = message.rfind("}}")
        if begin < 0 or end < begin or end - begin > LONGEST_REPR:
            return Drop("malformed", "request without its counts")
        try:
            meta = cast("object", ast.literal_eval(message[begin + len(_META) - 1 : end + 1]))
        except (SyntaxError, MemoryError) as error:
            raise ValueError("no literal") from error
        return _request(meta, at, stream=None)

    def _json(self, message: str) -> Verdict:
        try:
            found = cast("object", json.loads(message))
        except ValueError:
            return Drop("malformed", "broken JSON") if _JSON_LOG.match(message) else Skip("other output")
        if not isinstance(found, dict):
            return Skip("other output")
        if "request_parameters" in found and "e2e_latency" in found:  # --export-metrics-to-file
            at = first(found, "timestamp", "response_sent_to_client_ts", "decode_finished_ts", "request_received_ts")
            stream = flag(walk(found, "request_parameters.stream"))
            return self._map(_request(found, time(at, self._zone), stream), found)
        if found.get("event") != "request.finished":
            return Skip("no finished request")
        at = time(found.get("timestamp"), self._zone)
        out = found.get("out")
        metas = [walk(one, "meta_info") for one in (out if isinstance(out, list) else [out])]
        if not metas or not all(isinstance(meta, dict) for meta in metas):
            return Drop("malformed", "request without its counts")
        stream = flag(walk(found, "obj.stream"))
        requests = [self._map(_request(meta, at, stream), found) for meta in metas]
        if len(requests) == 1:
            requests[0].request_id = requests[0].request_id or text(found.get("rid"))
            return requests[0]
        return cast("Verdict", requests)

    def _map(self, request: Request, found: object) -> Request:
        self._mapped.fill(request, found)
        return request

    def save(self) -> object:
        """Starts, and the speaking rank of each replica."""
        return [self._starts.save(), dict(self._speakers)]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        starts, speakers = cast("tuple[object, dict[str, int]]", saved)
        self._starts.load(starts)
        self._speakers = dict(speakers)


def _request(meta: object, at: float | None, stream: bool | None) -> Request:
    """The record of one `meta_info`: latencies in s, an abort with the status that its client got."""
    request = Request(
        request_id=text(walk(meta, "id")),
        finished_at=at,
        stream=stream,
        prompt_tokens=number(walk(meta, "prompt_tokens")),
        cached_tokens=number(walk(meta, "cached_tokens")),
        output_tokens=number(walk(meta, "completion_tokens")),
        duration_s=number(walk(meta, "e2e_latency")),
        ttft_s=number(walk(meta, "first_token_latency")),
        queue_s=number(first(meta, "queue_time")),
        outcome="ok",
    )
    if walk(meta, "finish_reason.type") == "abort":
        request.status = status(walk(meta, "finish_reason.status_code"))
        request.outcome = {None: "client_abort", 503: "overload"}.get(request.status)
    return request


FORMAT = Format(name="sglang", kind="engine", title="SGLang server log (0.2 to 0.5.23)", reader=Lines)
