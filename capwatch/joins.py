"""Joins: what engines tell of single requests, held until the gateway's row about the same request arrives.

Requests are told apart by their id alone (its hash: an id is the client's own text, and what is held is saved): the
engine's log knows neither the gateway's source nor its labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from capwatch.dedupe import digest
from capwatch.record import MISSING, PHASE_FIELDS, Batch, Bools, Floats, Ints, zeroed

MOST: Final = 20_000
"""Records held at most, the oldest go first: two minutes at 139 requests/s, far more than gateways buffer their logs.
Joined ones go at once, so only where ids never match does it fill up (about 5 MB)."""
WAIT_S: Final = 900.0
"""How long a record waits for its gateway row, in event time: as long as a late row is taken into its rollup."""
TOLD: Final = ("queue_s", "prefill_s", "decode_s", "cached_tokens")
"""What a joined request takes over where its gateway does not tell it."""
SAME_S: Final = 1e-6
"""A phase this near to what TTFT and duration give was derived from them, not told."""

Held = tuple[float, ...]
"""Event time (s, epoch), then `TOLD`, NaN where the engine does not tell it."""

_ENGINE_PHASES: Final = TOLD[:3]
_BEFORE_ENGINE: Final = ("gateway_s", "retrieval_s", "tool_s")


class Joins:
    """Engine records by request id, in the order of their arrival. Plain values: `save` and `load`."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._news: dict[int, Held | None] = {}

    def hold(self, batch: Batch, rows: Ints) -> None:
        """Keep what these rows of an engine's log tell; a row without an id can never be joined."""
        times = batch.event_at
        for row in rows.tolist():
            one = batch.request_id[row]
            if one is not None and one not in MISSING:
                self._put(digest(one), (float(times[row]), *(float(batch[name][row]) for name in TOLD)))

    def _put(self, one: int, held: Held) -> None:
        self._held.pop(one, None)  # a later record of one id takes its place at the end
        self._held[one] = self._news[one] = held
        if len(self._held) > MOST:
            del self._held[next(iter(self._held))]

    def join(self, batch: Batch, rows: Ints) -> Ints:
        """Complete these rows of a settled batch, in place, by the engine records of their ids; which were joined.

        What the gateway tells stays as it is: a phase is filled only where it is absent or was derived. All phases
        together stay within the duration, an engine that worked on after its client had gone is cut there.
        """
        if not self._held:
            return rows[:0]
        ids = ((row, digest(one)) for row in rows.tolist() if (one := batch.request_id[row]))
        found = [(row, one, held) for row, one in ids if (held := self._held.pop(one, None))]
        if not found:
            return rows[:0]
        joined = np.array([row for row, _, _ in found], np.int64)
        self._news |= dict.fromkeys((one for _, one, _ in found), None)
        told = dict(zip(TOLD, np.array([held[1:] for _, _, held in found]).T, strict=True))
        _phases(batch, joined, told)
        _cached(batch, joined, told["cached_tokens"])
        return joined

    def expire(self, clock: float) -> None:
        """Forget what has waited too long at this event time (s, epoch)."""
        while self._held and next(iter(self._held.values()))[0] < clock - WAIT_S:
            del self._held[next(iter(self._held))]

    def news(self) -> list[object]:
        """Records held and ids joined since the last call, as plain builtins."""
        news, self._news = self._news, {}
        return [[one, held] for one, held in news.items()]

    def absorb(self, news: Iterable[tuple[int, Sequence[float] | None]]) -> None:
        """Remember what `news` gave elsewhere."""
        for one, held in news:
            if held is None:
                self._held.pop(one, None)
            else:
                self._put(one, tuple(held))
        self._news = {}

    def save(self) -> list[object]:
        """Everything, as plain builtins."""
        return [[one, held] for one, held in self._held.items()]

    def load(self, saved: Iterable[tuple[int, Sequence[float]]]) -> None:
        """Take over what `save` gave."""
        self._held = {one: tuple(held) for one, held in saved}


def _phases(batch: Batch, rows: Ints, told: dict[str, Floats]) -> None:
    """Fill the phases inside the engine."""
    ttft, duration = batch["ttft_s"][rows], batch["duration_s"][rows]
    known = {name: batch[name][rows] for name in PHASE_FIELDS}
    before = sum((zeroed(known[name]) for name in (*_BEFORE_ENGINE, "queue_s")), np.zeros(len(rows)))
    absent = {
        "queue_s": np.isnan(known["queue_s"]),
        "prefill_s": _derived(known["prefill_s"], np.maximum(ttft - before, 0)),
        "decode_s": _derived(known["decode_s"], np.maximum(duration - ttft, 0)),
    }
    takes = {name: absent[name] & ~np.isnan(told[name]) for name in _ENGINE_PHASES}
    # A wait that was not told is inside the derived prefill (see `settle`), so it is taken out of that.
    inside = takes["queue_s"] & absent["prefill_s"] & ~takes["prefill_s"]
    known["prefill_s"][inside] = np.maximum(known["prefill_s"] - told["queue_s"], 0)[inside]
    for name in _ENGINE_PHASES:
        known[name][takes[name]] = told[name][takes[name]]
    taken = sum((np.where(takes[name], known[name], 0.0) for name in _ENGINE_PHASES), np.zeros(len(rows)))
    whole = sum(zeroed(known[name]) for name in PHASE_FIELDS)
    over = np.maximum(whole - np.where(np.isnan(duration), np.inf, duration), 0.0)
    shrink = np.divide(np.maximum(taken - over, 0.0), taken, out=np.ones(len(rows)), where=taken > 0)
    for name in _ENGINE_PHASES:
        batch[name][rows] = np.where(takes[name], known[name] * shrink, known[name])


def _derived(phase: Floats, formula: Floats) -> Bools:
    return np.isnan(phase) | (np.abs(phase - formula) <= SAME_S)


def _cached(batch: Batch, rows: Ints, told: Floats) -> None:
    """Cached tokens are a part of the prompt, so where that is not known they mean nothing."""
    cached, prompt = batch["cached_tokens"], batch["prompt_tokens"][rows]
    cached[rows] = np.where(np.isnan(cached[rows]), np.minimum(told, prompt), cached[rows])
