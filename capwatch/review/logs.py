"""Raw logs as a past: through the daemon's own pipeline, whose closed slots are kept in memory."""

from __future__ import annotations

import os
from typing import Final

import msgspec

from capwatch.console.progress import Progress
from capwatch.keep.past import HOUR
from capwatch.ledger import Totals
from capwatch.observed import Given
from capwatch.replay import replay, told_until
from capwatch.replay.notes import notes
from capwatch.review.calendar import IsoWeek
from capwatch.review.told import Replayed

CLOSING_S: Final = 4 * HOUR
"""Behind the last event, after which every slot of the totals has closed: ticks stay open for two hours."""


def replayed(found: Given, week: IsoWeek, now: float) -> Replayed:
    """What logs tell of a week and before ``now`` (s, epoch).

    Raises:
        UsageError: a file cannot be read.
    """
    config, logs = found.config, found.logs
    assert config is not None  # noqa: S101 - that is what logs come with
    progress = Progress(sum(os.path.getsize(log.path) for log in logs), "review")
    kept, totals = Replayed(week.since, week.until), None
    for _, totals, done in replay(config, logs, told_until(config, logs, now), step=HOUR, kept=True, shown=False):
        _keep(kept, totals)
        progress.show(done)
    if totals is not None:
        totals.advance(totals.clock + CLOSING_S)
        _keep(kept, totals)
    progress.end()
    kept.settle(notes(config), {pool.name: msgspec.to_builtins(pool) for pool in config.pools})
    return kept


def _keep(kept: Replayed, totals: Totals) -> None:
    kept.keep(totals.closed, totals.closed_names())
    totals.kept(len(totals.closed))
