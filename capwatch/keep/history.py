"""The history for writing: what has closed goes in, once; what is old becomes coarser, and in the end goes.

Contract, section 7: seconds are kept for 15 days, rollups for 14 days by five minutes and up to 13 weeks by hours, the
detector's ticks for 28 days, drifts as long as annotations.
A slot is told once: to keep it again, after a crash or in a second replay of the same log, changes nothing.

``max_bytes`` bounds the file (its log adds 4 MiB): after each write, while it is longer, the oldest hour that still has
detail loses it (its seconds go, its five minutes become one slot); where no detail is left, the oldest hour goes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from capwatch import ledger
from capwatch.drift.ticks import Ticks
from capwatch.keep import bundle, slot
from capwatch.keep.database import judged, opened, transaction
from capwatch.keep.past import DAY, HOUR, KINDS, VERSION, Kind, Past
from capwatch.ledger import OTHER, POOL, Closed
from capwatch.ledger.names import RESERVED
from capwatch.load.tables import SECONDS
from capwatch.meters.drift import TICKS

SECONDS_DAYS: Final = 15
TICKS_DAYS: Final = 28
NOTES_DAYS: Final = 91
"""Annotations and drifts explain what is in the hours, so they go with them."""
LOG_PAGES: Final = 1024
"""4 MiB. What is written here stays, so that a longer log would save nothing."""

_SCHEMA: Final = f"""
CREATE TABLE second (
    at INTEGER, pool TEXT, {", ".join(f"{column} REAL NOT NULL" for column in SECONDS.columns)}, PRIMARY KEY (at, pool)
) WITHOUT ROWID;
CREATE TABLE slot (name TEXT, at INTEGER, span INTEGER, parts INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (name, at, span));
CREATE TABLE annotation (at REAL, pool TEXT, text TEXT, PRIMARY KEY (at, pool, text)) WITHOUT ROWID;
CREATE TABLE setting (pool TEXT, at REAL, json TEXT NOT NULL, PRIMARY KEY (pool, at)) WITHOUT ROWID;
"""
_LATER: Final = f"""
CREATE TABLE IF NOT EXISTS event (at REAL, pool TEXT, direction TEXT, event TEXT, json TEXT NOT NULL,
    PRIMARY KEY (at, pool, direction, event)) WITHOUT ROWID;
{bundle.SCHEMA}
"""
"""Tables that came later: a history without them is one of the same version all the same."""
# A second that is told again in part (an arrival that is known only after its second has closed) never gets less.
_SECOND: Final = (
    f"INSERT INTO second VALUES (?, ?{', ?' * len(SECONDS.columns)}) ON CONFLICT DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{column} = max({column}, excluded.{column})" for column in SECONDS.columns)
)


class History(Past):
    """A history open for writing, and for reading as `Past` has it. One thread uses it at a time."""

    def __init__(self, folder: str, max_bytes: int | None) -> None:
        """Open or create the history of a state directory; ``max_bytes`` None: nothing is too old or too much.

        Raises:
            DamagedError: it is not what was written; see `capwatch.keep.database.set_aside`.
            StateError: its version is newer, or it cannot be made.
            sqlite3.Error: it cannot be opened now.
        """
        path = os.path.join(folder, "history.db")
        self._db = opened(path, _SCHEMA, VERSION, log_pages=LOG_PAGES, shrinks=True)
        with judged():
            self._db.executescript(_LATER)
        self._most_pages = None if max_bytes is None else max_bytes // self._pragma("page_size")

    def keep(self, closed: Sequence[Closed], names: ledger.Names, clock: float) -> None:
        """Keep closed slots, and let go what is too old at ``clock`` (event time, s, epoch). All or nothing.

        Raises:
            DamagedError: what is there already is not what was written.
            sqlite3.Error: it could not be written, and nothing of it has been.
        """
        with judged(), transaction(self._db):
            self._keep_seconds([one for one in closed if one.table == SECONDS.name], names)
            for one in closed:
                if one.table in KINDS:
                    self._keep_slot(KINDS[one.table], one, names)
            self._keep_ticks([one for one in closed if one.table == TICKS.name], names)
            if self._most_pages is not None:
                self._age(clock)
                self._bound(self._most_pages)
        if self._most_pages is not None:
            self._shrink(self._most_pages)

    def keep_ticks(self, pool: str, ticks: Ticks, texts: bundle.Texts) -> None:
        """Keep the detector's ticks of a pool, with names as codes of ``texts``; those that are there stay as they are.

        Raises:
            DamagedError: what is there already is not what was written.
            sqlite3.Error: they could not be written.
        """
        with judged(), transaction(self._db):
            bundle.write(self._db, pool, ticks, texts)

    def annotate(self, at: float, pool: str | None, text: str) -> None:
        """Note a deploy or the like at a time (s, epoch); pool None: about all. The same note again changes nothing.

        Raises:
            sqlite3.Error: it could not be written.
        """
        with judged():
            self._db.execute("INSERT OR IGNORE INTO annotation VALUES (?, ?, ?)", (at, pool or "", text))

    def note_events(self, events: Sequence[Mapping[str, object]]) -> None:
        """Note drifts that were raised or have gone, as `events` gives them; the same again changes nothing.

        Raises:
            sqlite3.Error: they could not be written.
        """
        rows = [
            (*(one[name] for name in ("at", "pool", "direction", "event")), msgspec.json.encode(one).decode())
            for one in events
        ]
        with judged(), transaction(self._db):
            self._db.executemany("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?, ?)", rows)

    def note_settings(self, at: float, pools: Mapping[str, object]) -> None:
        """Note the settings of all pools, as plain builtins, that are in force from ``at`` on; only changes are kept.

        Raises:
            sqlite3.Error: they could not be written.
        """
        before = self.settings(math.inf)
        now = {pool: msgspec.json.encode(value).decode() for pool, value in pools.items()}
        changed = [(pool, at, json) for pool, json in now.items() if before.get(pool) != msgspec.json.decode(json)]
        gone = [(pool, at, "null") for pool in before if pool not in now]
        with judged(), transaction(self._db):
            self._db.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?, ?)", changed + gone)

    def _keep_seconds(self, closed: Sequence[Closed], names: ledger.Names) -> None:
        pools = names.texts(POOL.name)
        rows = (
            (one.slot, *row)
            for one in closed
            for row in zip(one.sums.keys.tolist(), one.sums.values.tolist(), strict=True)
        )
        self._db.executemany(_SECOND, ((at, pools.get(key, RESERVED[OTHER]), *values) for at, key, values in rows))

    def _keep_slot(self, kind: Kind, one: Closed, names: ledger.Names) -> None:
        made = slot.made(one, kind.names(names, one.sums.keys), kind.bits, kind.span)
        part = 1 << made.at % HOUR // kind.span if kind.hours_days else 0
        self._db.execute(
            "INSERT OR IGNORE INTO slot VALUES (?, ?, ?, ?, ?)",
            (one.table, made.at, kind.span, part, slot.pack(made, kind.table.columns)),
        )

    def _keep_ticks(self, closed: Sequence[Closed], names: ledger.Names) -> None:
        texts = bundle.Texts()
        for pool, ticks in bundle.of_closed(closed, names, texts) if closed else ():
            bundle.write(self._db, pool, ticks, texts)

    def _age(self, clock: float) -> None:
        """Let go, or fold, what is older than it is kept."""
        self._db.execute("DELETE FROM second WHERE at < ?", (clock - SECONDS_DAYS * DAY,))
        self._db.execute("DELETE FROM tick WHERE at < ?", (clock - TICKS_DAYS * DAY - bundle.SPAN,))
        for table in ("annotation", "event"):
            self._db.execute(f"DELETE FROM {table} WHERE at < ?", (clock - NOTES_DAYS * DAY,))  # noqa: S608
        for kind in KINDS.values():
            self._coarsen(kind, clock - kind.days * DAY)
            oldest = clock - max(kind.days, kind.hours_days) * DAY
            self._db.execute("DELETE FROM slot WHERE name = ? AND at + span <= ?", (kind.table.name, oldest))

    def _coarsen(self, kind: Kind, until: float) -> None:
        """Make hours of the slots in every hour that ends by ``until``."""
        hours = self._rows(
            "SELECT DISTINCT at - at % ?1 FROM slot WHERE name = ?2 AND span < ?1 AND at < ?3 ORDER BY 1",
            *(HOUR, kind.table.name, until // HOUR * HOUR),
        )
        for (hour,) in hours:
            if kind.hours_days:
                parts, had = self._parts(kind, hour, HOUR)
                data = slot.pack(slot.merged(parts, kind.bits, hour, HOUR), kind.table.columns)
                self._db.execute(
                    "INSERT OR REPLACE INTO slot VALUES (?, ?, ?, ?, ?)", (kind.table.name, hour, HOUR, had, data)
                )
            self._db.execute(
                "DELETE FROM slot WHERE name = ? AND span < ? AND at >= ? AND at < ?",
                (kind.table.name, HOUR, hour, hour + HOUR),
            )

    def _bound(self, most: int) -> None:
        """Let go until what is left fits into so many pages; see above."""
        while self._pragma("page_count") - self._pragma("freelist_count") > most and self._drop_oldest():
            pass

    def _shrink(self, most: int) -> None:
        """Give free pages back to the disk where the file has more than it may have."""
        if self._pragma("page_count") > most:
            with judged():  # as a script, since only that runs the statement to its end
                self._db.executescript("PRAGMA incremental_vacuum")

    def _pragma(self, name: str) -> int:
        return int(self._rows(f"PRAGMA {name}")[0][0])

    def _drop_oldest(self) -> bool:
        """Let the oldest detail go, or the oldest hour where there is none; whether there was any."""
        found = self._rows(
            "SELECT min(at) FROM (SELECT min(at) AS at FROM second UNION SELECT min(at) FROM tick"
            " UNION SELECT min(at) FROM slot WHERE span < ?)",
            HOUR,
        )
        if found[0][0] is not None:
            end = (found[0][0] // HOUR + 1) * HOUR
            for table in ("second", "tick"):
                self._db.execute(f"DELETE FROM {table} WHERE at < ?", (end,))  # noqa: S608
            for kind in KINDS.values():
                self._coarsen(kind, end)
            return True
        return self._db.execute("DELETE FROM slot WHERE at = (SELECT min(at) FROM slot)").rowcount > 0
