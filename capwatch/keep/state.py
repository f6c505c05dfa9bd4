"""The hot state: one SQLite file that gets one delta a commit, and now and then a checkpoint that folds the deltas.

Promises: what `append` returned from is on disk (WAL, synchronous=FULL); deltas, chunks and the list of the chunks
carry checksums, since SQLite has none for its pages; a state of a newer version is refused; a damaged one is moved
aside, never silently thrown away. One exception: damage in the write-ahead log that a crash has left cannot be told
from its torn end, so it ends the log there, and the state is that of an earlier commit, whole.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from xxhash import xxh3_64, xxh3_64_intdigest

from capwatch.errors import StateError
from capwatch.keep.codec import DamagedError, pack, unpack
from capwatch.keep.database import judged, known, opened, set_aside, transaction

__all__ = ["VERSION", "DamagedError", "Lock", "State", "set_aside"]

VERSION: Final = 2
"""Of the layout of the state. A change of it needs a migration from every older one: see `capwatch.daemon.upgrade`.
1: without a word on how keys are packed. 2: with the layout among its chunks."""
OLDEST: Final = 1
"""The oldest version that can be read."""
LOG_PAGES: Final = 8192
"""32 MiB: most deltas are folded, and their pages used again, before the log is copied into the file, so that they are
written about once instead of twice."""

_SCHEMA: Final = """
CREATE TABLE chunk (name TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE delta (number INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""
_SEAL: Final = struct.Struct("<qQ")


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
        except OSError as error:
            os.close(self._file)
            why = "held by another capwatch; stop that one or" if isinstance(error, BlockingIOError) else error.strerror
            raise StateError(f"{folder}: {why} name another with --state-dir") from None

    def release(self) -> None:
        """Give it up."""
        os.close(self._file)


class State:
    """The open state of one directory. One thread uses it at a time."""

    def __init__(self, folder: str) -> None:
        """Open or create the state.

        Raises:
            DamagedError: it is not a state that this program wrote; see `set_aside`.
            StateError: its version is newer, or it cannot be made.
            sqlite3.Error: it cannot be opened now, as on a full disk.
        """
        self.path = os.path.join(folder, "capwatch.db")
        self.number = 0
        """Of the last delta, once `deltas` has been read to its end."""
        self.unfolded = 0
        """How many deltas there were then."""
        self._sums: dict[str, int] = {}
        self._db = opened(self.path, _SCHEMA, VERSION, oldest=OLDEST, log_pages=LOG_PAGES)
        try:
            self.version = known(self._db, self.path, VERSION, OLDEST)
            """Of what the file holds; after the next checkpoint it is the present one."""
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        with judged():
            found = self._db.execute("PRAGMA integrity_check(1)").fetchone()
        if found != ("ok",):
            raise DamagedError("its pages are not what was written")

    def append(self, number: int, value: object) -> int:
        """Make a delta durable; its size in bytes. The same number again takes the place of what it was.

        Raises:
            sqlite3.Error: it could not be written, and nothing of it has been; or, where the disk failed in the moment
                of the commit, all of it: then, too, the same again puts it right.
        """
        data = pack(value)
        with transaction(self._db):
            self._db.execute("INSERT OR REPLACE INTO delta VALUES (?, ?)", (number, data))
        return len(data)

    def checkpoint(self, number: int, chunks: Mapping[str, object]) -> int:
        """Fold the deltas up to ``number`` into chunks by name; only changed ones are written. Bytes written.

        A state of an older version is one of the present version from then on.

        Raises:
            sqlite3.Error: it could not be written, and the deltas are still there.
        """
        packed = {name: pack(value) for name, value in chunks.items()}
        sums = {name: xxh3_64_intdigest(data) for name, data in packed.items()}
        changed = [(name, data) for name, data in packed.items() if self._sums.get(name) != sums[name]]
        gone = [(name,) for name in {name for (name,) in self._db.execute("SELECT name FROM chunk")} - sums.keys()]
        meta = [("number", number), ("seal", _seal(number, sums))]
        with transaction(self._db):
            self._db.executemany("INSERT OR REPLACE INTO chunk VALUES (?, ?)", changed)
            self._db.executemany("DELETE FROM chunk WHERE name = ?", gone)
            self._db.execute("DELETE FROM delta WHERE number <= ?", (number,))
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta)
            if self.version != VERSION:
                self._db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (VERSION,))
                self._db.execute(f"PRAGMA user_version={VERSION}")
        self._sums, self.version = sums, VERSION
        return sum(len(data) for _, data in changed)

    def chunks(self) -> dict[str, Any]:
        """The last checkpoint; empty where there is none.

        Raises:
            DamagedError: a chunk is missing or is not what was written.
        """
        found = dict(self._rows("SELECT name, data FROM chunk"))
        values = {name: unpack(data) for name, data in found.items()}
        sums = {name: xxh3_64_intdigest(data) for name, data in found.items()}
        meta = dict(self._rows("SELECT key, value FROM meta"))
        if (found or meta.keys() != {"version"}) and meta.get("seal") != _seal(meta.get("number"), sums):
            raise DamagedError("the chunks are not those of the last checkpoint")
        self._sums = sums
        return values

    def deltas(self) -> Iterator[tuple[int, Any]]:
        """Number and value of every delta since the checkpoint, in order.

        Raises:
            DamagedError: one is not what was written, or one is missing.
        """
        self.unfolded = 0
        last = dict(self._rows("SELECT key, value FROM meta")).get("number", 0)
        for number, data in self._rows("SELECT number, data FROM delta ORDER BY number"):
            if number != last + 1:
                raise DamagedError(f"delta {last + 1} is missing")
            last = number
            self.unfolded += 1
            yield number, unpack(data)
        self.number = last

    def _rows(self, query: str) -> Iterator[Any]:
        with judged():
            yield from self._db.execute(query)

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._db.close()


def _seal(number: object, sums: Mapping[str, int]) -> int | None:
    """One signed number over a checkpoint's number and its chunks; None where there is no number."""
    if not isinstance(number, int):
        return None
    seal = xxh3_64()
    for name, one in sorted(sums.items()):
        seal.update(_SEAL.pack(number, one))
        seal.update(name.encode("utf-8", "surrogateescape"))
    return seal.intdigest() - (1 << 63)
