"""A drift that has been raised: is it still there, is it over, has it grown?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np

from capwatch.drift.event import Contribution, Event
from capwatch.drift.ticks import DAY, HOUR
from capwatch.record import Floats, Ints

CLEAR: Final = HOUR // 4
"""Ticks over which the cost must have come back …"""
CLEAR_REQUESTS: Final = 1000.0
"""… holding that many requests, or twice the ticks after that many ticks at the most."""
CLEAR_MOST: Final = 2 * HOUR
SETTLE: Final = HOUR // 2
"""Ticks after which the size of a drift is known; it is then what a further change is measured from."""
FURTHER: Final = 0.15
"""Relative rise of the cost, over all of a quarter of an hour, that is a further alarm."""
ACCEPT: Final = 7 * DAY
"""Ticks with requests after which a drift that nobody acknowledged is the new normal."""


@dataclass(slots=True)
class Active:
    """One drift of one direction."""

    event: Event
    way: int
    reported: float
    """Relative change that was reported, later the one that has settled if that is smaller."""
    usual: float = 1.0
    """Cost before the drift over what history expects: not 1 where it is told against the hours before."""
    settled: float | None = None
    busy: int = 0
    """Ticks with requests since it was raised."""
    recent: list[tuple[float, float, float]] = field(default_factory=list)
    """(requests, cost, expected cost) of the last ticks."""
    total: tuple[float, float] = (0.0, 0.0)
    """Cost and expected cost since it was raised."""

    @classmethod
    def begin(cls, event: Event, way: int, usual: float = 1.0) -> Active:
        """The drift of an event."""
        return cls(event, way, event.change, usual)

    def advance(self, tick: Ints, n: Floats, cost: Floats, expected: Floats) -> tuple[int, str]:
        """Take ticks until something changes.

        Returns:
            (ticks taken, what has changed): `back` the cost came back, `more` it has moved on, `accepted` it has
            lasted a week, or an empty word.
        """
        for row in range(len(tick)):
            change = self._take(float(n[row]), float(cost[row]), self.usual * float(expected[row]))
            if change:
                return row + 1, change
        return len(tick), ""

    def _take(self, n: float, cost: float, expected: float) -> str:
        if not n:
            return ""
        self.busy += 1
        self.total = self.total[0] + cost, self.total[1] + expected
        self.recent.append((n, cost, expected))
        if self.busy == SETTLE:
            self.settled = self.total[0] / max(1e-12, self.total[1]) - 1
            self.reported = self.way * min(self.way * self.reported, max(0.0, self.way * self.settled))
        if len(self.recent) < CLEAR:
            return ""
        requests, spent, usual = np.sum(self.recent, axis=0)
        if requests >= CLEAR_REQUESTS or len(self.recent) >= CLEAR_MOST:
            change = spent / max(1e-12, usual) - 1
            if self.way * change < self.way * self.reported / 2:
                return "back"
            if self.settled is not None and self.busy > SETTLE + CLEAR and self._further(change):
                return "more"
            del self.recent[: max(1, len(self.recent) - CLEAR + 1)]
        return "accepted" if self.busy >= ACCEPT else ""

    def _further(self, change: float) -> bool:
        settled = max(abs(self.settled or 0.0), abs(self.event.change))
        grown = (1 + self.way * settled) * (1 + self.way * max(FURTHER, settled))
        return self.way * (1 + change - grown) > 0

    def cleared(self, at: float, note: str) -> Event:
        """The event that ends it."""
        return replace(self.event, event="cleared", at=at, note=note)

    def state(self) -> dict[str, Any]:
        """As plain builtins."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Active:
        """Go on from `state`."""
        event = dict(state["event"])
        event["contributions"] = tuple(Contribution(**one) for one in event["contributions"])
        event["interval"] = None if event["interval"] is None else tuple(event["interval"])
        rest = {name: state[name] for name in ("way", "reported", "usual", "settled", "busy")}
        return cls(Event(**event), **rest, recent=[tuple(one) for one in state["recent"]], total=tuple(state["total"]))
