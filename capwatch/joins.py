"""Joins: what other logs tell of single requests, held until the row that counts the same request arrives.

Engines tell queue, prefill and decode, orchestrators and traces tell retrieval and tools. They know neither the
gateway's source nor its labels, so requests are told apart by their id, or by the id of their trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from capwatch.record import MISSING, PHASE_FIELDS, Batch, Bools, Floats, Ints, zeroed

MOST: Final = 20_000
"""Records held at most, the oldest go first: two minutes at 139 requests/s, far more than gateways buffer their logs.
Joined ones go at once, so only where ids never match does it fill up (about 10 MB)."""
MOST_OF_ONE: Final = 64
"""Records held of one id at most: more calls than an agent makes for one answer."""
WAIT_S: Final = 900.0
"""How long a record waits for its gateway row, in event time: as long as a late row is taken into its rollup."""
SLACK_S: Final = 1.0
"""A trace is larger than a request: what is joined by it happened within the request, give or take this."""
PHASES: Final = ("retrieval_s", "tool_s", "queue_s", "prefill_s", "decode_s")
"""Phases that a joined request takes over where its gateway does not tell them."""
TOLD: Final = (*PHASES, "retrieval_visits", "tool_visits", "model_visits", "cached_tokens")
"""All that a joined request takes over."""
SAME_S: Final = 1e-6
"""A phase this near to what TTFT and duration give was derived from them, not told."""

_MODEL: Final = ("queue_s", "prefill_s", "decode_s", "prompt_tokens", "output_tokens")
"""What only a record of a model's call tells."""
_BEFORE_ENGINE: Final = ("gateway_s", "retrieval_s", "tool_s")
_PREFIX: Final = re.compile(r"(?:chatcmpl|cmpl|embd|resp|req)[-_](?=.)")
"""What engines and providers put before the id that they were given."""
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", re.IGNORECASE)


class Held(NamedTuple):
    """What a record tells."""

    one: str
    """The request's id as `same` spells it; empty where it tells none."""
    trace: str
    at: float
    """Event time, s, epoch."""
    is_part: bool
    """Whether it is only a span of a request, see `Request.part`."""
    told: tuple[float, ...]
    """`TOLD`, NaN where it is not told."""


