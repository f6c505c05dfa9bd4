"""One pool: its open tick, its detector, and what that says now.

A tick is judged when event time is `LAG_S` past its end. What comes later, but within a minute, still goes into the
tick that history keeps; the detector has judged that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from capwatch.config.schema import Config, Pool
from capwatch.drift.active import Active
from capwatch.drift.attribution import Found, Names, explain
from capwatch.drift.detector import RECALL, Detector
from capwatch.drift.event import Event
from capwatch.drift.frame import dense
from capwatch.drift.model import Settings
from capwatch.drift.resend import ResendFilter
from capwatch.drift.rows import Rows
from capwatch.drift.sentence import Pool as Told
from capwatch.drift.ticks import DAY, TICK_S, Ticks
from capwatch.drifting.learnt import Find, Learnt
from capwatch.ledger import OTHER

LAG_S: Final = 5.0
"""Gateways flush their logs every second or so, and several logs of one pool are read side by side."""
LATE_S: Final = 60.0
LOOK: Final = 30
"""Ticks that "now" means while nothing has changed: five minutes."""
MOST_CELLS: Final = 512
"""Cells of a tick that are kept apart, the dearest; the rest are `other` of their class. Sites below some fifty
requests a second never have as many, and no site needs more than 70 kB a tick."""
ACCEPTED: Final = "accepted"
"""The note of a drift that ends as the new normal."""
SUSPICIOUS: Final = 0.5
"""Score from which on nothing new is learnt: what is half an alarm may be the begin of a drift."""
MOST_NEWS: Final = 128
"""Cells of what came between two commits that a crash cannot take; below some two hundred requests a second all."""


class Judged(NamedTuple):
    """What closing ticks has brought."""

    ticks: Ticks
    """Closed ticks and late parts of older ones, for the history."""
    events: list[Event]


class Detecting:
    """The detector of one pool at work. Plain values: `save` and `load`."""

    def __init__(self, config: Config, pool: Pool, names: Names, find: Find) -> None:
        """Watch a pool; ``names`` gives the names of ids, and ``find`` the ids of names."""
        drift = config.drift
        self.pool = pool
        self.settings = Settings(
            prefill_rate=pool.prefill_tokens_per_second,
            decode_rate=pool.decode_tokens_per_second,
            false_alarms_per_month=drift.false_alarms_per_month,
            minimum_effect=drift.minimum_effect,
        )
        self._names = names
        self._find = find
        self.learnt: Learnt | None = None
        self._relearnt = False
        """Whether `learnt` has changed since the last news."""
        self.detector = Detector(self.settings, names)
        self._filter = ResendFilter()
        self._open = Ticks.empty()
        self._fresh: list[Ticks] = []
        """What came since the last news."""
        self._turned = False
        self._saved = 0
        """Up to which tick the checkpoint knows all of the detector; deltas after it lack what the wide rule learns."""
        self._brief: dict[str, Any] | None = None
        self.until = 0
        """First tick that is not judged yet."""
        self.recent = Ticks.empty()
        """The judged ticks of the last two hours."""

    def take(self, rows: Rows) -> None:
        """Add requests to the open ticks; those a minute late are left out."""
        kept = self._filter.keep(rows)
        if not kept.all():
            rows = rows.take(kept)
        rows = rows.take(rows.at >= self.until * TICK_S - LATE_S)
        if len(rows):
            more = Ticks.of(rows, self.settings.prefill_rate, self.settings.decode_rate)
            self._open = Ticks.merge([self._open, more]) if len(self._open) else more
            self._fresh.append(more)

    def turn(self, clock: float) -> Judged:
        """Judge all ticks that are over at this event time (s, epoch)."""
        until = int((clock - LAG_S) // TICK_S)
        if until <= self.until:
            return Judged(Ticks.empty(), [])
        closed, self._open = self._open.between(0, until), self._open.between(until, 1 << 60)
        later = [part.between(until, 1 << 60) for part in self._fresh]
        self._fresh = [part for part in later if len(part)]  # the ledger has what is closed
        closed = bounded(closed, MOST_CELLS)
        fresh = closed.between(self.until, until)
        self._name_model()
        events = self.detector.feed(fresh, until)
        self.until, self._turned = until, True
        self._forget(events)
        self.recent = Ticks.join([self.recent.between(until - RECALL, until), fresh])
        return Judged(closed, events)

    def look(self) -> Found | None:
        """The time since an active drift began, or else the last five minutes, against the reference."""
        model = self.detector.model
        if model is None or not self.until:
            return None
        first = self.until - LOOK
        for active in self.active()[:1]:
            first = max(min(first, int(active.event.started_at // TICK_S)), self.until - RECALL)
        window = self.recent.between(first, self.until)
        if not len(window):
            return None
        silence = np.zeros(len(model.reference.layout.owners))
        frame = dense(window, model.reference, first, self.until - first, silence)
        return explain(window, frame, model.reference, self.settings, self._names)

    def active(self) -> list[Active]:
        """The drifts that are active, rises first."""
        return self.detector.drifts()

    def accept(self) -> list[Event]:
        """Take what is active as the new normal; the events that end.

        What was usual has to be learnt again, see `due`; only the wide rule holds until then.
        """
        events = self.detector.accept()
        self._forget(events)
        self._turned = True
        return events

    def _forget(self, events: Sequence[Event]) -> None:
        """A new mix was accepted: what was learnt is not usual any more."""
        if self.learnt is not None and any(event.note == ACCEPTED for event in events):
            self._begin_anew()
            self._relearnt = True

    def _begin_anew(self) -> None:
        """Nothing is learnt any more."""
        self.learnt, alarms = None, self.detector.alarms
        self.detector = Detector(self.settings, self._names, begin=self.until)
        self.detector.alarms = alarms

    @property
    def due(self) -> bool:
        """Whether it is time to learn: where nothing is learnt, and once a day; not while anything is suspicious."""
        if self.active() or self.detector.score > SUSPICIOUS:
            return False
        return self.learnt is None or self.until - self.learnt.until >= DAY

    def learn(self, learnt: Learnt) -> bool:
        """Go on with what was learnt for this pool, unless something has become suspicious; whether it was taken."""
        model = learnt.model(self._find) if self.due and learnt.settings == self.settings else None
        if model is None:
            return False
        self.learnt, self._relearnt, self._turned = learnt, True, True
        self.detector.learn(model)
        return True

    def _name_model(self) -> None:
        """Names have come or gone: the model is about the same ones."""
        model = None if self.learnt is None else self.learnt.model(self._find)
        if model is not None:
            self.detector.model = model

    def told_pool(self) -> Told | None:
        """What a sentence tells of the pool beside the drift."""
        replicas = self.pool.replicas
        return Told(replicas, self.pool.target_utilisation) if isinstance(replicas, int) else None

    def news(self) -> list[Any] | None:
        """What a restart needs beside `save` and the ticks of the ledger; None where nothing has happened."""
        if not self._fresh and not self._turned and not self._relearnt:
            return None
        fresh, turned, self._fresh, self._turned = Ticks.merge(self._fresh), self._turned, [], False
        state = self.detector.state() if turned else {}
        light = {name: value for name, value in state.items() if name not in ("recent", "novice")}
        learnt, self._relearnt = [self._told()] if self._relearnt else [], False
        return [self.until, light, self.detector.brief(), _plain(bounded(fresh, MOST_NEWS)), learnt]

    def absorb(self, news: list[Any]) -> None:
        """Remember what `news` gave."""
        self.until, state, self._brief, fresh, learnt = news
        for told in learnt:
            if told is None:
                self._begin_anew()
                self._saved = self.until
            else:
                self._remember(told)
        self._open = Ticks.merge([self._open, _ticks(fresh)])
        if state:
            known = self.detector.state()
            self._restore(state | {"recent": _plain(Ticks.empty()), "novice": known["novice"]})

    def save(self) -> list[Any]:
        """All but the ticks, which the ledger has."""
        state = self.detector.state() | {"recent": _plain(Ticks.empty())}
        return [self.until, state, self._filter.state(), _plain(self._open), self._told()]

    def load(self, saved: list[Any]) -> None:
        """Remember again what `save` gave."""
        self.until, state, resends, opened, *told = saved
        self._remember(told[0] if told else None)
        self._filter = ResendFilter.from_state(resends)
        self._open, self._saved = _ticks(opened), self.until
        self._restore(state)

    def _told(self) -> Mapping[str, Any] | None:
        return None if self.learnt is None else self.learnt.told

    def _remember(self, told: Mapping[str, Any] | None) -> None:
        """Take back what was learnt; with other settings it would be wrong, and is learnt again."""
        learnt = None if told is None else Learnt(told)
        self.learnt = learnt if learnt is not None and learnt.settings == self.settings else None
        self.detector.model = None if self.learnt is None else self.learnt.model(self._find)

    def _restore(self, state: dict[str, Any]) -> None:
        self.detector = Detector.from_state(state, self.settings, self._names, self.detector.model)

    def recall(self, ticks: Ticks) -> None:
        """Take back the ticks of the last two hours, from the ledger."""
        self.recent = ticks.between(self.until - RECALL, self.until)
        self._open = self._open.between(self.until, 1 << 60)
        self._restore(self.detector.state() | {"recent": _plain(self.recent)})
        if self._brief is not None:
            self.detector.relearn(self.recent.between(self._saved, self.until), self._brief)
        self._saved, self._brief = self.until, None


def bounded(ticks: Ticks, most: int) -> Ticks:
    """The same ticks with at most so many cells each, and one more for every class."""
    if len(ticks) <= most:
        return ticks
    place = np.lexsort((-ticks["cost"], ticks.tick))
    rank = np.empty(len(ticks), np.int64)
    begins = np.searchsorted(ticks.tick[place], ticks.tick[place])
    rank[place] = np.arange(len(ticks)) - begins
    small = rank >= most
    if not small.any():
        return ticks
    folded = np.where(small, OTHER, ticks.tenant), np.where(small, OTHER, ticks.route)
    return Ticks.merge([Ticks(ticks.tick, *folded, ticks.klass, ticks.sums)])


def _plain(ticks: Ticks) -> dict[str, Any]:
    return {name: getattr(ticks, name) for name in Ticks.__slots__}


def _ticks(saved: dict[str, Any]) -> Ticks:
    return Ticks(**{name: np.asarray(part) for name, part in saved.items()})
