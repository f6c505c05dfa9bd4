"""Ten minutes of a pool's ticks as one row of the history: the detector learns from weeks of them at once.

A tick is told once: bit n of a bundle's parts says that it holds its n-th tick, and what comes again changes nothing.
The bytes tell names and columns, as those of slots do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from capwatch import ledger
from capwatch.drift.ticks import COLUMN, SUMS, TICK_S, Ticks
from capwatch.keep import codec
from capwatch.keep.slot import FINENESS
from capwatch.ledger import CLASS, OTHER, POOL, ROUTE, TENANT, Closed
from capwatch.ledger.names import RESERVED
from capwatch.meters.drift import TICKS
from capwatch.record import Ints

SIZE: Final = 60
"""Ticks of a bundle: as many as a number of SQLite's has bits for."""
SPAN: Final = SIZE * TICK_S
"""s."""
AXES: Final = (TENANT.name, ROUTE.name, CLASS.name)
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tick (pool TEXT, at INTEGER, parts INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (pool, at));
"""


class Texts:
    """Codes for the texts of each axis, given as they come."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {axis: [] for axis in AXES}
        self._codes: dict[str, dict[str, int]] = {axis: {} for axis in AXES}

    def codes(self, axis: str, texts: Iterable[str]) -> Ints:
        """The codes of some texts, new ones for new texts."""
        known, listed = self._codes[axis], self.texts[axis]
        found = []
        for text in texts:
            if text not in known:
                known[text] = len(listed)
                listed.append(text)
            found.append(known[text])
        return np.array(found, np.int64)


def of_closed(closed: Sequence[Closed], names: ledger.Names, texts: Texts) -> Iterator[tuple[str, Ticks]]:
    """(pool, its ticks) of closed slots of `TICKS`; what has lost its name in the meantime is `other`."""
    keys = np.concatenate([one.sums.keys for one in closed])
    tick = np.repeat([one.slot for one in closed], [len(one.sums.keys) for one in closed])
    sums = np.concatenate([one.sums.values for one in closed])
    pools, *ids = TICKS.unpack(keys)
    codes = []
    for axis, column in zip(AXES, ids, strict=True):
        named = names.texts(axis)
        given, of = np.unique(column, return_inverse=True)
        codes.append(texts.codes(axis, (named.get(one, RESERVED[OTHER]) for one in given.tolist()))[of])
    tenant, route, klass = codes
    for pool in np.unique(pools).tolist():
        mine = np.flatnonzero(pools == pool)
        part = Ticks(tick[mine], tenant[mine], route[mine], klass[mine], sums[mine])
        yield names.texts(POOL.name).get(pool, RESERVED[OTHER]), Ticks.merge([part])


def write(db: sqlite3.Connection, pool: str, ticks: Ticks, texts: Texts) -> None:
    """Keep ticks of a pool that are over; those that are there already stay as they are.

    Raises:
        DamagedError: what is there already is not what was written.
        sqlite3.Error: they could not be written.
    """
    for number in np.unique(ticks.tick // SIZE).tolist():
        part = ticks.between(number * SIZE, (number + 1) * SIZE)
        found = db.execute("SELECT parts, data FROM tick WHERE pool = ? AND at = ?", (pool, number * SPAN)).fetchone()
        had, data = found or (0, None)
        part = part.take(np.flatnonzero(had >> part.tick % SIZE & 1 == 0))
        if not len(part):
            continue
        had |= int(np.bitwise_or.reduce(np.left_shift(1, np.unique(part.tick % SIZE))))
        if data is not None:
            part = Ticks.merge([_unpack(number, data, texts), part])
        db.execute("INSERT OR REPLACE INTO tick VALUES (?, ?, ?, ?)", (pool, number * SPAN, had, _pack(part, texts)))


def read(db: sqlite3.Connection, pool: str, first: int, last: int, texts: Texts) -> Ticks:
    """The ticks of a pool with first ≤ tick < last, names as codes of ``texts``.

    Raises:
        DamagedError: a bundle is not what was written.
        sqlite3.Error: they cannot be read now.
    """
    rows = db.execute(
        "SELECT at, data FROM tick WHERE pool = ? AND at > ? AND at < ? ORDER BY at",
        (pool, first * TICK_S - SPAN, last * TICK_S),
    )
    return Ticks.join([_unpack(at // SPAN, data, texts) for at, data in rows]).between(first, last)


def _pack(ticks: Ticks, texts: Texts) -> bytes:
    columns = [ticks.tick % SIZE]
    said: list[list[str]] = []
    for axis, column in zip(AXES, (ticks.tenant, ticks.route, ticks.klass), strict=True):
        given, of = np.unique(column, return_inverse=True)
        said.append([texts.texts[axis][code] for code in given.tolist()])
        columns.append(of)
    values = np.rint(ticks.sums * FINENESS) / FINENESS
    return codec.pack([list(SUMS), said, np.stack(columns, axis=1).astype(np.int64), values])


def _unpack(number: int, data: object, texts: Texts) -> Ticks:
    told, said, codes, kept = codec.unpack(data)
    values = np.zeros((len(kept), len(SUMS)))
    for place, column in enumerate(told):
        if column in COLUMN:
            values[:, COLUMN[column]] = kept[:, place]
    named = [
        texts.codes(axis, listed)[codes[:, i + 1]] for i, (axis, listed) in enumerate(zip(AXES, said, strict=True))
    ]
    return Ticks(codes[:, 0] + number * SIZE, named[0], named[1], named[2], values)
