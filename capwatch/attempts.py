"""Attempts: which rows try again what an earlier row of the same group failed at, and how many retries that makes.

The rule: a row whose `attempt_group` failed within the last 300 s of event time, in the same source, is a retry.
Every attempt stays a row of its own, with its outcome and its work; retries are counted apart, each once, though a log
may tell of it twice, by the row of the failed attempt and by a number on the last one. An attempt that did not fail
ends its group: a trace may go on with other requests. Plain values: `save` and `load`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch.dedupe import digest
from capwatch.record import MISSING, OUTCOMES, Batch, Bools, Floats, Ints

AGAIN_S: Final = 300.0
"""A retry comes so soon after the failure, in event time: clients back off for seconds, and gateways try at once."""
MOST: Final = 20_000
"""Failed groups remembered at most, the oldest go first: a minute of an outage at 333 failures/s (2 MB)."""
FAILED: Final = frozenset(
    OUTCOMES.index(one)
    for one in ("timeout", "overload", "rate_limited", "upstream_error", "gateway_error", "client_abort")
)
"""Outcomes after which somebody tries again."""

Failure = tuple[float, float, float]
"""Event clock (s, epoch) of the last failure; attempts before that one; retries counted so far."""


class Attempts:
    """Groups whose last attempt failed, by a hash of source and group, in the order of that failure."""

    def __init__(self) -> None:
        self._failed: dict[int, Failure] = {}
        self._news: dict[int, Failure | None] = {}

    def retries(self, source: str, batch: Batch, rows: Ints, clocks: Floats) -> tuple[Floats, Bools]:
        """(retries to count for each row of the batch, NaN where nothing is known; whether it tries again itself).

        ``rows`` are those that count; ``clocks`` has the event clock (s, epoch) that each row of the batch meets.
        """
        told = batch["retries"]
        failed = np.isin(batch.outcome[rows], list(FAILED))
        if not self._failed and not failed.any():
            return told, np.zeros(len(batch), np.bool_)
        found, again = told.copy(), np.zeros(len(batch), np.bool_)
        for row, fails in zip(rows.tolist(), failed.tolist(), strict=True):
            group = batch.attempt_group[row]
            if group is None or group in MISSING:
                continue
            key = digest(f"{source}\n{group}")
            before = self._failed.pop(key, None)
            clock, alone = float(clocks[row]), float(np.nan_to_num(told[row]))
            if before is not None and clock - before[0] <= AGAIN_S:
                tries = before[1] + 1
                counted = max(before[2], tries, alone)
                found[row], again[row] = counted - before[2], True
            else:
                tries, counted = 0.0, alone
            if fails:
                self._put(key, (clock, tries, counted))
            elif before is not None:
                self._news[key] = None
        return found, again

    def _put(self, key: int, failure: Failure) -> None:
        self._failed.pop(key, None)  # the last failure is the newest
        self._failed[key] = self._news[key] = failure
        if len(self._failed) > MOST:
            del self._failed[next(iter(self._failed))]

    def expire(self, clock: float) -> None:
        """Forget what failed too long before this event time (s, epoch)."""
        while self._failed and next(iter(self._failed.values()))[0] < clock - AGAIN_S:
            del self._failed[next(iter(self._failed))]

    def news(self) -> list[object]:
        """Failures, and groups that have ended, since the last call, as plain builtins."""
        news, self._news = self._news, {}
        return [[key, failure] for key, failure in news.items()]

    def absorb(self, news: Iterable[tuple[int, Failure | None]]) -> None:
        """Remember what `news` gave elsewhere."""
        for key, failure in news:
            if failure is None:
                self._failed.pop(key, None)
            else:
                self._put(key, (failure[0], failure[1], failure[2]))
        self._news = {}

    def save(self) -> list[object]:
        """Everything, as plain builtins."""
        return [[key, failure] for key, failure in self._failed.items()]

    def load(self, saved: Iterable[tuple[int, Failure]]) -> None:
        """Take over what `save` gave."""
        self._failed = {key: (failure[0], failure[1], failure[2]) for key, failure in saved}
