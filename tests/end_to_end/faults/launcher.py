"""Starts the daemon for a test that wants it dead at a certain point of a commit; the product itself has no such place.

The file of `TRIGGER` says where: `append before`, `append within` (written, but not yet committed), `append after`
(durable, but not yet shown), and the same of `checkpoint` and of `keep`, which is the history's and comes in nearly
every commit here. The process then kills itself as `kill -9` does.
As long as it says `full`, every commit fails as it does on a full disk.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capwatch.cli import main
from capwatch.daemon import committing
from capwatch.keep import database, history, state

TRIGGER = "CAPWATCH_TEST_TRIGGER"
FULL = "full"
CHECKPOINT_S = "CAPWATCH_TEST_CHECKPOINT_S"

WORKS = ((state.State, "append"), (state.State, "checkpoint"), (history.History, "keep"))
POINTS = tuple(f"{work} {moment}" for _, work in WORKS for moment in ("before", "within", "after"))
"""Every step of commit, checkpoint and outbox."""

_doing = ""


def _die(moment: str) -> None:
    trigger = Path(os.environ[TRIGGER])
    said = trigger.read_text() if trigger.exists() else ""
    if said == f"{_doing} {moment}":
        trigger.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if said == FULL and moment == "before":
        raise sqlite3.OperationalError("database or disk is full")


def _wrapped(owner: type, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def call(*arguments: Any) -> Any:
        global _doing  # noqa: PLW0603 - one committing thread
        _doing = name
        _die("before")
        found = real(*arguments)
        _die("after")
        return found

    setattr(owner, name, call)


def _wrap_transaction() -> None:
    real = database.transaction

    @contextmanager
    def transaction(connection: Any) -> Iterator[None]:
        with real(connection):
            yield
            _die("within")

    state.transaction = transaction  # type: ignore[attr-defined]
    history.transaction = transaction  # type: ignore[attr-defined]


if __name__ == "__main__":
    for owner, name in WORKS:
        _wrapped(owner, name)
    _wrap_transaction()
    committing.WORTH = 1  # type: ignore[misc]
    committing.CHECKPOINT_S = float(os.environ[CHECKPOINT_S])  # type: ignore[misc]
    sys.exit(main(sys.argv[1:]))
