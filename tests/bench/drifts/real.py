"""The detector on two real weeks by client: how many of its rises are true, and how soon it names longer requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from capwatch.drift.detector import Detector
from capwatch.drift.event import Event
from capwatch.drift.model import fit
from capwatch.drift.rows import Rows
from capwatch.drift.ticks import DAY, TICK_S, Ticks

from .protocol import SETTINGS
from .servegen import WINDOW, draw, truth
from .traffic import DECODE, EPOCH, PREFILL

WEEK_WINDOWS = 1008
TRUE = 0.10
"""Excess of the expected cost, over that of the same time of day in the learnt week, that makes a rise a true one."""
SOON = 1800.0
BEFORE, AFTER = 9, 12
"""Windows that a trial has before and after its onset."""


@dataclass(frozen=True)
class Change:
    """A drift that is put in."""

    name: str
    prompt: float = 1.0
    output: float = 1.0
    only: int = -1


CHANGES = (
    Change("prompts x1.8, all clients", prompt=1.8),
    Change("output x1.4, all clients", output=1.4),
    Change("prompts x1.8, largest client", prompt=1.8, only=0),
    Change("nothing"),
)


def evaluate(trials: int, seed: int) -> Iterator[str]:
    """Lines of the table."""
    first = EPOCH // TICK_S
    week = 7 * DAY
    days = [_ticks(draw(w, w + 144, [seed, 1, w])) for w in range(0, 2 * WEEK_WINDOWS, 144)]
    both = Ticks.merge(days)
    model = fit(both.between(first, first + week), SETTINGS)
    watched = Detector(SETTINGS, lambda _, code: str(code), model, begin=first + week)
    events = watched.feed(both.between(first + week, first + 2 * week), first + 2 * week)
    rises = [event for event in events if event.event == "raised" and event.direction == "up"]
    cost = truth()
    yield f"second week: {len(rises)} rises, {sum(_excess(cost, event) > TRUE for event in rises)} of them true"
    for change in CHANGES:
        found, usable = 0, 0
        for number in range(trials):
            window = WEEK_WINDOWS + 40 + number * (WEEK_WINDOWS - 80) // trials
            onset = float(EPOCH + window * WINDOW)
            delay = _trial(both, change, onset, window, [seed, 2, number])
            usable += delay is not None
            found += delay is not None and delay <= SOON
        yield f"{change.name}: raised within 30 minutes at {found} of {usable} onsets"


def _trial(both: Ticks, change: Change, onset: float, window: int, seed: list[int]) -> float | None:
    """Delay in s; None where a rise was active at the onset already."""
    at = int(onset // TICK_S)
    begin = at - BEFORE * WINDOW // TICK_S
    model = fit(both.between(begin - 7 * DAY, begin), SETTINGS)
    drawn = draw(
        window - BEFORE,
        window + AFTER,
        seed,
        onset=onset,
        prompt=change.prompt,
        output=change.output,
        only=change.only,
    )
    ticks = _ticks(drawn)
    detector = Detector(SETTINGS, lambda _, code: str(code), model, begin=begin)
    events = detector.feed(ticks, at + AFTER * WINDOW // TICK_S)
    rises = [event.at for event in events if event.event == "raised" and event.direction == "up"]
    if any(when <= onset for when in rises):
        return None
    return rises[0] - onset if rises else float("inf")


def _ticks(rows: Rows) -> Ticks:
    return Ticks.of(rows, PREFILL, DECODE)


def _excess(cost: np.ndarray[tuple[int], np.dtype[np.float64]], event: Event) -> float:
    """True relative excess in the ten minutes of an event over the same time of day in the learnt week."""
    now = min(int((event.at - EPOCH) // WINDOW), len(cost) - 1)
    usual = np.mean([cost[window] for window in range(now % 144, WEEK_WINDOWS, 144)])
    return float(cost[now] / usual - 1)
