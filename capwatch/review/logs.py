"""Raw logs as a past: the history that the daemon's own pipeline makes of them, in a folder that is gone after use."""

from __future__ import annotations

import os
import signal
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager

from capwatch.console.progress import Progress
from capwatch.errors import UsageError
from capwatch.keep.database import trouble
from capwatch.keep.past import HOUR, Past
from capwatch.observed import Given
from capwatch.replay import replay, told_until
from capwatch.replay.keeping import Keeping


@contextmanager
def replayed(found: Given, now: float) -> Iterator[Past]:
    """What logs tell of before ``now`` (s, epoch).

    Raises:
        UsageError: a file cannot be read, or there is no room for the history.
    """
    progress = Progress(sum(os.path.getsize(log.path) for log in found.logs), "review")
    try:
        made = tempfile.TemporaryDirectory(prefix="capwatch-review-")
    except OSError as error:
        raise UsageError(f"no folder for the time of the review: {error.strerror}; TMPDIR names one") from None
    with made as folder, _cleaned():
        try:
            _replay(found, now, folder, progress)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"{folder}: {trouble(folder, error)}; TMPDIR names another place") from None
        with closing(Past(folder)) as past:
            yield past


@contextmanager
def _cleaned() -> Iterator[None]:
    """A stop by SIGTERM leaves no more behind than one by Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _replay(found: Given, now: float, folder: str, progress: Progress) -> None:
    config, logs = found.config, found.logs
    assert config is not None  # noqa: S101 - that is what logs come with
    until = told_until(config, logs, now)
    with closing(Keeping(config, folder, goes_on=False)) as history:
        for pipeline, totals, done in replay(config, logs, until, step=HOUR, kept=True, shown=False):
            history.keep(pipeline, totals, pipeline.drifts.fresh())
            progress.show(done)
        history.finish(pipeline, totals)
    progress.end()
