"""What a review reads, whatever the source: hours, seconds, ticks, notes and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from capwatch.drift.ticks import TICK_S
from capwatch.keep.bundle import Texts
from capwatch.keep.past import HOUR, Past
from capwatch.keep.slot import Slot
from capwatch.record import Floats, Ints, Note
from capwatch.review.fine import SLOT_S, Fine
from capwatch.review.ticks import PoolTicks


class Told(Protocol):
    """A past that can be reviewed. Times are s since the epoch."""

    def hours(self, since: float, until: float) -> Iterator[Slot]:
        """The rollups of whole hours that begin in a stretch, ascending."""

    def beside(self, name: str, since: float, until: float) -> Iterator[Slot]:
        """The whole hours of another table of `KINDS`, ascending."""

    def seconds(self, pool: str, since: float, until: float) -> tuple[Ints, Floats]:
        """(at[n], counts[n, columns of `SECONDS`]), ascending; a second without an event is absent."""

    def ticks(self, pool: str, since: float, until: float) -> PoolTicks | None:
        """The detector's ticks of a pool; None where there are none."""

    def events(self, since: float, until: float) -> Sequence[Mapping[str, Any]] | None:
        """Drifts that were raised and cleared, as they were told then; None where nobody has written them down."""

    def fine(self, begin: int, end: int) -> Fine:
        """Failures and tenants by five minutes, as far as a stretch is told so finely."""

    def annotations(self, since: float, until: float) -> Sequence[Note]:
        """Notes of a stretch, in order."""

    def settings(self, at: float) -> Mapping[str, Any]:
        """The settings of each pool in force at a time."""


class Kept:
    """A history on disk."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self.seconds, self.annotations, self.settings = past.seconds, past.annotations, past.settings
        self.events = past.events

    def hours(self, since: float, until: float) -> Iterator[Slot]:
        """See `Told`."""
        return self._past.rollups(since, until, HOUR)

    def beside(self, name: str, since: float, until: float) -> Iterator[Slot]:
        """See `Told`."""
        return self._past.slots(name, since, until, HOUR)

    def fine(self, begin: int, end: int) -> Fine:
        """See `Told`."""
        found = Fine(begin, end)
        found.add(self._past.rollups(begin, end, SLOT_S))
        return found

    def ticks(self, pool: str, since: float, until: float) -> PoolTicks | None:
        """See `Told`."""
        texts = Texts()
        first, last = self._past.tick_span(pool)
        if last <= since // TICK_S or first >= until // TICK_S:
            return None
        return PoolTicks(lambda begin, end: self._past.ticks(pool, begin, end, texts), texts)
