"""The history for reading, by the daemon itself or by a review beside it: what was kept, as arrays and slots."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np

from capwatch import ledger
from capwatch.drift.ticks import TICK_S, Ticks
from capwatch.keep import bundle
from capwatch.keep.database import judged, reading
from capwatch.keep.slot import Names, Slot, merged, unpack
from capwatch.ledger import OTHER, Table
from capwatch.ledger.names import RESERVED
from capwatch.load.tables import SECONDS
from capwatch.meters.coverage import COVER
from capwatch.meters.engine import FLEET
from capwatch.meters.lengths import LENGTHS, SPAN
from capwatch.meters.rollup import COMBINATION, MEASURE, PARTS, ROLLUPS, read
from capwatch.meters.sources import BOOKS
from capwatch.record import Floats, Ints, Note

VERSION: Final = 1
"""Of the layout of the history. A change of it needs a migration from every older one."""
HOUR: Final = 3600
"""s: the span of slots that were folded."""
DAY: Final = 86400


@dataclass(frozen=True, slots=True)
class Kind:
    """A table whose closed slots are kept whole."""

    table: Table
    bits: int
    """The width of the measure in the series of its sketch."""
    names: Callable[[ledger.Names, Ints], list[Names]]
    """The texts behind keys."""
    days: int
    """The age at which its slots go, or become hours."""
    hours_days: int = 0
    """The age at which its hours go; 0: there are none."""

    @property
    def span(self) -> int:
        """The length of its slots, s."""
        return int(self.table.slot_s)


def _rollup_names(names: ledger.Names, keys: Ints) -> list[Names]:
    """Tenant, route, model, pool and class; what has lost its name in the meantime is `other`."""
    known = names.texts(COMBINATION.name)
    combinations = [known.get(key, RESERVED[OTHER]) for key in keys.tolist()]
    ids = [read(text) if "/" in text else (OTHER,) * len(PARTS) for text in combinations]
    texts = [names.texts(axis.name) for axis in PARTS]
    return [tuple(text.get(one, RESERVED[OTHER]) for text, one in zip(texts, row, strict=True)) for row in ids]


def _names_of(table: Table) -> Callable[[ledger.Names, Ints], list[Names]]:
    """The texts behind the axes of a table."""

    def names(known: ledger.Names, keys: Ints) -> list[Names]:
        columns = []
        for axis, ids in zip(table.axes, table.unpack(keys), strict=True):
            texts = dict(enumerate(axis.values)) if axis.values else known.texts(axis.name)
            columns.append([texts.get(one, RESERVED[OTHER]) for one in ids.tolist()])
        return list(zip(*columns, strict=True))

    return names


KINDS: Final = {
    "rollup": Kind(ROLLUPS, MEASURE.bits, _rollup_names, days=14, hours_days=91),
    "cover": Kind(COVER, 0, _names_of(COVER), days=14, hours_days=91),
    "fleet": Kind(FLEET, 0, _names_of(FLEET), days=91),
    "books": Kind(BOOKS, 0, _names_of(BOOKS), days=91),
    "lengths": Kind(LENGTHS, SPAN.bits, _names_of(LENGTHS), days=91),
}
"""Contract, section 7, by table name. Another table that closes its slots is kept by an entry here."""


class Past:
    """A history open for reading; a daemon may write it at the same time. One thread uses it at a time."""

    def __init__(self, folder: str) -> None:
        """Open the history of a state directory.

        Raises:
            DamagedError: it is not what was written.
            StateError: there is none, or its version is newer.
            sqlite3.Error: it cannot be read now.
        """
        self._db: sqlite3.Connection = reading(os.path.join(folder, "history.db"), VERSION)

    def seconds(self, pool: str, since: float, until: float) -> tuple[Ints, Floats]:
        """(at[n], counts[n, columns of `SECONDS`]) by second from ``since`` to before ``until``, ascending.

        A second without an event is absent.
        """
        query = f"SELECT at, {', '.join(SECONDS.columns)} FROM second WHERE at >= ? AND at < ? AND pool = ? ORDER BY at"  # noqa: S608
        with judged():
            rows = self._db.execute(query, (since, until, pool))
            found = np.fromiter(chain.from_iterable(rows), np.float64).reshape(-1, 1 + len(SECONDS.columns))
        return found[:, 0].astype(np.int64), found[:, 1:]

    def rollups(self, since: float, until: float, span: int) -> Iterator[Slot]:
        """The rollups that begin from ``since`` to before ``until``, ascending.

        ``span`` is 300 for those of five minutes as far as they go back, or 3600 for hours, the last ones made of the
        five minutes that are there. Values have the columns of `ROLLUPS`, series of cells are row << `MEASURE`.bits |
        measure.
        """
        return self.slots("rollup", since, until, span)

    def slots(self, name: str, since: float, until: float, span: int) -> Iterator[Slot]:
        """The kept slots of a table of `KINDS`, see `rollups`; each is read when its turn comes."""
        kind = KINDS[name]
        starts = self._rows(
            "SELECT DISTINCT at - at % ?1 FROM slot WHERE name = ?2 AND span <= ?1 AND at >= ?3 AND at < ?4 ORDER BY 1",
            *(span, name, math.ceil(since / span) * span, math.ceil(until / span) * span),
        )
        for (at,) in starts:
            parts, _ = self._parts(kind, at, span)
            if parts:  # else it has become part of an hour meanwhile
                yield merged(parts, kind.bits, at, span)

    def annotations(self, since: float, until: float) -> list[Note]:
        """The notes from ``since`` to before ``until``, in order."""
        rows = self._rows("SELECT at, pool, text FROM annotation WHERE at >= ? AND at < ? ORDER BY at", since, until)
        return [Note(at, pool or None, text) for at, pool, text in rows]

    def events(self, since: float, until: float, pool: str | None = None) -> list[dict[str, Any]]:
        """Drifts raised and cleared from ``since`` to before ``until``, in order, of one pool or of all.

        Each is what the API and the log say: an event of the contract (section 1a) with its `sentence`.
        """
        if not self._has("event"):
            return []
        rows = self._rows(
            "SELECT json FROM event WHERE at >= ?1 AND at < ?2 AND ?3 IN (pool, '') ORDER BY at, pool, event",
            *(since, until, pool or ""),
        )
        return [msgspec.json.decode(json) for (json,) in rows]

    def ticks(self, pool: str, first: int, last: int, texts: bundle.Texts) -> Ticks:
        """The detector's ticks of a pool, first ≤ tick < last; names are codes of ``texts``."""
        with judged():
            return bundle.read(self._db, pool, first, last, texts) if self._has("tick") else Ticks.empty()

    def tick_span(self, pool: str) -> tuple[int, int]:
        """First tick and the one after the last that may be there, to ten minutes; (0, 0) where there is none."""
        if not self._has("tick"):
            return 0, 0
        ((first, last),) = self._rows("SELECT min(at), max(at) FROM tick WHERE pool = ?", pool)
        return (0, 0) if first is None else (first // TICK_S, last // TICK_S + bundle.SIZE)

    def settings(self, at: float) -> Mapping[str, Any]:
        """The settings of each pool that were in force at a time (s, epoch), as they were given."""
        rows = self._rows("SELECT pool, json, max(at) FROM setting WHERE at <= ? GROUP BY pool ORDER BY pool", at)
        return {pool: msgspec.json.decode(json) for pool, json, _ in rows if json != "null"}

    def _parts(self, kind: Kind, at: int, span: int) -> tuple[list[Slot], int]:
        """The slots inside one span, each part of it once, and which parts these are, a bit each."""
        found, had = [], 0
        for begin, length, parts, data in self._rows(
            "SELECT at, span, parts, data FROM slot WHERE name = ? AND at >= ? AND at < ? AND span <= ?"
            " ORDER BY span DESC, at",
            *(kind.table.name, at, at + span, span),
        ):
            if not had & parts:
                found.append(unpack(begin, length, data, kind.table.columns))
                had |= parts
        return found, had

    def _has(self, table: str) -> bool:
        """Whether the file has a table that came later than others of its version."""
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table))

    def _rows(self, query: str, *values: object) -> list[Any]:
        with judged():
            return self._db.execute(query, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._db.close()
