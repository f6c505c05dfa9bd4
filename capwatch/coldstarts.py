"""Cold starts: how long the engines of a pool took from their start to each phase, as their logs tell it.

Shown is the newest start of the pool: the one that a person on call is waiting for, and that a plan can count with.
Starts merge by their times, so the order in which logs are read makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import numpy as np

from capwatch.eventclock import EventClock
from capwatch.ledger import Gathering
from capwatch.meters.engine import FLEET, book_cold_start, book_reached
from capwatch.record import Reached

MOST: Final = 1_000
"""Starts remembered, the oldest go first: those of a pool's engines that begin at about the same time."""
SAME_S: Final = 2.0
"""Two tellings of one start differ by the resolution of a log's times."""


class _Start(msgspec.Struct, array_like=True):
    """The newest start of one engine."""

    began: float
    """s, epoch."""
    reached: dict[str, float] = {}
    """Seconds from the start to each phase that it has reached."""


class ColdStarts:
    """The newest start of each engine by (pool, engine). Plain values: `save` and `load`, `news` and `absorb`."""

    def __init__(self, into: Gathering, time: EventClock) -> None:
        """Book into a gathering."""
        self._into = into
        self._time = time
        self._starts: dict[tuple[str, str], _Start] = {}
        self._changed: set[tuple[str, str]] = set()

    def hear(self, pool: str, engine: str, told: Reached, now: float) -> None:
        """Take in how far a start has come; its ``at`` is set. A phase belongs to the start told before it.

        ``now`` (s, epoch) is the wall clock.
        """
        began, key = (told.at or 0.0) - told.seconds, (pool, engine)
        known = self._starts.get(key)
        if known is None or (told.phase == "start" and began > known.began + SAME_S):
            known = self._starts[key] = _Start(began)
        elif told.phase == "start" and began < known.began - SAME_S:
            return
        if told.phase != "start":
            at, before = told.at or 0.0, known.reached.get(told.phase)
            more = told.seconds - (before or 0.0)  # ranks of a server tell a phase again: the last of them counts
            if more >= 0 and self._time.takes(FLEET, np.array([at]), now).all():
                book_reached(self._into, pool, told.phase, at, first=before is None, seconds=more)
            known.reached[told.phase] = told.seconds
        self._changed.add(key)
        if len(self._starts) > MOST:
            oldest = min(self._starts, key=lambda one: self._starts[one].began)
            del self._starts[oldest]
            self._changed.add(oldest)
        newest = max(((start.began, of) for (of, _), start in self._starts.items() if of == pool), default=None)
        if newest is not None and known.began >= newest[0]:
            book_cold_start(self._into, pool, known.reached)

    def inherit(self, other: ColdStarts) -> None:
        """Go on with the starts of another pipeline of the same names."""
        self._starts, self._changed, self._time = other._starts, other._changed, other._time

    def news(self) -> list[object]:
        """Starts that changed since the last call, as plain builtins; None for one that is forgotten."""
        changed, self._changed = self._changed, set()
        return [[*key, msgspec.to_builtins(self._starts.get(key))] for key in sorted(changed)]

    def absorb(self, news: Iterable[Any]) -> None:
        """Remember what `news` gave elsewhere."""
        for pool, engine, start in news:
            self._starts.pop((pool, engine), None)
            if start is not None:
                self._starts[pool, engine] = msgspec.convert(start, _Start)

    def save(self) -> list[object]:
        """Everything, as plain builtins."""
        return [[*key, msgspec.to_builtins(start)] for key, start in self._starts.items()]

    def load(self, saved: Iterable[Any]) -> None:
        """Take over what `save` gave."""
        self.absorb(saved)
