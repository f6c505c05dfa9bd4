"""What a meter gets to see: a batch with everything about it decided (labels, pool, class, cost, verdict, time)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from capwatch.cost import Cost
from capwatch.ledger import Follower, Gathering, Sketch, Table, Totals
from capwatch.ledger.series import Series
from capwatch.record import Batch, Bools, Floats, Ints, zeroed

ROLLUP_S: Final = 300.0
"""Length of a rollup's slot."""
ROLLUP_SLOTS: Final = 4
"""The slot that is filling and the three before: a record may be fifteen minutes late for its rollup."""


MOST_S: Final = 1200
"""Residence at which a second may be closed: 26 minutes are kept, of which windows look at the last five."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Requests of a batch with equal labels; everything that follows from labels is decided once per group.

    ``of[n]`` is the group of each request; all other arrays have one entry per group, of ids
    (see `capwatch.ledger.names`).
    """

    of: Ints
    tenant: Ints
    route: Ints
    model: Ints
    pool: Ints
    klass: Ints

    def sums(self, values: Floats) -> Floats:
        """The sum of values[n] in each group; NaN adds nothing."""
        return np.bincount(self.of, zeroed(values), len(self.tenant)).astype(np.float64, copy=False)

    def count(self, rows: Bools) -> Floats:
        """How many of the chosen rows each group has."""
        return np.bincount(self.of[rows], minlength=len(self.tenant)).astype(np.float64)

    def split(self, kinds: Ints, size: int) -> tuple[Ints, Ints, Floats]:
        """(group, kind, count) for all pairs that occur, ``kinds[n]`` being in 0..size−1."""
        counts = np.bincount(self.of * size + kinds, minlength=len(self.tenant) * size)
        found = np.flatnonzero(counts)
        return found // size, found % size, counts[found].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Seen:
    """Requests that count, and the decisions about each; arrays have one entry per request."""

    batch: Batch
    source: int
    """Id of the source's name."""
    groups: Groups
    cost: Cost
    verdict: Ints
    """Index into `capwatch.slo.VERDICTS`."""
    event_at: Floats
    """s, epoch."""
    slot: Ints
    """Slice of 30 s of event time, or `capwatch.ledger.LASTING` for what counts for life only."""
    rollup_slot: Ints
    """Slot of five minutes, or `LASTING` for what is too late or too early for its rollup."""
    timely: Bools
    """False where the record is too late for the window or too far ahead of the clock."""
    again: Bools
    """Whether it tries again what an earlier row of its group failed at."""
    writer: str = ""
    """The engine that writes this log, in logs of engines; in others it means nothing."""

    @property
    def pool(self) -> Ints:
        """The pool of each request."""
        return self.groups.pool[self.groups.of]

    @property
    def arrived_at(self) -> Floats:
        """When each request arrived (s, epoch); where that is not told its event time, and `MOST_S` before it at most.

        What lasts longer counts as arrived that long before its end: its second may be closed already.
        """
        started = self.batch["started_at"]
        return np.where(np.isnan(started), self.event_at, np.maximum(started, self.event_at - MOST_S))

    def take(self, rows: Ints) -> Seen:
        """Some of the requests; the groups stay as they are."""
        columns = {
            name: getattr(self, name)[rows]
            for name in ("verdict", "event_at", "slot", "rollup_slot", "timely", "again")
        }
        return replace(
            self,
            batch=self.batch.take(rows),
            groups=replace(self.groups, of=self.groups.of[rows]),
            cost=Cost(*(part[rows] for part in self.cost)),
            **columns,
        )


class Meter(Protocol):
    """One measure: its tables, how a batch adds to them, and what they show."""

    tables: Sequence[Table]
    sketches: Sequence[Sketch]
    followers: Sequence[Callable[[], Follower]]

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Gather what a batch adds."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """The metrics, from the totals."""
