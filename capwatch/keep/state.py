"""The hot state: one SQLite file that gets one delta a commit, and now and then a checkpoint that folds the deltas.

Promises: what `append` returned from is on disk (WAL, synchronous=FULL); deltas and checkpoint chunks carry their own
checksums, since SQLite has none for its pages; a state of a newer version is refused; a damaged one is moved aside,
never silently thrown away.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from xxhash import xxh3_64_intdigest

from capwatch.errors import StateError
from capwatch.keep.codec import Damaged, pack, unpack

VERSION: Final = 1
"""Of the layout of the state. A change of it needs a migration from every older one."""
BUSY_MS: Final = 2000
"""Nobody else writes the state; a reader such as a backup may hold it for a moment."""

_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE chunk (name TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE delta (number INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""


class Lock:
    """The right to a state directory: held by one process, given up by the kernel when that ends, however it ends."""

    def __init__(self, folder: str) -> None:
        """Make the directory if need be, and lock it.

        Raises:
            StateError: another daemon has it, or it cannot be used.
        """
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._file = os.open(os.path.join(folder, "capwatch.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{folder}: {error.strerror}; name another with --state-dir") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise StateError(f"{folder}: held by another capwatch; stop that one or name another --state-dir") from None

    def release(self) -> None:
        """Give it up."""
        os.close(self._file)


class State:
    """The open state of one directory. One thread uses it at a time."""

    def __init__(self, folder: str) -> None:
        """Open or create the state.

        Raises:
            Damaged: it is not a state that this program wrote; see `set_aside`.
            StateError: its version is newer.
            sqlite3.Error: it cannot be opened now, as on a full disk.
        """
        self.path = os.path.join(folder, "capwatch.db")
        self._sums: dict[str, int] = {}
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise Damaged(str(error)) from None

    def _open(self) -> None:
        fresh = (
            not os.path.exists(self.path) or (os.path.getsize(self.path) == 0 and not os.path.exists(f"{self.path}-wal"))
        )
        if not fresh and os.path.getsize(self.path) == 0:
            raise Damaged("the file is empty")
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._db.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        # WAL appends a commit in one place; FULL syncs it, for NORMAL could take back on power loss what was shown.
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            self.close()
            raise StateError(
                f"{self.path}: written by a newer capwatch (state version {version}, this one knows {VERSION}); "
                "upgrade, or begin anew with --state.reset"
            )
        if fresh:
            self._db.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version={VERSION};COMMIT;")
        elif version != VERSION or self._db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise Damaged("not a state of capwatch, or its pages are damaged")

    def append(self, number: int, value: object) -> int:
        """Make a delta durable; its size in bytes.

        Raises:
            sqlite3.Error: it could not be written, and nothing of it has been.
        """
        data = pack(value)
        self._db.execute("INSERT INTO delta VALUES (?, ?)", (number, data))
        return len(data)

    def checkpoint(self, number: int, chunks: Mapping[str, object]) -> int:
        """Fold the deltas up to ``number`` into chunks by name; only changed ones are written. Bytes written.

        Raises:
            sqlite3.Error: it could not be written, and the deltas are still there.
        """
        packed = {name: pack(value) for name, value in chunks.items()}
        sums = {name: xxh3_64_intdigest(data) for name, data in packed.items()}
        changed = [(name, data) for name, data in packed.items() if self._sums.get(name) != sums[name]]
        gone = [(name,) for name in self._sums.keys() - sums.keys()]
        with closing(self._db.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                cursor.executemany("INSERT OR REPLACE INTO chunk VALUES (?, ?)", changed)
                cursor.executemany("DELETE FROM chunk WHERE name = ?", gone)
                cursor.execute("DELETE FROM delta WHERE number <= ?", (number,))
                cursor.execute("INSERT OR REPLACE INTO meta VALUES ('number', ?)", (number,))
                cursor.execute("COMMIT")
            except sqlite3.Error:
                if self._db.in_transaction:
                    cursor.execute("ROLLBACK")
                raise
        self._sums = sums
        return sum(len(data) for _, data in changed)

    def chunks(self) -> dict[str, Any]:
        """The last checkpoint; empty where there is none.

        Raises:
            Damaged: a chunk is not what was written.
        """
        found = dict(self._rows("SELECT name, data FROM chunk"))
        self._sums = {name: xxh3_64_intdigest(data) for name, data in found.items()}
        return {name: unpack(data) for name, data in found.items()}

    def deltas(self) -> Iterator[tuple[int, Any]]:
        """Number and value of every delta since the checkpoint, in order.

        Raises:
            Damaged: one is not what was written, or one is missing.
        """
        expected = self._db.execute("SELECT value FROM meta WHERE key = 'number'").fetchone()
        last = expected[0] if expected else 0
        for number, data in self._rows("SELECT number, data FROM delta ORDER BY number"):
            if number != last + 1:
                raise Damaged(f"delta {last + 1} is missing")
            last = number
            yield number, unpack(data)
        self.number = last

    def _rows(self, query: str) -> Iterator[Any]:
        try:
            yield from self._db.execute(query)
        except sqlite3.DatabaseError as error:
            raise Damaged(str(error)) from None

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._db.close()

    number = 0
    """Of the last delta, once `deltas` has been read to its end."""


def set_aside(folder: str, reason: str, now: float) -> list[str]:
    """Move a state that cannot be used out of the way, under names that say why and when; the new names.

    Raises:
        OSError: it cannot be moved.
    """
    moved = []
    for suffix in ("", "-wal", "-shm"):
        path = os.path.join(folder, f"capwatch.db{suffix}")
        if os.path.exists(path):
            target = os.path.join(folder, f"capwatch.db.{reason}-{now:.0f}{suffix}")
            os.replace(path, target)
            moved.append(target)
    return moved
