"""Runs the detector over requests of the past: learns up to a time, then goes on as a daemon would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from capwatch.drift.attribution import Names
from capwatch.drift.detector import Detector
from capwatch.drift.event import Event
from capwatch.drift.model import Model, Settings, fit, long_enough
from capwatch.drift.resend import ResendFilter
from capwatch.drift.rows import Rows
from capwatch.drift.ticks import DAY, TICK_S, Ticks

REFIT: Final = 7 * DAY
"""Ticks after which a model is fitted anew …"""
HISTORY: Final = 28 * DAY
"""… on the ticks of four weeks."""


@dataclass(slots=True)
class Past:
    """A detector and the history that it learns from."""

    settings: Settings
    names: Names
    learn_until: float
    detector: Detector = field(init=False)
    model: Model | None = None
    resent: int = 0
    first: int | None = None
    """First and last tick that were watched."""
    last: int = 0
    keeps: bool = False
    """Whether all that was watched is kept, for `watched`."""
    kept: list[Ticks] = field(default_factory=list)
    """Ticks that may be learnt: those of active drifts are left out."""
    _filter: ResendFilter = field(default_factory=ResendFilter)
    _open: Ticks = field(default_factory=Ticks.empty)
    _fitted: int = 0
    _watched: list[Ticks] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.detector = Detector(self.settings, self.names)

    @property
    def watched(self) -> Ticks:
        """All ticks that were watched."""
        return Ticks.join(self._watched)

    def events(self, blocks: Iterable[Rows]) -> Iterator[Event]:
        """All events of requests that come in order of time."""
        for rows in blocks:
            first_attempts = self._filter.keep(rows)
            self.resent += len(rows) - int(first_attempts.sum())
            ticks = Ticks.of(rows.take(first_attempts), self.settings.prefill_rate, self.settings.decode_rate)
            self._open = Ticks.merge([self._open, ticks]) if len(self._open) else ticks
            # The last minute may still get late rows.
            yield from self._closed(int(rows.at[-1] // TICK_S) - 6)
        if len(self._open):
            yield from self._closed(int(self._open.tick[-1]) + 1)

    def events_of(self, parts: Iterable[Ticks]) -> Iterator[Event]:
        """All events of ticks that come in order of time, resends left out."""
        for ticks in parts:
            self._open = ticks
            yield from self._closed(int(ticks.tick[-1]) + 1)

    def _closed(self, until: int) -> Iterator[Event]:
        ticks = self._open.between(0, until)
        self._open = self._open.between(until, 1 << 60)
        if not len(ticks):
            return
        border = int(self.learn_until // TICK_S)
        learnt = ticks.between(0, border)
        if len(learnt):
            self.kept.append(learnt)
        rest = ticks.between(border, until)
        while len(rest):
            begin = int(rest.tick[0])
            self._fit(begin)
            end = min(until, (begin // DAY + 1) * DAY)
            yield from self._watch(rest.between(begin, end), end)
            rest = rest.between(end, until)

    def _watch(self, ticks: Ticks, until: int) -> Iterator[Event]:
        if self.first is None:
            self.first = int(ticks.tick[0])
        self.last = until
        if self.keeps:
            self._watched.append(ticks)
        before = bool(self.detector.active)
        events = self.detector.feed(ticks, until)
        yield from events
        if not before and not self.detector.active and not events:
            self.kept.append(ticks)
        if any(event.note == "accepted" for event in events):
            self.kept = []

    def _fit(self, now: int) -> None:
        """Fit a model where it is time."""
        wait = DAY if self.model is None else REFIT
        if now - self._fitted < wait or self.detector.active:
            return
        history = Ticks.join(self.kept).between(now - HISTORY, now)
        if long_enough(history):
            self.kept = [history]
            self.model = fit(history, self.settings)
            self.detector.learn(self.model)
        elif not self._fitted:  # the wide rule needs to know what there is
            self.detector.feed(history, now)
        self._fitted = now
