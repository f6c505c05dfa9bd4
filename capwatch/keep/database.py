"""One SQLite file of ours: made whole or not at all, checked when it is opened, moved aside when it is damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from capwatch.errors import StateError
from capwatch.keep.codec import DamagedError
from capwatch.keep.durable import sync_folder

APPLICATION: Final = 0x43415057
"""`CAPW`: tells a file of ours from any other SQLite file."""
BUSY_MS: Final = 2000
"""One process writes; a reader such as a backup may hold the file for a moment."""
LOG_SHARE: Final = 16
"""On a small disk the log is shorter: this part of what is free."""
LOG_LEAST: Final = 16
"""Pages: shorter, and every commit would copy."""

_PAGE: Final = 4096
_HEADER: Final = b"SQLite format 3\0" + bytes([_PAGE >> 8, _PAGE & 255, 2, 2, 0, 64, 32, 32])
"""How a file in WAL mode begins: magic, page size, write and read version 2, nothing reserved, payload shares."""
_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_AUTH,
    }
)
"""Errors that come from around the file, not from what is in it."""


FULL_BYTES: Final = 512 << 10
"""Free bytes below which a failure to write is the full disk's, whatever SQLite calls it: a log's index wants more."""


def trouble(folder: str, error: OSError | sqlite3.Error) -> str:
    """What keeps files in ``folder`` from being used, in a few words; for a full disk SQLite says `disk I/O error`."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return _said(error)
    free = disk.f_bavail * disk.f_frsize
    if isinstance(error, OSError) or free >= FULL_BYTES:
        return _said(error)
    return f"the disk is full ({free >> 10} KiB free)"


def _said(error: OSError | sqlite3.Error) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


@contextmanager
def judged() -> Iterator[None]:
    """Tell damage from trouble: what is in the file is to blame, unless SQLite blames what is around it.

    Raises:
        DamagedError: the content is not what was written.
        sqlite3.Error: the file cannot be used now, as on a full disk.
    """
    try:
        yield
    except UnicodeDecodeError:  # of SQLite's own message, which quotes what it found
        raise DamagedError("its schema is not what was written") from None
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _PASSING:
            raise
        raise DamagedError(str(error)) from None


def opened(
    path: str, schema: str, version: int, *, oldest: int | None = None, log_pages: int, shrinks: bool = False
) -> sqlite3.Connection:
    """The file at ``path``, made if need be; its layout is that of ``version``, or an older one down to ``oldest``.

    The log is copied into the file when it has ``log_pages`` pages of 4 KiB, earlier on a small disk.
    ``shrinks`` makes a file that can give pages back (`PRAGMA incremental_vacuum`), for a little more to write.

    Raises:
        DamagedError: it is not a file that this program wrote; see `set_aside`.
        StateError: its version is newer, or it cannot be made.
        sqlite3.Error: it cannot be used now.
    """
    if not os.path.exists(path):
        if os.path.exists(f"{path}-wal"):
            raise DamagedError("the file is gone, and its log is there")
        try:
            _make(path, schema, version, shrinks=shrinks)
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}; name another directory with --state-dir") from None
    connection = sqlite3.connect(_checked(path), isolation_level=None, check_same_thread=False)
    try:
        with judged():
            _prepare(connection, path, log_pages)
            known(connection, path, version, oldest)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str, log_pages: int) -> None:
    """Settings for writing."""
    disk = os.statvfs(os.path.dirname(path) or ".")
    pages = min(max(disk.f_bavail * disk.f_frsize // _PAGE // LOG_SHARE, LOG_LEAST), log_pages)
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    connection.execute(f"PRAGMA wal_autocheckpoint={pages}")
    connection.execute(f"PRAGMA journal_size_limit={pages * _PAGE}")
    # Pages given free are not overwritten with zeros, as some builds do: it would double what is written.
    connection.execute("PRAGMA secure_delete=OFF")
    # FULL syncs the log at each commit; NORMAL could take back on power loss what was shown.
    connection.execute("PRAGMA synchronous=FULL")


def reading(path: str, version: int) -> sqlite3.Connection:
    """The file at ``path`` for reading beside the process that writes it.

    Raises:
        DamagedError: it is not a file that this program wrote.
        StateError: it is not there, or its version is newer.
        sqlite3.Error: it cannot be used now.
    """
    if not os.path.exists(path):
        raise StateError(f"{path}: there is nothing; name the directory of a daemon with --state-dir")
    connection = sqlite3.connect(f"file:{_quoted(_checked(path))}?mode=ro", uri=True, isolation_level=None)
    try:
        with judged():
            connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
            known(connection, path, version)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written inside, or nothing of it.

    Raises:
        sqlite3.Error: it could not be written.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back on some errors
            connection.execute("ROLLBACK")
        raise


def _make(path: str, schema: str, version: int, *, shrinks: bool) -> None:
    """Make the file beside its place, and move it there when it is whole."""
    new = f"{path}.new"
    for left in (new, f"{new}-wal", f"{new}-shm", f"{new}-journal"):
        if os.path.exists(left):
            os.remove(left)
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        connection.executescript(
            f"""
            PRAGMA page_size={_PAGE}; PRAGMA auto_vacuum={2 if shrinks else 0};
            PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
            BEGIN; CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID; {schema}
            PRAGMA application_id={APPLICATION}; PRAGMA user_version={version}; COMMIT;
            """
        )
        connection.execute("INSERT INTO meta VALUES ('version', ?)", (version,))
    finally:
        connection.close()
    os.replace(new, path)
    sync_folder(path)


def _checked(path: str) -> str:
    """The path, if the file begins as one of ours does."""
    with open(path, "rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise DamagedError("not a state of capwatch")
    return path


def known(connection: sqlite3.Connection, path: str, version: int, oldest: int | None = None) -> int:
    """The version of the file, if it is one of ours that can be read. It is there twice, so that no flipped bit is one.

    Raises:
        DamagedError: it is no file of ours.
        StateError: its version is newer.
    """
    if _pragma(connection, "application_id") != APPLICATION:
        raise DamagedError("not a state of capwatch")
    found = _pragma(connection, "user_version")
    if connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() != (found,):
        raise DamagedError("its version is not what was written")
    if found > version:
        raise StateError(
            f"{path}: written by a newer capwatch (version {found} of the layout, this one knows {version}); "
            "upgrade capwatch, or begin anew with --state.reset"
        )
    if not (version if oldest is None else oldest) <= found <= version:
        raise DamagedError(f"there never was a version {found} of the layout")
    return found


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _quoted(path: str) -> str:
    """A path in a URI."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def set_aside(folder: str, reason: str, now: float, name: str = "capwatch.db") -> list[str]:
    """Move a file that cannot be used out of the way, under names that say why and when (s, epoch); the new names.

    Nothing set aside before is overwritten: a name that is taken gets the next second.

    Raises:
        OSError: it cannot be moved.
    """
    parts = [suffix for suffix in ("", "-wal", "-shm") if os.path.exists(os.path.join(folder, f"{name}{suffix}"))]
    second = int(now)
    while any(os.path.exists(os.path.join(folder, f"{name}.{reason}-{second}{suffix}")) for suffix in ("", *parts)):
        second += 1
    moved = []
    for suffix in parts:
        target = os.path.join(folder, f"{name}.{reason}-{second}{suffix}")
        os.replace(os.path.join(folder, f"{name}{suffix}"), target)
        moved.append(target)
    return moved
