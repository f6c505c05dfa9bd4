"""LMDeploy's log: periodic statistics in their three shapes, and finished sessions with their tokens.

Program: LMDeploy 0.9 to 0.18, `lmdeploy serve api_server` with the TurboMind or the PyTorch back end.
Switched on: statistics by `--enable-metrics`; sessions by `--log-level INFO`.
Example: [2026-09-10 12:01:00 DP0] Avg thr (in/out): 5210.2 / 2901.0 tokens/s, Server (succeeded/failed/routed/waiting):
60 / 1 / 64 / 120, Engine (running/waiting): 50 / 14, KV cache: 98.0%, Prefix cache hit rate: 13.0%,
Units: tokens/s, whole requests, percent; times are process local. Requests wait in the server and in the engine: both
count. The KV share includes cached blocks that could be used anew, so an idle engine may show some.
Each data-parallel rank is an engine of its own. An interval without tokens prints nothing. Statistics go to standard
output and the rest to standard error, so a start may show only in totals that fall.
Missing: first tokens, routes, tenants and models; ids that another log knows, for sessions are numbered anew by each
server.
"""

from __future__ import annotations

import re
from typing import Final, cast

import msgspec

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.colour import plain
from capwatch.dialect.starts import LAST, Starts
from capwatch.dialect.statistics import BEGINNINGS, parts
from capwatch.dialect.value import REFUSED, time
from capwatch.record import EngineSample, Request

MOST_SESSIONS: Final = 4096
"""Sessions whose begin is remembered: far more than a server works on at once."""
OUTCOMES: Final = {
    "abort": "client_abort",
    "cancel": "client_abort",
    "error": "upstream_error",
    "internal_error": "upstream_error",
}
"""What reasons of an end mean; the others are ends as they should be."""

_STATS = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) DP(\d{1,4})\] ", re.ASCII)
_LOG = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) - lmdeploy - [A-Z]+ - (?:[^:]{1,80} - )?[\w./-]+:\d+ - (.*)", re.ASCII
)
_LISTED = re.compile(
    r"(?:^|, )([A-Z][\w ]*) \((\w+(?:/\w+)*)\): (\d+(?:\.\d)?(?: / \d+(?:\.\d)?)*)(?= tokens/s(?:,|$)|,|$)", re.ASCII
)
_SHARE = re.compile(r", (KV cache|Prefix cache hit rate): (\d{1,3}\.\d)%(?=,|$)", re.ASCII)
_BEGUN = re.compile(r"session=(\d{1,18}), input_tokens=\d+, max_new_tokens=(\d{1,12})\b", re.ASCII)
_ENDED = re.compile(
    r'session (\d{1,18}) finished, reason "(\w*)", input_tokens (\d{1,12}), output_tokens (\d{1,12})$', re.ASCII
)
_FINISHED = re.compile(r", Finished: (\d{1,12}) reqs, ", re.ASCII)
_START: Final = "input backend="


class _Begun(msgspec.Struct, array_like=True):
    """When a session began (s, epoch), and the cap on its output."""

    at: float
    cap: float


class Lines:
    """Reads one line at a time; remembers open sessions, totals by engine, and starts not told yet."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._starts = Starts()
        self._sessions: dict[str, _Begun] = {}
        self._totals: dict[str, float] = {}

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines have their date
        """Statistics are a sample, the end of a session is a record."""
        line = plain(line).rstrip()
        if stats := _STATS.match(line):
            return self._statistics(line[stats.end() :], stats[1], str(int(stats[2])))
        log = _LOG.match(line)
        if not log:
            return Skip("other output")
        at, message = time(log[1].replace(",", "."), self._zone), log[2]
        if message.startswith(_START):
            return self._begin(at)
        if (begun := _BEGUN.match(message)) and at is not None and at != REFUSED:
            self._sessions[begun[1]] = _Begun(at, float(begun[2]))
            if len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            return Skip("start of a session")
        if message.startswith("session ") and " finished" in message:
            ended = self._ended(message, at)
            good = isinstance(ended, Request) and ended.outcome == "ok"
            return self._starts.reach(LAST, at, ended) if good else ended
        return Skip("no statistics")

    def _ended(self, message: str, at: float | None) -> Verdict:
        ended = _ENDED.match(message)
        if not ended:
            return Drop("malformed", "session cut short")
        begun = self._sessions.pop(ended[1], None)
        return Request(
            started_at=begun.at if begun else None,
            finished_at=at,
            max_output_tokens=begun.cap if begun else None,
            prompt_tokens=float(ended[3]),
            output_tokens=float(ended[4]),
            outcome=OUTCOMES.get(ended[2], "ok"),
        )

    def _statistics(self, body: str, stamp: str, engine: str) -> Verdict:
        if body.startswith(BEGINNINGS):  # 2025: in vLLM's words
            sample = parts(body, engine)
            finished = _FINISHED.search(body)
            total = float(finished[1]) if finished else None
        else:
            sample, total = _listed(body, engine)
        if isinstance(sample, Drop):
            return sample
        at = time(stamp, self._zone)
        if at is None or at == REFUSED:
            return Drop("bad_time")
        sample.at = at
        if total is not None:
            if total < self._totals.get(engine, 0):
                self._begin()
            self._totals[engine] = total
        return self._starts.tell(sample)

    def _begin(self, at: float | None = None) -> Verdict:
        """A new server has no sessions yet, and counts from 0."""
        self._sessions.clear()
        self._totals.clear()
        return self._starts.begin(at)

    def save(self) -> object:
        """Starts, open sessions, totals by engine."""
        return [self._starts.save(), msgspec.to_builtins(self._sessions), dict(self._totals)]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        starts, sessions, totals = cast("tuple[object, object, dict[str, float]]", saved)
        self._starts.load(starts)
        self._sessions = msgspec.convert(sessions, dict[str, _Begun])
        self._totals = dict(totals)


def _listed(body: str, engine: str) -> tuple[EngineSample | Drop, float | None]:
    """The sample of the shapes of 2026, `Name (this/that): 1 / 2`, and the requests that ended since the start."""
    values: dict[str, float] = {}
    for group, names, numbers in _LISTED.findall(body):
        told = [float(one) for one in numbers.split(" / ")]
        if len(told) == len(names.split("/")):
            where = "engine" if group == "Engine" else "server" if group.lower().endswith("server") else "rate"
            values |= {f"{where} {name}": one for name, one in zip(names.split("/"), told, strict=True)}
    shares = {name: float(percent) / 100 for name, percent in _SHARE.findall(body)}
    wanted = {"rate in", "rate out", "engine running", "engine waiting", "server waiting"}
    if not wanted <= values.keys() or "KV cache" not in shares or max(shares.values()) > 1:
        return Drop("malformed", "statistics cut short"), None
    sample = EngineSample(
        engine=engine,
        running=values["engine running"],
        waiting=values["engine waiting"] + values["server waiting"],
        kv_utilisation=shares["KV cache"],
        prompt_tokens_per_s=values["rate in"],
        output_tokens_per_s=values["rate out"],
        prefix_hit_ratio=shares.get("Prefix cache hit rate"),
    )
    return sample, values.get("server succeeded", values.get("server completed"))


FORMAT = Format(name="lmdeploy", kind="engine", title="LMDeploy log (0.9 to 0.18)", reader=Lines, mappable=False)
