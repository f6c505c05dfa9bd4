"""The wide rule for pools with less than three days of history: only what nobody could miss.

The cost of a request is a quarter over the mean of all that is known, in ten minutes with at least 300 requests, when
at least an hour and a thousand requests are known. Its cause is told against the means of that time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from capwatch.drift.active import Active
from capwatch.drift.attribution import Names, explain
from capwatch.drift.event import Event
from capwatch.drift.frame import dense
from capwatch.drift.layout import lay_out
from capwatch.drift.model import Settings
from capwatch.drift.reference import learn
from capwatch.drift.ticks import HOUR, TICK_S, Ticks
from capwatch.drift.verdict import verdict

WIDE: Final = 0.25
WINDOW: Final = HOUR // 6
LEAST_REQUESTS: Final = 300
KNOWN_TICKS: Final = HOUR
KNOWN_REQUESTS: Final = 1000
LEARNING: Final = "learning"
"""How the note of what this rule finds begins."""


class Novice:
    """Watches until a model can be fitted."""

    def __init__(self) -> None:
        self._known = Ticks.empty()
        """By the hour, up to ten minutes ago; not what came while a drift was active."""
        self._waiting: list[Ticks] = []
        """Known ticks of the current hour."""
        self._total = (0.0, 0.0)
        """Requests and cost of all that is known."""
        self._recent: list[Ticks] = []
        """The last ten minutes, a tick each …"""
        self._sums: list[tuple[float, float]] = []
        """… and the requests and the cost of each."""
        self._active: Active | None = None

    def feed(self, ticks: Ticks, settings: Settings, names: Names) -> list[Event]:
        """Take ticks."""
        events = []
        for tick in np.unique(ticks.tick).tolist():
            cells = ticks.between(tick, tick + 1)
            self._recent.append(cells)
            self._sums.append(_both(cells))
            while self._recent[0].tick[0] < tick + 1 - WINDOW:
                self._know(self._recent.pop(0), *self._sums.pop(0))
            event = self._judge(tick + 1, settings, names)
            events += [] if event is None else [event]
        return events

    def _know(self, cells: Ticks, n: float, cost: float) -> None:
        if self._active is not None:
            return
        if self._waiting and self._waiting[-1].tick[0] // HOUR != cells.tick[0] // HOUR:
            self._known = Ticks.join([self._known, Ticks.join(self._waiting).hours()])
            self._waiting = []
        self._waiting.append(cells)
        self._total = self._total[0] + n, self._total[1] + cost

    def _judge(self, now: int, settings: Settings, names: Names) -> Event | None:
        n, cost = self._total
        first = self._known if len(self._known) else self._waiting[0] if self._waiting else None
        if first is None or n < KNOWN_REQUESTS or now - first.tick[0] < KNOWN_TICKS:
            return None
        if self._active is not None:
            return self._follow(now, cost / n)
        requests, spent = (sum(part) for part in zip(*self._sums, strict=True))
        if requests < LEAST_REQUESTS or spent < (1 + WIDE) * requests * cost / n:
            return None
        known = Ticks.join([self._known, *self._waiting])
        event = _event(known, Ticks.join(self._recent), now, settings, names)
        self._active = Active.begin(event, 1)
        return event

    def _follow(self, now: int, usual: float) -> Event | None:
        assert self._active is not None  # noqa: S101 - only called with one
        n, cost = self._sums[-1]
        _, over = self._active.advance(np.array([now - 1]), *(np.array([x]) for x in (n, cost, n * usual)))
        if over not in ("back", "accepted"):
            return None
        event = self._active.cleared(float(now * TICK_S), over if over == "accepted" else "")
        self._active = None
        return event

    @property
    def active(self) -> Active | None:
        """The drift that is active."""
        return self._active

    def accept(self, now: int) -> list[Event]:
        """Take an active drift as the new normal: what is known begins anew, with the ten minutes that showed it."""
        if self._active is None:
            return []
        event = self._active.cleared(float(now * TICK_S), "accepted")
        self._active, self._known, self._waiting, self._total = None, Ticks.empty(), [], (0.0, 0.0)
        return [event]

    def brief(self) -> dict[str, Any]:
        """What ticks alone do not tell: the sums of all that is known, and the drift that is active."""
        return {"total": self._total, "active": None if self._active is None else self._active.state()}

    def resume(self, brief: dict[str, Any]) -> None:
        """Take back what `brief` gave."""
        total, active = brief["total"], brief["active"]
        self._total = (total[0], total[1])
        self._active = None if active is None else Active.from_state(active)

    def state(self) -> dict[str, Any]:
        """As builtins and arrays."""
        parts = {"known": self._known, "waiting": Ticks.join(self._waiting), "recent": Ticks.join(self._recent)}
        return {
            **{key: {name: getattr(part, name) for name in part.__slots__} for key, part in parts.items()},
            "total": self._total,
            "active": None if self._active is None else self._active.state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Novice:
        """Go on from `state`."""
        known, waiting, recent = (
            Ticks(**{name: np.asarray(part) for name, part in state[key].items()})
            for key in ("known", "waiting", "recent")
        )
        new = cls()
        new._known = known
        new._waiting, new._recent = (
            [part.between(tick, tick + 1) for tick in np.unique(part.tick).tolist()] for part in (waiting, recent)
        )
        new._sums = [_both(cells) for cells in new._recent]
        new._total = tuple(state["total"])
        new._active = None if state["active"] is None else Active.from_state(state["active"])
        return new


def _both(cells: Ticks) -> tuple[float, float]:
    """Requests and cost."""
    return float(cells["n"].sum()), float(cells["cost"].sum())


def _event(known: Ticks, recent: Ticks, now: int, settings: Settings, names: Names) -> Event:
    layout = lay_out([known])
    reference = learn(known, layout, now)
    first = now - WINDOW
    frame = dense(recent, reference, first, WINDOW, np.zeros(len(layout.owners)))
    found = explain(recent, frame, reference, settings, names)
    change = found.cost_after / max(1e-12, found.cost_before) - 1
    return Event(
        event="raised",
        direction="up",
        at=float(now * TICK_S),
        started_at=float(first * TICK_S),
        cost_before=found.cost_before,
        cost_after=found.cost_after,
        interval=found.interval,
        effects=found.effects,
        contributions=found.contributions,
        verdict=verdict(recent, reference, change, settings.minimum_effect),
        rate_before=float(known["n"].sum()) / ((first - int(known.tick[0])) * TICK_S),
        rate_after=found.rate_after,
        note=f"{LEARNING}: less than three days of history",
    )
