"""The detector of one pool: closed ticks in, events out.

Its clock is the ticks' own. The same ticks give the same events, whether they come one by one, all at once, or with a
restart in between (`state`, `from_state`). Less than three days of history: only a wide rule holds, see `Novice`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from capwatch.drift.active import Active
from capwatch.drift.attribution import Names, explain
from capwatch.drift.channels import DOWN, UP
from capwatch.drift.event import Event
from capwatch.drift.frame import Frame, dense, split
from capwatch.drift.model import Judged, Model, Settings, judge
from capwatch.drift.novice import Novice
from capwatch.drift.scale import Stretch
from capwatch.drift.ticks import HOUR, TICK_S, Ticks
from capwatch.drift.verdict import verdict
from capwatch.drift.watch import Watch
from capwatch.record import Floats

VERSION: Final = 1
GAP: Final = HOUR // 6
"""Ticks without a request after which the sums count half."""
RECALL: Final = 2 * HOUR
"""Ticks that are kept for explaining an alarm; what began earlier is explained by its last two hours."""
NAMES: Final = {UP: "up", DOWN: "down"}


class Detector:
    """Watches one pool.

    ``names`` gives the names of codes, for events. `alarms` counts raises by direction.
    """

    def __init__(self, settings: Settings, names: Names, model: Model | None = None, *, begin: int = 0) -> None:
        """A detector whose first tick is ``begin``; without a model it is learning."""
        self.settings = settings
        self._names = names
        self._next = begin
        self._recent = Ticks.empty()
        self._last = np.zeros(HOUR // 60 - 1)
        """Requests of the last five ticks."""
        self._idle = 0
        """Ticks since the last request."""
        self._silence: Floats = np.zeros(0)
        self._watch: dict[int, Watch] = {}
        self.active: dict[int, Active] = {}
        self.alarms = {UP: 0, DOWN: 0}
        self.score = 0.0
        """Surprise of the best channel for rises; 1 is the alarm level."""
        self._novice = Novice()
        self.model: Model | None = None
        if model is not None:
            self.learn(model)

    @property
    def learning(self) -> bool:
        """Whether history is still too short."""
        return self.model is None

    def learn(self, model: Model) -> None:
        """Go on with another model; drifts that are active stay so."""
        self.model = model
        self._silence = np.zeros(len(model.reference.layout.owners))
        self._watch = {way: Watch.new(len(one.channels), self._next) for way, one in model.watched.items()}

    def feed(self, ticks: Ticks, until: int) -> list[Event]:
        """Take all ticks before ``until``.

        Args:
            ticks: cells, none of a tick that has been taken already.
            until: first tick that is not closed yet.
        """
        events: list[Event] = []
        if not len(ticks) and not self._next:  # nothing has come yet: the silence since the epoch is not gone through
            self._next = until
        if len(ticks) and (not self._next or ticks.tick[0] - self._next > HOUR):
            self._skip(int(ticks.tick[0]))
        places = 1 if self.model is None else self._places(self.model)
        for first, count in split(self._next, until, places):
            piece = ticks.between(first, first + count)
            events += self._step(piece, first, count)
        self._next = max(self._next, until)
        return events

    def drifts(self) -> list[Active]:
        """The drifts that are active, rises first."""
        if self.model is None:
            return [] if self._novice.active is None else [self._novice.active]
        return [self.active[way] for way in (UP, DOWN) if way in self.active]

    def brief(self) -> dict[str, Any]:
        """What of the wide rule ticks alone do not tell, for `relearn`."""
        return self._novice.brief()

    def relearn(self, ticks: Ticks, brief: dict[str, Any]) -> None:
        """After a restart: let the wide rule see what it saw before, and leave it as it was then."""
        if self.model is None:
            self._novice.feed(ticks, self.settings, self._names)
            self._novice.resume(brief)

    def accept(self) -> list[Event]:
        """Take what is active as the new normal; the caller then fits a model on the time since the change."""
        if self.model is None:
            return self._novice.accept(self._next)
        return [self._end(way, active, self._next, "accepted") for way, active in list(self.active.items())]

    def _places(self, model: Model) -> int:
        layout = model.reference.layout
        return len(layout.owners) * (len(layout.classes) + 1)

    def _skip(self, first: int) -> None:
        """Jump over a gap of hours."""
        if self._next:
            for watch in self._watch.values():
                watch.halve()
        for watch in self._watch.values():
            watch.since[:] = np.maximum(watch.since, first - RECALL)
        self._recent = Ticks.empty()
        self._last[:] = 0
        self._idle = GAP
        self._next = first

    def _step(self, ticks: Ticks, first: int, count: int) -> list[Event]:
        """Take a piece of neighbouring ticks; a gap inside it cuts it in two."""
        if self.model is None:
            return self._learning(ticks)
        judged = judge(ticks, self.model, first, count, self._silence)
        events: list[Event] = []
        begin = 0
        for end in [*_gaps(judged.frame.n, self._idle), count]:
            events += self._run(judged, ticks, begin, end)
            if end < count:
                for watch in self._watch.values():
                    watch.halve()
            begin = end
        busy = np.flatnonzero(judged.frame.n > 0)
        self._idle = count - 1 - int(busy[-1]) if len(busy) else self._idle + count
        self._remember(ticks, first + count)
        return events

    def _remember(self, ticks: Ticks, until: int) -> None:
        kept = self._recent.between(until - RECALL, until)
        self._recent = Ticks.join([kept, ticks.between(until - RECALL, until)])

    def _run(self, judged: Judged, ticks: Ticks, begin: int, end: int) -> list[Event]:
        """Both directions over the rows from ``begin`` to ``end``, in the order of time."""
        events: list[Event] = []
        before = self._last
        for way in self._watch:
            self._last = before
            events += self._direction(way, judged, ticks, begin, end)
        n = np.concatenate([before, judged.frame.n[begin:end]])
        self._last = n[-len(before) :]
        return sorted(events, key=lambda event: event.at)

    def _direction(self, way: int, judged: Judged, ticks: Ticks, begin: int, end: int) -> list[Event]:
        assert self.model is not None  # noqa: S101 - only called with a model
        watched, frame = self.model.watched[way], judged.frame
        totals = frame.n, frame.cost, frame.n * frame.expected, frame.usual
        events: list[Event] = []
        row = begin
        while row < end:
            active = self.active.get(way)
            if active is not None:
                taken, over = active.advance(frame.tick[row:end], *(part[row:end] for part in totals[:3]))
                row += taken
                if over:
                    events.append(self._end(way, active, int(frame.tick[row - 1]) + 1, over))
                    if over == "more":
                        events.append(
                            self._raise(way, self._event(way, judged, ticks, row - 1, int(frame.tick[row - 1]) - 89))
                        )
                continue
            before = np.concatenate([self._last, frame.n[begin:row]])[-len(self._last) :]
            watch = self._watch[way]
            rest = Stretch(*(part[row:end] for part in (*judged.evidence[way], *totals)))
            hit, channel, scores = watch.advance(
                watched, int(frame.tick[row]), rest, before, way=way, effect=self.settings.minimum_effect
            )
            if way == UP:
                self.score = float(scores[-1])
            if hit is None:
                break
            row += hit
            events += self._claim(way, judged, ticks, row, int(watch.since[channel]))
            row += 1
        return events

    def _claim(self, way: int, judged: Judged, ticks: Ticks, row: int, since: int) -> list[Event]:
        """Raise a drift, unless it is so old that the last hours show nothing of it: then the sums begin anew."""
        now = int(judged.frame.tick[row]) + 1
        event = self._event(way, judged, ticks, row, since)
        if way * event.change < self.settings.minimum_effect / 2:
            self._watch[way] = Watch.new(len(self._watch[way].sums), now)
            return []
        return [self._raise(way, event)]

    def _raise(self, way: int, event: Event) -> Event:
        self.active[way] = Active.begin(event, way)
        self.alarms[way] += 1
        return event

    def _event(self, way: int, judged: Judged, ticks: Ticks, row: int, since: int) -> Event:
        """A drift that began with tick ``since`` and was seen at a row."""
        now = int(judged.frame.tick[row]) + 1
        window, frame = self._window(ticks, max(since, now - RECALL), now)
        assert self.model is not None  # noqa: S101 - only called with a model
        found = explain(window, frame, self.model.reference, self.settings, self._names)
        change = found.cost_after / found.cost_before - 1 if found.cost_before > 0 else 0.0
        return Event(
            event="raised",
            direction=NAMES[way],
            at=float(now * TICK_S),
            started_at=float(since * TICK_S),
            cost_before=found.cost_before,
            cost_after=found.cost_after,
            interval=found.interval,
            effects=found.effects,
            contributions=found.contributions,
            verdict=verdict(window, self.model.reference, change, self.settings.minimum_effect),
            rate_before=found.rate_before,
            rate_after=found.rate_after,
        )

    def _window(self, ticks: Ticks, since: int, now: int) -> tuple[Ticks, Frame]:
        """The cells of a window that ends inside the current piece, and the same laid out."""
        assert self.model is not None  # noqa: S101 - only called with a model
        window = Ticks.join([self._recent.between(since, now), ticks.between(since, now)])
        silence = np.zeros(len(self._silence))
        return window, dense(window, self.model.reference, since, now - since, silence)

    def _end(self, way: int, active: Active, now: int, why: str) -> Event:
        """A drift is over: the sums begin anew."""
        del self.active[way]
        if way in self._watch:
            self._watch[way] = Watch.new(len(self._watch[way].sums), now)
        return active.cleared(
            float(now * TICK_S), {"accepted": "accepted", "more": "a further change follows"}.get(why, "")
        )

    def _learning(self, ticks: Ticks) -> list[Event]:
        events = self._novice.feed(ticks, self.settings, self._names)
        self.alarms[UP] += sum(event.event == "raised" for event in events)
        return events

    def state(self) -> dict[str, Any]:
        """All of it but the model, as plain builtins and arrays; carries a schema version."""
        return {
            "version": VERSION,
            "next": self._next,
            "recent": {name: getattr(self._recent, name) for name in self._recent.__slots__},
            "last": self._last.tolist(),
            "idle": self._idle,
            "silence": self._silence.tolist(),
            "watch": {way: watch.state() for way, watch in self._watch.items()},
            "active": {way: active.state() for way, active in self.active.items()},
            "alarms": dict(self.alarms),
            "score": self.score,
            "novice": self._novice.state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], settings: Settings, names: Names, model: Model | None) -> Detector:
        """Go on from `state`, with the model of that time.

        Raises:
            ValueError: the state is of another version.
        """
        if state["version"] != VERSION:
            raise ValueError(f"drift state of version {state['version']}; this is version {VERSION}")
        new = cls(settings, names, model)
        new._next, new._idle, new.score = state["next"], state["idle"], state["score"]
        new._recent = Ticks(**{name: np.asarray(part) for name, part in state["recent"].items()})
        new._last, new._silence = np.array(state["last"]), np.array(state["silence"])
        new._watch = {int(way): Watch.from_state(one) for way, one in state["watch"].items()}
        new.active = {int(way): Active.from_state(one) for way, one in state["active"].items()}
        new.alarms = {int(way): n for way, n in state["alarms"].items()}
        new._novice = Novice.from_state(state["novice"])
        return new


def _gaps(n: Floats, idle: int) -> list[int]:
    """Rows before which the sums count half: each first tick of a gap's eleventh minute."""
    rows = np.arange(len(n))
    last = np.maximum.accumulate(np.where(n > 0, rows, -1 - idle))
    return [int(row) for row in np.flatnonzero((rows - last == GAP) & (n == 0))]
