"""Event time: the clock that records move, and what is too late or too far ahead of it (contract, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from capwatch.ledger import LASTING, Table
from capwatch.record import Bools, Floats, Ints
from capwatch.seen import ROLLUP_S, ROLLUP_SLOTS
from capwatch.sketch import SLICE, SLICES

AHEAD_S: Final = 60.0
"""The event clock is never more than this ahead of the wall clock (contract, section 4)."""
FUTURE_S: Final = 300.0
"""A record further ahead than this counts in totals only."""


class Timed(NamedTuple):
    """What the clock says of each record of a batch."""

    late: Bools
    """Too late for the window."""
    timely: Bools
    """Neither too late nor too far ahead."""
    slot: Ints
    """Slice of the window, or `LASTING` for what counts for life only."""
    rollup_slot: Ints
    """Slot of five minutes, or `LASTING` for what is too late or too early for its rollup."""
    clock: Floats
    """The event clock that it meets, itself included (s, epoch)."""


@dataclass(slots=True)
class EventClock:
    """The newest event time, bounded by the wall clock; it never goes back. All times are seconds since the epoch."""

    at: float = 0.0
    """0 before the first event."""
    told_at: float = 0.0
    """The wall clock when records last moved it, or when it last ran on by itself."""
    heard_at: float = 0.0
    """The newest thing that an engine told, or a row of a request that goes on."""
    newest: dict[int, float] = field(default_factory=dict)
    """The newest event of each source, by its number."""

    def reached(self, now: float) -> float:
        """The event clock; before the first event, the wall clock."""
        return self.at or now

    def move(self, event_at: Floats, now: float) -> Timed:
        """Turn the clock by a batch, in its order; each record is judged by the clock that it meets."""
        future = event_at > now + FUTURE_S
        bounded = np.where(future, 0.0, np.minimum(event_at, now + AHEAD_S))
        running = np.maximum.accumulate(np.maximum(bounded, self.at))
        slice_ = event_at // SLICE
        late = ~future & (slice_ <= running // SLICE - SLICES)
        timely = ~late & ~future
        five = event_at // ROLLUP_S
        kept = ~future & (five > running // ROLLUP_S - ROLLUP_SLOTS)
        self.at = max(self.at, float(running[-1]))
        self.told_at = now
        return Timed(late, timely, _slots(timely, slice_), _slots(kept, five), running)

    def takes(self, table: Table, at: Floats, now: float) -> Bools:
        """Which times fall into slots that a table keeps open, and not ahead of the wall clock ``now``."""
        return (at // table.slot_s >= table.oldest(self.at)) & (at <= now + FUTURE_S)

    def note(self, source: int, event_at: Floats, now: float) -> float | None:
        """The newest event of a source, these among them that are not in the future; None before the first."""
        told = event_at[event_at <= now + FUTURE_S]
        if len(told):
            self.newest[source] = max(self.newest.get(source, 0.0), float(told.max()))
        return self.newest.get(source)

    def run_on(self, now: float) -> bool:
        """Go on with the wall clock while the logs are silent, and with what is told of now; whether time has passed.

        After a restart it goes on from where it was: what was written meanwhile is read first, and is not late.
        """
        heard = min(self.heard_at, now + AHEAD_S)
        if heard > self.at:
            self.at, self.told_at = heard, now
            return True
        if self.at and not self.told_at:
            self.told_at = now
        if not self.told_at or now <= self.told_at:
            return False
        self.at += now - self.told_at
        self.told_at = now
        return True


def _slots(good: Bools, slots: Floats) -> Ints:
    return np.where(good, slots, LASTING).astype(np.int64)
