"""Weeks that are made of a few hours: the pipeline counts each kind of hour once, and weeks are laid out with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from capwatch.config.schema import Class, Config, Match, Pool, Slo
from capwatch.keep import slot
from capwatch.keep.past import HOUR, KINDS
from capwatch.keep.slot import Slot
from capwatch.record import Floats, Ints, Note
from capwatch.review.calendar import IsoWeek
from capwatch.review.document import Document, of
from capwatch.review.fine import Fine
from capwatch.review.gather import gathered
from tests.spine import Spine

WEEK = IsoWeek(2026, 48)
POOL = Pool(
    "chat-70b", Match(model=("chat-70b",)), replicas=12, prefill_tokens_per_second=4000, decode_tokens_per_second=160,
    slots=32, kv_pool_tokens=30_500,
)  # fmt: skip
CONFIG = Config(pools=(POOL,), classes=(Class("chat"),), slo=(Slo(ttft=1.5, tpot=0.06),))


@dataclass
class Kind:
    """One hour: its rollup, and its arrivals and cost by second."""

    rollup: Slot
    seconds: Floats


def kind(config: Config, rows: Callable[[float], Sequence[Mapping[str, Any]]]) -> Kind:
    """What the pipeline makes of the requests that ``rows`` gives for an hour that begins at a time."""
    begin = float(WEEK.since)
    spine = Spine(config)
    spine.feed(*rows(begin), now=begin + 3 * HOUR)
    spine.tick(begin + 6 * HOUR)
    kept = KINDS["rollup"]
    parts, counts = [], np.zeros((HOUR, 3))
    for one in spine.totals.closed:
        if one.table == "rollup":
            parts.append(slot.made(one, kept.names(spine.totals.names, one.sums.keys), kept.bits, kept.span))
        elif one.table == "seconds" and 0 <= one.slot - int(begin) < HOUR:
            counts[one.slot - int(begin)] += one.sums.values.sum(axis=0)
    return Kind(slot.merged(parts, kept.bits, int(begin), HOUR), counts)


@dataclass
class Made:
    """A past of whole hours: what `capwatch.review.told.Told` asks for, for one pool."""

    plan: Callable[[int], Kind | None]
    """The hour that begins at a time; None: nothing is known of it."""
    begin: int
    end: int
    notes: Sequence[Note] = ()
    config: Config = field(default_factory=lambda: CONFIG)

    def hours(self, since: float, until: float) -> Iterator[Slot]:
        for at in range(max(int(since), self.begin), min(int(until), self.end), HOUR):
            found = self.plan(at)
            if found is not None:
                one = found.rollup
                yield Slot(at, HOUR, one.names, one.values, one.cells)

    def beside(self, name: str, since: float, until: float) -> Iterator[Slot]:
        return iter(())

    def seconds(self, pool: str, since: float, until: float) -> tuple[Ints, Floats]:
        at, counts = [], []
        for hour in range(max(int(since), self.begin), min(int(until), self.end), HOUR):
            found = self.plan(hour)
            if found is not None:
                at.append(hour + np.arange(HOUR))
                counts.append(found.seconds)
        if not at:
            return np.empty(0, np.int64), np.empty((0, 3))
        return np.concatenate(at), np.concatenate(counts)

    def ticks(self, pool: str, since: float, until: float) -> None:
        return

    def fine(self, begin: int, end: int) -> Fine:
        return Fine(begin, end)

    def events(self, since: float, until: float) -> None:
        return

    def annotations(self, since: float, until: float) -> list[Note]:
        return [note for note in self.notes if since <= note.at < until]

    def settings(self, at: float) -> Mapping[str, Any]:
        return {pool.name: msgspec.to_builtins(pool) for pool in self.config.pools}

    def review(self, week: IsoWeek = WEEK) -> Document:
        """The review of a week, by the settings alone."""
        return of(gathered(self, week, None, "made-up hours"))
