"""What a replay leaves in a state directory: a history, from which reviews read and the drift detector learns.

Where a daemon goes on with the same logs, what had closed by their end is kept and nothing that is told in part, since
the daemon tells the rest. Where nobody goes on, all that the logs tell is kept, however old.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import msgspec

from capwatch.config.schema import Config
from capwatch.errors import StateError, UsageError
from capwatch.keep.codec import DamagedError
from capwatch.keep.database import trouble
from capwatch.keep.history import History
from capwatch.keep.secret import secret
from capwatch.keep.state import Lock
from capwatch.ledger import Closed, Totals
from capwatch.pipeline import Pipeline
from capwatch.replay.notes import notes

LONGEST_S: Final = 3 * 3600.0
"""Longer than any slot stays open: that of the detector's ticks, two hours and ten minutes."""


class Keeping:
    """The history of one state directory, while nobody else has it."""

    def __init__(self, config: Config, folder: str, *, goes_on: bool = True) -> None:
        """Take the directory.

        Raises:
            StateError: a daemon has it, or it cannot be used.
            DamagedError: what is there is no history.
            OSError, sqlite3.Error: it cannot be opened now.
        """
        self._config = config
        self._goes_on = goes_on
        self._lock = Lock(folder)
        try:
            self.secret = secret(folder)
            self._history = History(folder, config.history.max_bytes if goes_on else None)
        except BaseException:
            self._lock.release()
            raise
        self._begun = False

    def keep(self, pipeline: Pipeline, totals: Totals, events: Sequence[dict[str, Any]]) -> None:
        """Keep what has closed, and events.

        Raises:
            DamagedError: what is there already is not what was written.
            sqlite3.Error: it could not be written.
        """
        if not self._begun and totals.clock:
            self._begun = True
            pools = {one.name: msgspec.to_builtins(one) for one in self._config.pools}
            self._history.note_settings(totals.clock, pools)
            for note in notes(self._config):
                self._history.annotate(*note)
        closed: Sequence[Closed] = totals.closed
        if self._goes_on:
            closed = [one for one in closed if (one.slot + 1) * totals.tables[one.table].slot_s <= pipeline.clock]
        self._history.keep(closed, totals.closed_names(), pipeline.clock)
        self._history.note_events(events)
        totals.kept(len(totals.closed))

    def finish(self, pipeline: Pipeline, totals: Totals) -> None:
        """Keep what is over though it has not closed yet. The totals are of no use after that. Raises as `keep`."""
        totals.advance(totals.clock + LONGEST_S)
        self.keep(pipeline, totals, ())

    def close(self) -> None:
        """Give the directory back."""
        self._history.close()
        self._lock.release()


@contextmanager
def kept(config: Config, folder: str | None) -> Iterator[Keeping | None]:
    """The history of a state directory for as long as the context lasts; None where no directory is named.

    Raises:
        UsageError: it cannot be used, or a daemon has it.
    """
    if folder is None:
        yield None
        return
    try:
        with _opened(config, folder) as one:
            yield one
    except DamagedError as error:
        raise UsageError(f"--state-dir: {folder}: its history is damaged ({error}); move history.db away") from None
    except sqlite3.Error as error:
        raise UsageError(f"--state-dir: {folder}: {trouble(folder, error)}") from None


def _opened(config: Config, folder: str) -> closing[Keeping]:
    try:
        return closing(Keeping(config, folder))
    except StateError as error:
        raise UsageError(f"--state-dir: {error}") from None
    except OSError as error:
        raise UsageError(f"--state-dir: {folder}: {trouble(folder, error)}") from None
