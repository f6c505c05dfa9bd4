"""The evaluation: weeks without drift, onsets of every drift, cases that must stay silent; all with one model.

Everything runs on ticks; made-up traffic is kept in a folder, so that a second run of the same seeds only judges.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from capwatch.drift.detector import Detector
from capwatch.drift.event import Event
from capwatch.drift.model import Model, Settings, fit
from capwatch.drift.resend import ResendFilter
from capwatch.drift.ticks import TICK_S, Ticks

from .traffic import DAY, DECODE, EPOCH, HOUR, PREFILL, WEEK, Background, Drift, Floats, Site

SETTINGS = Settings(PREFILL, DECODE)
BEFORE = 1.5 * HOUR
Value = TypeVar("Value")


@dataclass
class Trial:
    """One onset: its alarm, if there was one."""

    delay: float = np.inf
    """s from the onset to the end of the tick that raised it."""
    event: Event | None = None
    early: bool = False
    """Whether an alarm was active within ten minutes before."""
    requests: float = np.inf
    """Requests from the onset to the alarm."""


@dataclass
class Bench:
    """One background with its learnt model; ``seed`` is that of its traffic."""

    background: Background
    seed: int
    folder: Path
    weeks: int = 2
    """Weeks of history that are learnt."""
    site: Site = field(init=False)
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        self.site = Site(self.background, np.random.default_rng([self.seed, 0]))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.model = fit(self.history(), SETTINGS)

    def history(self) -> Ticks:
        """What is learnt."""
        return self.kept("history", lambda: self.traffic(EPOCH, EPOCH + self.weeks * WEEK, [self.seed, 1]))

    def kept(self, name: str, make: Callable[[], Value]) -> Value:
        """Something made once and kept in the folder."""
        cron = "-cron" if self.background.cron else ""
        path = self.folder / f"{self.background.name}{cron}-{self.background.rate:g}-{self.seed}-{name}.pickle"
        if path.exists():
            value: Value = pickle.loads(path.read_bytes())  # noqa: S301 - written by the line below
            return value
        value = make()
        path.write_bytes(pickle.dumps(value))
        return value

    def traffic(
        self, begin: float, end: float, seed: list[int], drift: Drift | None = None, onset: float = np.inf
    ) -> Ticks:
        """Ticks of a stretch, resends left out."""
        rng, resends, parts = np.random.default_rng(seed), ResendFilter(), []
        while begin < end:
            stop = min(end, begin + DAY)
            rows = self.site.rows(begin, stop, drift, onset, rng)
            parts.append(Ticks.of(rows.take(resends.keep(rows)), PREFILL, DECODE))
            begin = stop
        return Ticks.merge(parts)

    def events(self, ticks: Ticks) -> list[Event]:
        """What a fresh detector says."""
        first, last = int(ticks.tick[0]), int(ticks.tick[-1]) + 1
        return Detector(SETTINGS, lambda _, code: str(code), self.model, begin=first).feed(ticks, last)

    def week(self, number: int) -> list[Event]:
        """Alarms of a week that nothing was fitted on; those within 30 minutes of each other are one."""
        begin = EPOCH + (self.weeks + number) * WEEK
        ticks = self.kept(f"week{number}", lambda: self.traffic(begin, begin + WEEK, [self.seed, 2, number]))
        raised = [event for event in self.events(ticks) if event.event == "raised"]
        return [
            one
            for one, before in zip(raised, [None, *raised], strict=False)
            if before is None or one.at - before.at > 1800
        ]

    def trial_ticks(self, name: str, number: int) -> Ticks:
        """The ticks of a trial that has been run."""
        return self.kept(_file(name, number), Ticks.empty)

    def onsets(self, trials: int) -> Floats:
        """Onsets, uniform over four weeks."""
        rng = np.random.default_rng([self.seed, 3])
        return np.asarray(EPOCH + (self.weeks + 8) * WEEK + rng.uniform(0, 4 * WEEK, trials))

    def trial(self, name: str, drift: Drift, number: int, onset: float, after: float) -> Trial:
        """One onset of a drift."""
        begin = (onset - BEFORE) // TICK_S * TICK_S
        ticks = self.kept(
            _file(name, number), lambda: self.traffic(begin, onset + after, [self.seed, 4, number], drift, onset)
        )
        events = [event for event in self.events(ticks) if event.direction == "up"]
        trial = Trial()
        for event in events:
            if event.at <= onset and (event.event == "raised" or event.at > onset - 600):
                trial.early = event.event == "raised" or event.at > onset - 600
            elif event.at > onset and event.event == "raised" and trial.event is None:
                trial.event, trial.delay = event, event.at - onset
                seen = ticks.between(int(onset // TICK_S) + 1, int(event.at // TICK_S))
                trial.requests = float(seen["n"].sum())
        if any(event.event == "cleared" and event.at <= onset - 600 for event in events):
            trial.early = False
        return trial


def _file(name: str, number: int) -> str:
    return f"{name.replace(' ', '_').replace('/', '')}-{number}"


def span(name: str) -> float:
    """Seconds that a drift is watched for."""
    return (9 if "ramp" in name else 6 if "8 %" in name else 3) * HOUR


def with_cron(background: Background) -> Background:
    """The same site with a job at every full hour."""
    return replace(background, cron=True)
