"""Requests without a first token: how old the oldest is, where a log tells of requests while they go on.

A log that tells only of ends knows of nobody who waits. One that also tells of arrivals, and again and again whether a
body has begun, knows it to a row's interval; a request that such a log tells of no more has ended unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from capwatch.dialect.verdict import Going
from capwatch.eventclock import EventClock
from capwatch.ledger import Gathering
from capwatch.load.tables import WAITING
from capwatch.record import Batch, Ints

PATIENCE_S: Final = 60.0
"""A request that was not told of for so long has ended: rows of requests that go on come every few seconds."""
SILENT_S: Final = 900.0
"""A pool of which no such row has come for so long: nothing is known of who waits."""
MOST: Final = 20_000
"""Requests remembered, the oldest of their rows go first."""

_Wait = tuple[int, float, float]
"""Pool, when it arrived, when that was told last (s, epoch)."""


class Waits:
    """Requests that wait, by id and start. Plain values: `save` and `load`, `news` and `absorb`."""

    def __init__(self, into: Gathering, time: EventClock) -> None:
        """Book into a gathering; what is heard may turn the clock, since nothing may end while everybody waits."""
        self._into = into
        self._time = time
        self._open: dict[str, _Wait] = {}
        self._told: dict[int, float] = {}
        """By pool, when a row of a request that goes on was written last (s, epoch)."""
        self._changed: set[str] = set()
        self._shown: dict[int, float] = {}

    def hear(self, going: Sequence[Going], pools: Ints) -> None:
        """Take in rows of requests that go on, each with its pool."""
        for one, pool in zip(going, pools.tolist(), strict=True):
            began = float(one.request.started_at or 0.0)
            at = began + float(one.request.duration_s or 0.0)
            self._time.heard_at = max(self._time.heard_at, at)
            self._told[pool] = max(self._told.get(pool, 0.0), at)
            self._put(_key(one.request.request_id, began), None if one.begun else (pool, began, at))

    def end(self, batch: Batch) -> None:
        """Forget requests that are over."""
        if self._open:
            for one, began in zip(batch.request_id, batch["started_at"].tolist(), strict=True):
                self._put(_key(one, began), None)

    def _put(self, key: str, wait: _Wait | None) -> None:
        if wait is None:
            if self._open.pop(key, None) is not None:
                self._changed.add(key)
            return
        self._open.pop(key, None)  # so that the order is that of the last rows
        self._open[key] = wait
        self._changed.add(key)
        if len(self._open) > MOST:
            self._put(next(iter(self._open)), None)

    def turn(self, clock: float) -> None:
        """Forget who has gone unseen at this event time (s, epoch), and book who is the oldest."""
        for key in [key for key, (_, _, told) in self._open.items() if told < clock - PATIENCE_S]:
            self._put(key, None)
        for pool in [pool for pool, told in self._told.items() if told < clock - SILENT_S]:
            del self._told[pool]
        oldest = dict.fromkeys(self._told, np.inf)
        for pool, began, _ in self._open.values():
            oldest[pool] = min(oldest.get(pool, np.inf), began)
        changed = {pool: oldest.get(pool, np.nan) for pool in {*oldest, *self._shown}}
        changed = {pool: at for pool, at in changed.items() if self._shown.get(pool) != at}
        if changed:
            self._into.set(WAITING, np.array([*changed]), np.array([*changed.values()]))
        self._shown = oldest

    def inherit(self, other: Waits) -> None:
        """Go on with the requests of another pipeline of the same names."""
        self._open, self._told, self._shown = other._open, other._told, other._shown
        self._changed, self._time = other._changed, other._time

    def news(self) -> list[object]:
        """What changed since the last call, as plain builtins."""
        changed, self._changed = self._changed, set()
        waits = [[key, list(self._open[key]) if key in self._open else None] for key in sorted(changed)]
        return [waits, [*self._told.items()]] if waits else []

    def absorb(self, news: Sequence[Any]) -> None:
        """Remember what `news` gave elsewhere."""
        if news:
            self._take(*news)

    def save(self) -> list[object]:
        """Everything, as plain builtins."""
        return [[[key, list(wait)] for key, wait in self._open.items()], [*self._told.items()]]

    def load(self, saved: Sequence[Any]) -> None:
        """Take over what `save` gave."""
        self._open = {}
        self.absorb(saved)

    def _take(self, waits: Iterable[Any], told: Iterable[Any]) -> None:
        for key, wait in waits:
            self._put(key, None if wait is None else (int(wait[0]), float(wait[1]), float(wait[2])))
        self._told = {int(pool): float(at) for pool, at in told}
        self._changed = set()


def _key(one: str | None, began: float) -> str:
    """Clients may send the id, so it is no proof by itself."""
    return f"{one} {began:.6f}"
