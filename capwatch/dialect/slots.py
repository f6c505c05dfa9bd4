"""Tasks in the slots of a llama.cpp server: one record of each, put together from the lines that tell of it.

`prompt eval time` counts evaluated tokens, without those from the cache; the release line has n = prompt + output - 1,
which gives the prompt. The release comes before the timings in builds of 2025 and after them in others: the record
stands on the later of the two.
"""

from __future__ import annotations

import re
from typing import Final, cast

import msgspec

from capwatch.dialect.starts import LAST
from capwatch.dialect.value import number
from capwatch.dialect.verdict import Aside, Drop, Held, Skip, Verdict
from capwatch.record import EngineSample, Reached, Request

PHASES: Final = {"model loaded": "weights", "listening on http": "ready"}
"""Words of a start, and the phase that it has come to with them."""
MOST_SLOTS: Final = 4096
"""Slots whose task is remembered: a router with many children and slots has hundreds."""
BACKWARDS_S: Final = 1.0
"""Threads write a little out of order; an uptime that falls by more is a new process."""

_SLOT = re.compile(r"slot +(\w+): id +(\d{1,9}) \| task +(-?\d{1,18}) \| ?(.*)", re.ASCII)
_SLOT_START = re.compile(r"slot +(?:print_timing|launch_slot_|release):")

_TIMING = re.compile(r"(prompt eval|generation eval|eval|total) time +=")
_TIME = re.compile(r" +(\d{1,12}(?:\.\d+)?) ms(?: / +(\d{1,12}) (?:tokens|runs)\b|$)", re.ASCII)
_RELEASE = re.compile(r"stop processing: n_(?:past|tokens) = (\d{1,12}), truncated = ([01])\b", re.ASCII)
_SLOTS = re.compile(
    r"initializing, n_slots = (\d{1,9}), n_ctx_slot = (\d{1,12})(?:, kv_unified = '(true|false)')?", re.ASCII
)


_NOBODY: Final = -1
"""The task of timings whose header was not seen; no release can be theirs."""


class _Task(msgspec.Struct):
    """What is known so far of the task in one slot. Times in s, counts in tokens."""

    task: int
    launched: float | None = None
    """Uptime at which the slot took it."""
    finished_at: float | None = None
    prefill_s: float | None = None
    evaluated: float | None = None
    decode_s: float | None = None
    output: float | None = None
    timed: bool = False
    """Whether its last timing line was seen."""
    held: float | None = None
    """Tokens in the slot at the release; None before it."""
    whole: bool = True
    """False where the context was shifted or truncated, so that the tokens held tell nothing of the prompt."""

    def request(self, uptime: float | None) -> Request:
        """The record, as far as known; ``uptime`` is that of the task's last line."""
        prompt = cached = None
        if self.whole and self.held is not None and self.output and self.evaluated is not None:
            prompt = self.held - self.output + 1
            cached = prompt - self.evaluated
            if cached < 0:
                prompt = cached = None
        worked = (self.prefill_s or 0.0) + (self.decode_s or 0.0)
        served = worked if uptime is None or self.launched is None else uptime - self.launched
        return Request(
            finished_at=self.finished_at,
            prompt_tokens=prompt,
            cached_tokens=cached,
            output_tokens=self.output,
            duration_s=max(served, worked),
            prefill_s=self.prefill_s,
            decode_s=self.decode_s,
        )


class _Memory(msgspec.Struct):
    """What the reader remembers between lines."""

    slots: dict[str, _Task] = {}
    """By child (port, empty without a router) and slot."""
    header: dict[str, str] = {}
    """By child: the slot whose bare timing lines follow."""
    uptime: dict[str, float] = {}
    """By child, s."""
    starts: int = 0
    fresh: bool = False
    """Whether a start was seen that has not served a request yet."""


