"""The detector of one pool: closed ticks in, events out.

Its clock is the ticks' own. The same ticks give the same events, whether they come one by one, all at once, or with a
restart in between (`state`, `from_state`). Less than three days of history: only a wide rule holds, see `Novice`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from capwatch.drift import together
from capwatch.drift.active import Active
from capwatch.drift.attribution import Names
from capwatch.drift.channels import DOWN, UP
from capwatch.drift.event import Event
from capwatch.drift.frame import GAP, Frame, dense, gaps, split
from capwatch.drift.model import Judged, Model, Settings, judge
from capwatch.drift.novice import Novice
from capwatch.drift.raising import raised
from capwatch.drift.reference import Reference, learn
from capwatch.drift.scale import Stretch
from capwatch.drift.ticks import HOUR, TICK_S, Ticks
from capwatch.drift.watch import Watch
from capwatch.record import Floats

VERSION: Final = 2
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
        self._anew = 0
        """Tick before which no tenant's hours are compared with: a drift has ended there."""
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
        pauses = set(gaps(judged.frame.n, self._idle))
        begin = 0
        while begin < count:
            known = self._anew
            rises = self._rises(self.model, ticks, first + begin, first + count)
            end = min([row for row in (*pauses, *(tick - first for tick in rises)) if row > begin], default=count)
            events += self._run(judged, ticks, begin, end)
            if first + end in rises and UP not in self.active and known == self._anew:
                events += self._at_once(self.model, ticks, first + end)
            if end in pauses:
                for watch in self._watch.values():
                    watch.halve()
            begin = end
        busy = np.flatnonzero(judged.frame.n > 0)
        self._idle = count - 1 - int(busy[-1]) if len(busy) else self._idle + count
        self._remember(ticks, first + count)
        return events

    def _rises(self, model: Model, ticks: Ticks, first: int, last: int) -> list[int]:
        """Ticks before which most tenants' requests have become longer."""
        if first // together.BLOCK == last // together.BLOCK:
            return []
        whole = Ticks.join([self._recent, ticks])
        known = model.reference, model.calm
        price = together.Price(self.settings.prefill_rate, self.settings.decode_rate, self.settings.minimum_effect)
        return together.risen(whole, *known, price, span=(first, last), anew=self._anew)

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
                        now = int(frame.tick[row - 1]) + 1
                        events.append(self._raise(way, self._seen(way, ticks, now, now - 90)))
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
        event = self._seen(way, ticks, now, since)
        if way * event.change < self.settings.minimum_effect / 2:
            self._watch[way] = Watch.new(len(self._watch[way].sums), now)
            return []
        return [self._raise(way, event)]

    def _seen(self, way: int, ticks: Ticks, now: int, since: int) -> Event:
        """A drift that began with tick ``since`` and is seen as tick ``now`` begins."""
        assert self.model is not None  # noqa: S101 - only called with a model
        reference = self.model.reference
        window = self._window(ticks, reference, max(since, now - RECALL), now)
        event = raised(NAMES[way], window, reference, self.settings, self._names)
        return replace(event, started_at=float(since * TICK_S))

    def _raise(self, way: int, event: Event, usual: float = 1.0) -> Event:
        self.active[way] = Active.begin(event, way, usual)
        self.alarms[way] += 1
        return event

    def _at_once(self, model: Model, ticks: Ticks, now: int) -> list[Event]:
        """Raise what most tenants show, against the hours before it began; history's level counts from there on."""
        whole = Ticks.join([self._recent, ticks])
        since = together.began(whole, model.reference, model.calm, now)
        before = learn(whole.between(max(self._anew, now - RECALL), since), model.reference.layout, since)
        event = raised(NAMES[UP], self._window(ticks, before, since, now), before, self.settings, self._names)
        if event.change <= 0:
            return []
        frame = self._window(ticks, model.reference, since, now)[1]
        usual = float(frame.n @ frame.expected) / max(1.0, float(frame.n.sum()))
        return [self._raise(UP, event, usual=event.cost_before / max(1e-12, usual))]

    def _window(self, ticks: Ticks, reference: Reference, since: int, now: int) -> tuple[Ticks, Frame]:
        """The cells of a window that ends inside the current piece, and the same laid out."""
        window = Ticks.join([self._recent.between(since, now), ticks.between(since, now)])
        silence = np.zeros(len(self._silence))
        return window, dense(window, reference, since, now - since, silence)

    def _end(self, way: int, active: Active, now: int, why: str) -> Event:
        """A drift is over: the sums begin anew."""
        del self.active[way]
        self._anew = now
        if way in self._watch:
            self._watch[way] = Watch.new(len(self._watch[way].sums), now)
        note = {"accepted": "accepted", "more": "a further change follows"}.get(why, "")
        return active.cleared(float(now * TICK_S), note)

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
            "anew": self._anew,
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
        new._next, new._idle, new.score, new._anew = (state[key] for key in ("next", "idle", "score", "anew"))
        new._recent = Ticks(**{name: np.asarray(part) for name, part in state["recent"].items()})
        new._last, new._silence = np.array(state["last"]), np.array(state["silence"])
        new._watch = {int(way): Watch.from_state(one) for way, one in state["watch"].items()}
        new.active = {int(way): Active.from_state(one) for way, one in state["active"].items()}
        new.alarms = {int(way): n for way, n in state["alarms"].items()}
        new._novice = Novice.from_state(state["novice"])
        return new