class Joins:
    """Records by id, in the order of their arrival. Plain values: `save` and `load`."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        """By serial number."""
        self._by: dict[str, list[int]] = {}
        """Serial numbers by id of request or trace."""
        self._next = 0
        self._news: dict[int, Held | None] = {}

    def hold(self, batch: Batch, rows: Ints) -> None:
        """Keep what these rows tell; a row without any id can never be joined."""
        times = batch.event_at
        told = np.array([batch[name] for name in TOLD])
        visited = np.any([~np.isnan(batch[name]) for name in _MODEL], axis=0) & ~batch.part
        for name, visits in (
            ("retrieval", batch["retrieval_s"] > 0),
            ("tool", batch["tool_s"] > 0),
            ("model", visited),
        ):
            column = told[TOLD.index(f"{name}_visits")]
            np.copyto(column, 1.0, where=np.isnan(column) & visits)
        for row in rows.tolist():
            one, trace = same(batch.request_id[row]), same(batch.attempt_group[row])
            if one or trace:
                part = bool(batch.part[row])
                self._put(self._next, Held(one, trace, float(times[row]), part, tuple(told[:, row].tolist())))

    def _put(self, serial: int, held: Held) -> None:
        self._next = serial + 1
        self._held[serial] = self._news[serial] = held
        for one in {held.one, held.trace} - {""}:
            serials = self._by.setdefault(one, [])
            serials.append(serial)
            if len(serials) > MOST_OF_ONE:
                self._forget(serials[0])
        if len(self._held) > MOST:
            self._forget(next(iter(self._held)))

    def _forget(self, serial: int) -> None:
        held = self._held.pop(serial)
        self._news[serial] = None
        for one in {held.one, held.trace} - {""}:
            self._by[one].remove(serial)
            if not self._by[one]:
                del self._by[one]

    def join(self, batch: Batch, rows: Ints) -> Ints:
        """Complete these rows of a settled batch, in place, by the records of their ids; which rows a call was told of.

        What the gateway tells stays as it is: a phase is filled only where it is absent or was derived. All phases
        together stay within the duration, an engine that worked on after its client had gone is cut there. Several
        records of one request add up.
        """
        if not self._held:
            return rows[:0]
        found = [(row, held) for row in rows.tolist() if (held := self._of(batch, row))]
        if not found:
            return rows[:0]
        joined = np.array([row for row, _ in found], np.int64)
        sums = np.array([_sum(held) for _, held in found]).T
        told = dict(zip(TOLD, sums, strict=True))
        _phases(batch, joined, told)
        for name in TOLD[len(PHASES) : -1]:
            batch[name][joined] = np.where(np.isnan(batch[name][joined]), told[name], batch[name][joined])
        _cached(batch, joined, told["cached_tokens"])
        return joined[[not all(one.is_part for one in held) for _, held in found]]

    def _of(self, batch: Batch, row: int) -> list[Held]:
        """The records of one row, which are held no longer."""
        one, trace = same(batch.request_id[row]), same(batch.attempt_group[row])
        start, end = float(batch["started_at"][row]), float(batch["finished_at"][row])
        serials = {}
        for name in dict.fromkeys((one, trace)):
            for serial in self._by.get(name, ()) if name else ():
                held = self._held[serial]
                within = not (held.at < start - SLACK_S or held.at > end + SLACK_S)
                if within or held.one == one != "":
                    serials[serial] = held
        for serial in serials:
            self._forget(serial)
        return list(serials.values())

    def expire(self, clock: float) -> None:
        """Forget what has waited too long at this event time (s, epoch)."""
        while self._held:
            serial = next(iter(self._held))
            if self._held[serial].at >= clock - WAIT_S:
                return
            self._forget(serial)
            del self._news[serial]  # whoever takes over expires it as well

    def news(self) -> list[object]:
        """Records held and joined since the last call, as plain builtins."""
        news, self._news = self._news, {}
        return [[serial, None if held is None else list(held)] for serial, held in news.items()]

    def absorb(self, news: Iterable[tuple[int, Sequence[object] | None]]) -> None:
        """Remember what `news` gave elsewhere."""
        for serial, held in news:
            if held is not None:
                self._put(serial, _held(held))
            elif serial in self._held:
                self._forget(serial)
        self._news = {}

    def save(self) -> list[object]:
        """Everything, as plain builtins."""
        return [[serial, list(held)] for serial, held in self._held.items()]

    def load(self, saved: Iterable[tuple[int, Sequence[object]]]) -> None:
        """Take over what `save` gave."""
        self._held, self._by = {}, {}
        for serial, held in saved:
            self._put(serial, _held(held))
        self._news = {}


def same(told: str | None) -> str:
    """The spelling under which logs agree on an id: without an engine's prefix, of a trace context only the trace.

    >>> same("chatcmpl-7EAD13C1"), same("00-1064823872612859b63ea9cfaadd3422-947a4dff9ce809d4-01"), same("-")
    ('7ead13c1', '1064823872612859b63ea9cfaadd3422', '')
    """
    if told is None or told in MISSING:
        return ""
    context = _TRACEPARENT.fullmatch(told)
    return (context[1] if context else _PREFIX.sub("", told, count=1)).lower()


def _held(saved: Sequence[object]) -> Held:
    one, trace, at, part, told = saved
    return Held(str(one), str(trace), float(at), bool(part), tuple(told))  # type: ignore[arg-type]


def _sum(held: list[Held]) -> Floats:
    """What several records of one request tell together; they may tell of the same cached tokens."""
    told = np.array([one.told for one in held])
    sums = np.where(np.isnan(told).all(axis=0), np.nan, zeroed(told).sum(axis=0))
    sums[-1] = np.fmax.reduce(told[:, -1])
    return sums


def _phases(batch: Batch, rows: Ints, told: dict[str, Floats]) -> None:
    """Fill the phases that the row does not tell."""
    ttft, duration = batch["ttft_s"][rows], batch["duration_s"][rows]
    known = {name: batch[name][rows] for name in PHASE_FIELDS}
    before = sum((zeroed(known[name]) for name in (*_BEFORE_ENGINE, "queue_s")), np.zeros(len(rows)))
    absent = {
        "prefill_s": _derived(known["prefill_s"], np.maximum(ttft - before, 0)),
        "decode_s": _derived(known["decode_s"], np.maximum(duration - ttft, 0)),
    }
    takes = {name: absent.get(name, np.isnan(known[name])) & ~np.isnan(told[name]) for name in PHASES}
    inside = {name: absent[name] & ~takes[name] for name in absent}
    # What was not told is inside the derived phases (see `settle`), so it is taken out of them; a wait comes before
    # the first token, a tool may come after it.
    for name, places in (("queue_s", ("prefill_s",)), ("retrieval_s", tuple(inside)), ("tool_s", tuple(inside))):
        rest = np.where(takes[name], told[name], 0.0)
        for place in places:
            cut = np.where(inside[place], np.minimum(zeroed(known[place]), rest), 0.0)
            known[place] = known[place] - cut
            rest = rest - cut
    for name in PHASES:
        known[name][takes[name]] = told[name][takes[name]]
    taken = sum((np.where(takes[name], known[name], 0.0) for name in PHASES), np.zeros(len(rows)))
    whole = sum(zeroed(known[name]) for name in PHASE_FIELDS)
    over = np.maximum(whole - np.where(np.isnan(duration), np.inf, duration), 0.0)
    shrink = np.divide(np.maximum(taken - over, 0.0), taken, out=np.ones(len(rows)), where=taken > 0)
    for name in PHASES:
        batch[name][rows] = np.where(takes[name], known[name] * shrink, known[name])


def _derived(phase: Floats, formula: Floats) -> Bools:
    return np.isnan(phase) | (np.abs(phase - formula) <= SAME_S)


def _cached(batch: Batch, rows: Ints, told: Floats) -> None:
    """Cached tokens are a part of the prompt, so where that is not known they mean nothing."""
    cached, prompt = batch["cached_tokens"], batch["prompt_tokens"][rows]
    cached[rows] = np.where(np.isnan(cached[rows]), np.minimum(told, prompt), cached[rows])
