"""Ollama's log: requests from its access lines, with the tokens and phases that the llama.cpp server below prints.

Program: Ollama 0.9 to 0.33, `ollama serve`.
Switched on: by default, to stderr. Tokens and phases are there from 0.30 on, whose runner is llama.cpp's own server.
Example: [GIN] 2026/08/20 - 09:30:31 | 200 |          5.1s |        10.0.0.5 | POST     "/api/chat"
Units: durations as Go prints them, whole seconds above one minute. Times of access lines are local and without a zone;
they take the offset that other lines print. Lines of the runner have no time and take that of the line before.
A start is that of a runner, which loads one model: ready, and the first request after it.
An access line has no id. The tasks that the runner ended shortly before are given to the good ones among them in their
order, each to the first that lasted long enough: totals are right, neighbours of one moment may have changed places.
Missing: first tokens, tenants and models; tokens and phases before 0.30; statistics of the engine but its capacity.
"""

from __future__ import annotations

import re
from typing import Final, cast

import msgspec

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.colour import plain
from capwatch.dialect.duration import duration
from capwatch.dialect.route import route
from capwatch.dialect.slots import Slots
from capwatch.dialect.starts import LAST, Starts
from capwatch.dialect.value import REFUSED, time
from capwatch.record import EngineSample, Request

INFERENCE: Final = frozenset(
    {
        "/api/chat",
        "/api/generate",
        "/api/embed",
        "/api/embeddings",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/responses",
    }
)
"""Paths that a model works for; the others ask for tags, versions and health, or load models."""
NEAR_LINES: Final = 64
"""A task's access line follows within a few lines; one that has not come by then is not written any more."""
ROUNDED_S: Final = 1.0
"""Durations of a minute and more are printed without their fraction."""
PRINTED_S: Final = 1e-4
"""Phases are printed to the hundredth of a millisecond, each rounded for itself."""

_ACCESS = re.compile(
    r'\[GIN\] (\d{4})/(\d\d)/(\d\d) - (\d\d:\d\d:\d\d) \| +(\d{3}) \| +(\S+) \| +\S+ \| +([A-Z]+) +"([^"]*)"', re.ASCII
)
_TIME = re.compile(r"time=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(Z|[+-]\d\d:\d\d)) level=\w+ ", re.ASCII)
_RUNNER = re.compile(r'msg="?starting (?:llama-server|runner|go runner|ollama engine)\b', re.ASCII)

_READY: Final = "llama-server started in "


class _Ended(msgspec.Struct, array_like=True):
    """A task that the runner ended: its request, and the number of the line that said so."""

    line: int
    request: Request


class _Memory(msgspec.Struct):
    """What the reader remembers between lines, beside the open tasks."""

    line: int = 0
    clock: float | None = None
    offset: str = ""
    """Of local time, as the last line with a time had it; access lines are of the same process."""
    ended: list[_Ended] = []


class Lines:
    """Reads one line at a time; remembers the runner's tasks, and those that still want their access line."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._slots = Slots()
        self._starts = Starts()
        self._memory = _Memory()

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines have their date
        """An access line of a model's path is a record."""
        line = plain(line)
        memory = self._memory
        memory.line += 1
        memory.ended = [one for one in memory.ended if memory.line - one.line <= NEAR_LINES]
        if line.startswith("[GIN]"):
            request = self._access(line)
            if isinstance(request, Request) and request.status == 200 and self._starts.ready:
                return self._starts.reach(LAST, request.finished_at, request)
            return request
        if stamp := _TIME.match(line):
            at = time(stamp[1], self._zone)
            memory.clock, memory.offset = (at, stamp[2]) if at != REFUSED else (memory.clock, memory.offset)
            if _RUNNER.search(line):
                self._slots.restart()
                return self._starts.begin(memory.clock)
            return (
                self._starts.reach("ready", memory.clock, Skip("no request")) if _READY in line else Skip("no request")
            )
        if line.startswith("slot ") or (line.startswith("srv ") and "n_slots = " in line):
            return self._runner(line)
        return Skip("other output")

    def _access(self, line: str) -> Verdict:
        found = _ACCESS.match(line)
        lasted = duration(found[6]) if found else None
        if not found or lasted is None:
            return Drop("malformed", "access line cut short")
        path, status = route(found[8]), int(found[5])
        if path not in INFERENCE or found[7] != "POST":
            return Skip("no request of a model")
        request = self._task(lasted) if status == 200 else Request()
        request.finished_at = time(f"{found[1]}-{found[2]}-{found[3]}T{found[4]}{self._memory.offset}", self._zone)
        request.route, request.status, request.duration_s = path, status, lasted
        request.outcome = {499: "client_abort", 503: "overload"}.get(status)
        return request

    def _task(self, lasted: float) -> Request:
        """The oldest task whose work fits into the duration of an access line; without one, nothing is known."""
        room = lasted + (ROUNDED_S if lasted >= 60 else PRINTED_S)
        for one in self._memory.ended:
            if (one.request.prefill_s or 0.0) + (one.request.decode_s or 0.0) <= room:
                self._memory.ended.remove(one)
                return one.request
        return Request()

    def _runner(self, line: str) -> Verdict:
        """A line of the llama.cpp server: a task that ended waits for its access line."""
        verdict = self._slots.message(line, "", None)
        if isinstance(verdict, Request):
            self._memory.ended.append(_Ended(self._memory.line, verdict))
            return Skip("end of a task")
        if isinstance(verdict, EngineSample):
            verdict.at = self._memory.clock
        return verdict

    def save(self) -> object:
        """The open tasks; those that ended, the last time and the number of the line."""
        return [self._slots.save(), msgspec.to_builtins(self._memory), self._starts.save()]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        slots, memory, starts = cast("tuple[object, object, object]", saved)
        self._starts.load(starts)
        self._slots.load(slots)
        self._memory = msgspec.convert(memory, _Memory)


FORMAT = Format(name="ollama", kind="engine", title="Ollama server log (0.9 to 0.33)", reader=Lines, mappable=False)
