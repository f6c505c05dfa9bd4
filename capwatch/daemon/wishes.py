"""What people ask of a running daemon by its socket: to note something, or to accept a drift as the new normal."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Final

from capwatch.config.schema import DEFAULT_POOL, Config
from capwatch.daemon.committing import Committing
from capwatch.daemon.live import Live
from capwatch.dialect.notes import LATEST, LONGEST, is_note
from capwatch.errors import CapwatchError, UsageError
from capwatch.pipeline import Pipeline
from capwatch.record import Note

PATIENCE_S: Final = 4.0
"""For a wish to become durable."""


class Wishes:
    """Checks what is asked, and has it done by the thread whose it is."""

    def __init__(self, config: Config, committing: Committing, live: Live) -> None:
        self.config = config
        self._committing = committing
        self._live = live
        self._accepted: SimpleQueue[tuple[str, Future[None]]] = SimpleQueue()
        """Pools whose drift is to be accepted, and who waits for that."""
        self._noted: SimpleQueue[Note] = SimpleQueue()
        """Notes that the history has, and change points are to be told with."""

    def answer(self, request: Mapping[str, object]) -> None:
        """Do what a request says, and return when that is durable.

        Raises:
            UsageError: it cannot be done as it is asked.
            CapwatchError: it could not be done now.
        """
        pool = request.get("pool")
        known = [one.name for one in self.config.pools] or [DEFAULT_POOL]
        if pool is not None and pool not in known:
            raise UsageError(f"pool: no pool {pool!r}; one of {', '.join(known)}")
        if request.get("do") == "annotate":
            self._annotate(request.get("text"), request.get("at"), None if pool is None else str(pool))
        elif request.get("do") == "acknowledge":
            self._acknowledge(str(pool or DEFAULT_POOL))
        else:
            raise UsageError("do: only annotate and acknowledge are known")

    def _annotate(self, text: object, at: object, pool: str | None) -> None:
        if not is_note(text):
            raise UsageError(f"text: must be a text of 1 to {LONGEST} characters")
        if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at <= LATEST:
            raise UsageError(f"at: must be a time in seconds since the epoch, at most {LATEST}")
        note = Note(float(at), pool, text)
        try:
            self._committing.later(lambda history: history.annotate(*note)).result(PATIENCE_S)
        except (sqlite3.Error, TimeoutError) as error:
            raise CapwatchError(f"not noted: {error or 'the disk does not answer'}") from None
        self._noted.put(note)

    def _acknowledge(self, pool: str) -> None:
        if not any(one["pool"] == pool for one in self._live.drifts.active):
            raise UsageError(f"pool: no drift is active in {pool}")
        done: Future[None] = Future()
        self._accepted.put((pool, done))
        try:
            done.result(PATIENCE_S)
        except TimeoutError:
            raise CapwatchError("not acknowledged in time: the disk does not answer, or reading is busy") from None

    def waiting(self) -> bool:
        """Whether a drift is to be accepted, or told with a note."""
        return not (self._accepted.empty() and self._noted.empty())

    def grant(self, pipeline: Pipeline) -> list[Future[None]]:
        """Do what is wished, by the thread that reads; who waits until that is durable."""
        done = []
        while not self._noted.empty():
            pipeline.drifts.marks.recall([self._noted.get()])
        while not self._accepted.empty():
            pool, waits = self._accepted.get()
            pipeline.drifts.accept(pool)
            done.append(waits)
        return done
