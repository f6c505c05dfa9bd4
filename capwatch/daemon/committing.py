"""Committing: makes packages durable, and only then lets them be shown.

A commit that fails leaves what is shown as it is; its package is tried again, with growing pauses, and reading goes on.
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from capwatch.daemon.package import Ledger, Package
from capwatch.daemon.shown import Shown
from capwatch.errors import StateError
from capwatch.keep.codec import DamagedError
from capwatch.keep.database import trouble
from capwatch.keep.history import History
from capwatch.keep.state import State
from capwatch.ledger import Closed, Names, Totals
from capwatch.load.tables import SECONDS
from capwatch.meters.drift import TICKS
from capwatch.meters.watches import found_in
from capwatch.minutes.table import MINUTES
from capwatch.minutes.told import line

CHECKPOINT_S: Final = 60.0
"""Between checkpoints (contract, section 7)."""
CHECKPOINT_BYTES: Final = 16 << 20
"""Of deltas, after which a checkpoint comes earlier: what a start has to read stays small."""
UNFOLDED: Final = 30
"""So many deltas at the start, and its first commit brings a checkpoint: a daemon that dies young, again and again,
must not leave ever more of them."""
WORTH: Final = 60
"""Closed slots of seconds that go to the history together; slots of five minutes go at once."""
SCRAPE_S: Final = 2.0
"""A checkpoint waits so long for the scrape that is under way: longer than a page of 200,000 series takes."""
PAUSES_S: Final = (0.1, 0.5, 1.0, 2.0)
"""Between tries of a commit that failed; the last one goes on."""

_log = logging.getLogger(__name__)


class Committing:
    """The thread that writes. It has at most one package; while it has, reading gathers the next."""

    def __init__(
        self,
        state: State,
        history: History,
        ledger: Ledger,
        shown: Shown,
        renew: Callable[[DamagedError], History],
    ) -> None:
        """Write to ``state`` and ``history``; ``renew`` puts a new history in the place of one that is damaged."""
        self._state = state
        self._folder = os.path.dirname(state.path)
        self._history = history
        self._ledger = ledger
        self._shown = shown
        self._renew = renew
        self._number = state.number
        self._bytes = 0
        self._checked = time.monotonic() if state.unfolded < UNFOLDED else -math.inf
        self._package: Package | None = None
        self._noted = False
        """Whether the history has all events up to the last commit: a crash may come between the two."""
        self._wanted = threading.Condition()
        self._jobs: deque[tuple[Callable[[History], None], Future[None]]] = deque()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="committing", daemon=True)
        self.failed: BaseException | None = None
        """What ended the thread, if it was no request to stop."""

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether a package would be written at once."""
        return self._package is None

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the next package should bring all that the pipeline remembers."""
        return time.monotonic() - self._checked >= CHECKPOINT_S or self._bytes >= CHECKPOINT_BYTES

    def hand_over(self, package: Package) -> None:
        """Give a package to be made durable; only when `idle`."""
        with self._wanted:
            self._package = package
            self._wanted.notify()

    def later(self, job: Callable[[History], None]) -> Future[None]:
        """Have something written to the history by the thread that writes it; done when that is durable."""
        future: Future[None] = Future()
        with self._wanted:
            self._jobs.append((job, future))
            self._wanted.notify()
        return future

    def stop(self, patience: float) -> bool:
        """Write what there is and end; whether everything became durable in ``patience`` seconds."""
        with self._wanted:
            self._stopping = True
            self._wanted.notify()
        self._thread.join(patience)
        if self._thread.is_alive():
            return False
        self._history.close()
        return self._package is None

    def _run(self) -> None:
        try:
            while True:
                with self._wanted:
                    self._wanted.wait_for(lambda: self._package is not None or self._stopping or self._jobs)
                    package = self._package
                self._do_jobs()
                if package is None:
                    if self._stopping:
                        return
                    continue
                if not self._commit(package):
                    return
                with self._wanted:
                    self._package = None
        except Exception as error:  # noqa: BLE001 - it ends the daemon, whatever it is
            _log.exception("committing has failed")
            self.failed = error

    def _do_jobs(self) -> None:
        while self._jobs:
            job, future = self._jobs.popleft()
            try:
                job(self._history)
            except DamagedError as error:
                self._begin_history(error)
                future.set_exception(StateError("the history was damaged; try again"))
            except Exception as error:  # noqa: BLE001 - it is told to whoever asked; what was read goes on
                _log.warning("the history did not take something: %s", type(error).__name__)
                future.set_exception(error)
            else:
                future.set_result(None)

    def _commit(self, package: Package) -> bool:
        """Make a package durable, however often it takes; False when told to stop before it worked."""
        tries = 0
        value = self._ledger.changes(package)
        while True:
            begun = time.monotonic()
            try:
                # Before the position that says they have been read; to note them twice changes nothing.
                for note in package.notes:
                    self._history.annotate(*note)
                self._bytes += self._state.append(self._number + 1, value)
                break
            except DamagedError as error:
                self._begin_history(error)
                continue
            except sqlite3.Error as error:
                self._shown.live.commit_errors += 1
                _log.error("commit failed, tried again: %s", trouble(self._folder, error))
            if self._stopping:
                return False
            with self._wanted:
                self._wanted.wait_for(lambda: self._stopping, PAUSES_S[min(tries, len(PAUSES_S) - 1)])
            tries += 1
        self._number += 1
        self._ledger.take(package)
        self._shown.publish(package.delta)
        self._shown.live.drifts = package.drifts
        for done in package.done:
            done.set_result(None)
        for event in package.events:
            _log.warning("pool %s: %s", event["pool"], event["sentence"])
        for found in self._shown.look(_found) or ():
            _log.warning("pool %s: %s", found["pool"], found["sentence"])
        live = self._shown.live
        live.ready = live.ready or package.caught_up
        live.commit_at, live.commit_s = time.time(), time.monotonic() - begun
        self._keep(package)
        return True

    def _keep(self, package: Package) -> None:
        """Pass closed slots to the history, and fold the deltas now and then; a failure costs a later try."""
        try:
            # As a rule nothing here waits for a scrape. Once in a while it does, or many scrapes would never let it.
            self._keep_history(0.0 if package.pipeline is None else SCRAPE_S)
            if package.events or not self._noted:
                self._noted = False
                self._history.note_events(package.drifts.events)
                self._noted = True
            if package.pipeline is not None:
                self._checkpoint(package.pipeline)
        except DamagedError as error:
            self._begin_history(error)
        except sqlite3.Error as error:
            self._shown.live.commit_errors += 1
            self._checked = time.monotonic()
            _log.error("history or checkpoint failed, tried again later: %s", trouble(self._folder, error))

    def _begin_history(self, error: DamagedError) -> None:
        """Go on with a new history; what it was to be given comes again."""
        self._history.close()
        self._history = self._renew(error)

    def _keep_history(self, patience: float) -> None:
        found = self._shown.look(_closed, patience)
        if found is None:
            return
        closed, names, clock = found
        self._history.keep(closed, names, clock)
        self._shown.look(lambda totals: totals.kept(len(closed)))

    def _checkpoint(self, pipeline: Mapping[str, object]) -> None:
        found = self._shown.look(lambda totals: totals.save(), SCRAPE_S)
        if found is None:
            return
        chunks = {f"totals/{name}": part for name, part in found.items()}
        chunks |= {f"pipeline/{name}": part for name, part in pipeline.items()}
        self._state.checkpoint(self._number, chunks | self._ledger.save())
        self._checked, self._bytes = time.monotonic(), 0


def _found(totals: Totals) -> list[dict[str, Any]]:
    """What the watchers have found, or found to be over, since the last look."""
    findings = found_in(totals)
    return [line(one, findings, totals.names) for one in findings.fresh()]


def _closed(totals: Totals) -> tuple[list[Closed], Names, float] | None:
    """Closed slots that are worth a transaction of the history; None where there are few."""
    if len(totals.closed) < WORTH and all(
        one.table in (SECONDS.name, TICKS.name, MINUTES.name) for one in totals.closed
    ):
        return None
    return list(totals.closed), totals.closed_names(), totals.clock