class Slots:
    """Reads one message at a time; remembers the open task of each slot."""

    def __init__(self) -> None:
        self._memory = _Memory()

    def old(self, message: str, keys: dict[str, str]) -> Verdict:
        """A record of builds up to b3600: slot, task and clock time are keys beside the message."""
        if message == "initializing slots":
            self.restart("")
        if "id_slot" not in keys or "id_task" not in keys:
            return Skip("no timing")
        name = f"/{int(keys['id_slot'])}"
        number_of_task = int(keys["id_task"])
        left = self._give_up(name, number_of_task)
        verdict = self._old_slot(name, number_of_task, message.strip(), keys)
        return left if left and isinstance(verdict, Skip) else verdict

    def _old_slot(self, name: str, number_of_task: int, body: str, keys: dict[str, str]) -> Verdict:
        task = self._open(name, number_of_task)
        at = number(keys.get("timestamp"))
        if _TIMING.match(body):
            return self._timing(name, task, body, None, at)
        if body == "slot released":
            task.whole &= keys.get("truncated", "").lower() == "false"
            return self._released(name, task, float(int(keys["n_past"])), None, at)
        return Skip("no timing")

    def message(self, message: str, child: str, uptime: float | None) -> Verdict:
        """A message of builds from late 2024 on."""
        if uptime is not None:
            if uptime < self._memory.uptime.get(child, 0.0) - BACKWARDS_S:
                self.restart(child)
            self._memory.uptime[child] = uptime
        body = message.strip()
        slot = _SLOT.fullmatch(message)
        if slot:
            name = f"{child}/{int(slot[2])}"
            if int(slot[3]) < 0:
                return Skip("choice of a slot")
            left = self._give_up(name, int(slot[3]))
            verdict = self._slot(name, int(slot[3]), slot[1], slot[4].strip(), uptime)
            verdict = left if left and isinstance(verdict, Skip) else verdict
            return self._reach(LAST, uptime, verdict, child) if isinstance(verdict, Request) else verdict
        if _SLOT_START.match(message):
            return Drop("malformed", "slot line cut short")
        if _TIMING.match(body):  # under the header of its task
            name = self._memory.header.get(child, f"{child}/")
            task = self._memory.slots.get(name) or self._open(name, _NOBODY)
            return self._timing(name, task, body, uptime, None)
        if found := _SLOTS.search(body):
            capacity = self._capacity(child, int(found[1]), int(found[2]), unified=found[3] == "true")
            return self._reach("kv_cache", uptime, capacity, child)
        if body.endswith("llama_server: initializing ...") or body.startswith("main: server is listening"):
            self.restart(child)
            return self._reach("start", uptime, Skip("start of the server"), child)
        phase = next((phase for words, phase in PHASES.items() if body.startswith("srv ") and words in body), "")
        return self._reach(phase, uptime, Skip("no timing"), child) if phase else Skip("no timing")

    def _reach(self, phase: str, uptime: float | None, verdict: Verdict, child: str) -> Verdict:
        """The verdict, and that a start has come to a phase: an uptime is the time since it."""
        if uptime is None or child or isinstance(verdict, Drop | Held | Aside):
            return verdict
        if phase == "start":
            self._memory.fresh = True
        if not self._memory.fresh:
            return verdict
        self._memory.fresh = phase != LAST
        return Aside(verdict, Reached(phase, 0.0 if phase == "start" else uptime))

    def _slot(self, name: str, task: int, function: str, body: str, uptime: float | None) -> Verdict:
        """A line of one task in one slot."""
        if function == "launch_slot_":
            self._open(name, task).launched = uptime
            return Skip("start of a task")
        if function == "print_timing":
            self._memory.header[name.partition("/")[0]] = name
            if _TIMING.match(body):
                return self._timing(name, self._open(name, task), body, uptime, None)
            self._open(name, task)
        if function == "release":
            release = _RELEASE.match(body)
            if not release:
                return Drop("malformed", "release without its tokens")
            known = self._open(name, task)
            known.whole &= release[2] == "0"
            return self._released(name, known, float(release[1]), uptime, None)
        if body.startswith("slot context shift"):
            self._open(name, task).whole = False
        return Skip("no timing")

    def _timing(self, name: str, task: _Task, body: str, uptime: float | None, at: float | None) -> Verdict:
        """One of the lines `prompt eval time`, `eval time`, `total time`."""
        timing = cast("re.Match[str]", _TIMING.match(body))
        kind, found = timing[1], _TIME.match(body, timing.end())
        if not found or (kind != "total" and not found[2]):
            return Drop("malformed", "timing cut short")
        seconds = float(found[1]) * 1e-3
        task.finished_at = at
        if kind == "prompt eval":
            task.prefill_s, task.evaluated = seconds, float(found[2])
        elif kind != "total":
            task.decode_s, task.output = seconds, float(found[2])
        else:
            task.timed = True
            if task.held is not None or task.task == _NOBODY:
                return self._finish(name, uptime)
        return Skip("part of a task's timings")

    def _released(self, name: str, task: _Task, held: float, uptime: float | None, at: float | None) -> Verdict:
        task.held = held
        task.finished_at = at
        return self._finish(name, uptime) if task.timed else Skip("end of a task")

    def _finish(self, name: str, uptime: float | None) -> Request:
        return self._memory.slots.pop(name).request(uptime)

    def _open(self, name: str, task: int) -> _Task:
        """The open task of a slot; an earlier task there is forgotten."""
        slots = self._memory.slots
        if name not in slots or slots[name].task != task:
            slots.pop(name, None)
            slots[name] = _Task(task)
            if len(slots) > MOST_SLOTS:
                del slots[next(iter(slots))]
        return slots[name]

    def _give_up(self, name: str, task: int) -> Request | None:
        """The record of an earlier task in the slot of ``task``, whose timings came but whose release was lost."""
        left = self._memory.slots.get(name)
        return left.request(None) if left and left.timed and left.task != task else None

    def _capacity(self, child: str, slots: int, tokens: int, *, unified: bool) -> EngineSample:
        """A unified cache is shared by all slots, each of which may fill it."""
        starts, self._memory.starts = self._memory.starts, 0
        return EngineSample(
            engine=child or None,
            kv_capacity_tokens=float(tokens if unified else tokens * slots),
            starts=float(starts) if starts else None,
        )

    def restart(self, child: str = "") -> None:
        """A new process knows nothing of the old one's tasks."""
        memory = self._memory
        memory.slots = {name: task for name, task in memory.slots.items() if name.partition("/")[0] != child}
        memory.header.pop(child, None)
        memory.uptime.pop(child, None)
        memory.starts += 1

    def save(self) -> object:
        """The open tasks, the last header and uptime of each child, and starts not told yet."""
        return cast("object", msgspec.to_builtins(self._memory))

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._memory = msgspec.convert(saved, _Memory)
