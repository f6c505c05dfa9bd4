"""What a review reads, whatever the source: hours, seconds, ticks, notes and settings.

`Kept` is a history on disk; `Replayed` fills the same from slots that close while logs are replayed, in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from capwatch import ledger
from capwatch.drift.ticks import TICK_S, Ticks
from capwatch.keep import slot
from capwatch.keep.bundle import Texts, of_closed
from capwatch.keep.past import HOUR, KINDS, Past
from capwatch.keep.slot import Slot
from capwatch.ledger import POOL, Closed
from capwatch.load.tables import SECONDS
from capwatch.meters.drift import TICKS
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


class Replayed:
    """Slots that have closed, as arrays; ``begin`` and ``end`` of what is told by five minutes."""

    def __init__(self, begin: int, end: int) -> None:
        self._fine = Fine(begin, end)
        self._hours: dict[str, dict[int, list[Slot]]] = {name: defaultdict(list) for name in KINDS}
        self._seconds: dict[str, list[tuple[Ints, Floats]]] = defaultdict(list)
        self._texts = Texts()
        self._ticks: dict[str, list[Ticks]] = defaultdict(list)
        self._notes: list[Note] = []
        self._settings: Mapping[str, Any] = {}

    def keep(self, closed: Sequence[Closed], names: ledger.Names) -> None:
        """Take slots that have closed, in order."""
        self._keep_seconds([one for one in closed if one.table == SECONDS.name], names)
        ticks = [one for one in closed if one.table == TICKS.name]
        for pool, part in of_closed(ticks, names, self._texts) if ticks else ():
            self._ticks[pool].append(part)
        for one in closed:
            if one.table in KINDS:
                kind = KINDS[one.table]
                made = slot.made(one, kind.names(names, one.sums.keys), kind.bits, kind.span)
                self._hours[one.table][made.at // HOUR * HOUR].append(made)
                if one.table == "rollup":
                    self._fine.add([made])
        for name, hours in self._hours.items():
            for hour in sorted(hours)[:-1]:  # the last may get more
                self._fold(name, hour)

    def settle(self, notes: Sequence[Note], settings: Mapping[str, Any]) -> None:
        """No more slots come; the notes and the settings that go with them."""
        self._notes, self._settings = sorted(notes, key=lambda note: note.at), settings
        for name, hours in self._hours.items():
            for hour in hours:
                self._fold(name, hour)

    def _fold(self, name: str, hour: int) -> None:
        parts = self._hours[name][hour]
        if len(parts) > 1:
            self._hours[name][hour] = [slot.merged(parts, KINDS[name].bits, hour, HOUR)]
        elif parts[0].span < HOUR:
            self._hours[name][hour] = [replace(parts[0], at=hour, span=HOUR)]

    def _keep_seconds(self, closed: Sequence[Closed], names: ledger.Names) -> None:
        if not closed:
            return
        at = np.repeat([one.slot for one in closed], [len(one.sums.keys) for one in closed])
        keys = np.concatenate([one.sums.keys for one in closed])
        values = np.concatenate([one.sums.values for one in closed])
        texts = names.texts(POOL.name)
        for key in np.unique(keys).tolist():
            self._seconds[texts.get(key, "other")].append((at[keys == key], values[keys == key]))

    def hours(self, since: float, until: float) -> Iterator[Slot]:
        """See `Told`."""
        return self.beside("rollup", since, until)

    def beside(self, name: str, since: float, until: float) -> Iterator[Slot]:
        """See `Told`."""
        hours = self._hours[name]
        return (hours[hour][0] for hour in sorted(hours) if since <= hour < until)

    def seconds(self, pool: str, since: float, until: float) -> tuple[Ints, Floats]:
        """See `Told`."""
        parts = self._seconds.get(pool)
        if not parts:
            return np.empty(0, np.int64), np.empty((0, len(SECONDS.columns)))
        at, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        begin, end = np.searchsorted(at, (since, until))
        return at[begin:end], counts[begin:end]

    def ticks(self, pool: str, since: float, until: float) -> PoolTicks | None:
        """See `Told`."""
        parts = self._ticks.get(pool, [])
        first, last = int(since // TICK_S), int(until // TICK_S)
        if not any(len(part.between(first, last)) for part in parts):
            return None
        return PoolTicks(lambda begin, end: Ticks.join([part.between(begin, end) for part in parts]), self._texts)

    def fine(self, begin: int, end: int) -> Fine:  # noqa: ARG002 - as it was begun
        """See `Told`."""
        return self._fine

    def events(self, since: float, until: float) -> None:
        """See `Told`."""

    def annotations(self, since: float, until: float) -> list[Note]:
        """See `Told`."""
        return [note for note in self._notes if since <= note.at < until]

    def settings(self, at: float) -> Mapping[str, Any]:  # noqa: ARG002 - they held all along
        """See `Told`."""
        return self._settings
