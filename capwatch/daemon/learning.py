"""Learning: has detectors fitted on the history by a process of its own, so that neither reading nor scrapes wait.

The thread that reads says what is due and takes what was learnt, between two packages; so a model is part of the commit
and of the state. A fit that fails is logged, and the old model goes on.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from queue import SimpleQueue
from typing import Any, Final

from capwatch.drift.model import LEAST_DAYS
from capwatch.drift.ticks import DAY, HOUR
from capwatch.drifting.watch import Drifting
from capwatch.keep.codec import DamagedError, pack, unpack
from capwatch.keep.past import Past

COMMAND: Final = (sys.executable, "-m", "capwatch.daemon.fitting")
SOON_S: Final = 60.0
"""After a history that was too short: it grows by ten minutes at a time."""
LATER_S: Final = 3600.0
"""After a fit that failed."""
PATIENCE_S: Final = 1800.0
"""With one fit: it takes ten seconds of a processor for two weeks, and has the lowest priority."""

_log = logging.getLogger(__name__)


class Learning:
    """One fit at a time; none is begun that cannot succeed yet."""

    def __init__(self, folder: str) -> None:
        """Learn from the history of a state directory."""
        self._folder = folder
        self._jobs: SimpleQueue[Sequence[Mapping[str, Any]] | None] = SimpleQueue()
        self._learnt: SimpleQueue[tuple[str, Mapping[str, Any]]] = SimpleQueue()
        self._busy = False
        self._after: dict[str, float] = {}
        """By pool: when it may be tried again, monotonic."""
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="learning", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and give up what is being fitted."""
        self._stopping = True
        self._jobs.put(None)
        process = self._process
        if process is not None:
            process.kill()
        self._thread.join(1.0)

    def waiting(self) -> bool:
        """Whether something was learnt that nobody has taken."""
        return not self._learnt.empty()

    def look(self, drifts: Drifting) -> None:
        """Give the detectors what was learnt, and see what is due; by the thread that reads."""
        while not self._learnt.empty():
            pool, told = self._learnt.get()
            if drifts.learn(pool, told):
                _log.info("pool %s: the usual mix has been learnt from the history", pool)
        if self._busy:
            return
        now = time.monotonic()
        jobs = [drifts.job(pool) for pool in drifts.due() if self._after.get(pool, now) <= now]
        if jobs:
            self._busy = True
            self._jobs.put(jobs)

    def _run(self) -> None:
        while (jobs := self._jobs.get()) is not None and not self._stopping:
            for job in jobs:
                pool = job["pool"]
                try:
                    found = self._fitted(job)
                except Exception as error:  # noqa: BLE001 - whatever it is, the old model goes on
                    found, wait = None, LATER_S
                    if not self._stopping:
                        _log.warning("pool %s: nothing was learnt from the history (%s)", pool, _said(error))
                else:
                    wait = SOON_S
                if found is not None:
                    self._learnt.put((pool, found))
                self._after[pool] = time.monotonic() + wait
            self._busy = False

    def _fitted(self, job: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What a process has learnt that ends with this one's wish to stop."""
        return fitted(self._folder, job, self._begun)

    def _begun(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._stopping:
            process.kill()


def fitted(
    folder: str, job: Mapping[str, Any], begun: Callable[[subprocess.Popen[bytes]], None] = lambda _: None
) -> Mapping[str, Any] | None:
    """What a process of its own learns for a job from the history in a folder; None where that is too short.

    Args:
        folder: the state directory.
        job: see `capwatch.drifting.watch.Drifting.job`.
        begun: hears of the process.

    Raises:
        ChildProcessError: it has failed.
        subprocess.TimeoutExpired: it takes too long.
        DamagedError: the history is damaged.
        sqlite3.Error, OSError: the history cannot be read, or no process be started.
    """
    with closing(Past(folder)) as past:
        first, last = past.tick_span(job["pool"])
    if max(last, job["until"]) - first < LEAST_DAYS * DAY - HOUR or last == 0:
        return None
    order = pack({**job, "folder": folder, "parent": os.getpid()})
    with subprocess.Popen(  # noqa: S603 - a constant
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        begun(process)
        try:
            done, _ = process.communicate(order, PATIENCE_S)
        finally:
            process.kill()
    if process.returncode:
        raise ChildProcessError(f"the process that fits ended with {process.returncode}")
    told: Mapping[str, Any] | None = unpack(done)
    return told


def _said(error: Exception) -> str:
    """What went wrong, without any text of the data."""
    if isinstance(error, ChildProcessError | DamagedError):
        return str(error)
    return type(error).__name__
