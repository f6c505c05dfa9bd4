"""Coverage: how much of the engines' work the logs tell of, and how many counted requests an engine's log completed.

Beside it, for the history: what was tried again, and what was given up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.cost import GIVEN_UP
from capwatch.ledger import LASTING, POOL, Gathering, Keys, Table, Totals
from capwatch.ledger.series import Series, plain
from capwatch.record import MISSING, OUTCOMES, Batch, Bools, Floats, Ints, zeroed
from capwatch.seen import ROLLUP_S, Seen

COVER = Table(
    (POOL,),
    "cover",
    (
        *("requests", "served", "joined", "engine_records", "engine_counts"),
        *("grouped", "resent", "resent_cost", "retries", "abandoned", "abandoned_cost"),
    ),
    slot_s=ROLLUP_S,
    slots=12,
    closes=True,
)
"""By five minutes of the last hour: requests of the logs, those that engines served, those joined with an engine's
record, and what the engines themselves tell: records in their logs, growth of their counters.

grouped: requests of which it is told what tries they belong to, or how many; resent: those that only try again, and
their cost (replica-seconds); retries: those, and what a log only numbers; abandoned: requests that nobody waited for to
the end, and their cost.
"""
SERVED: Final = [OUTCOMES.index(name) for name in ("ok", "client_abort", "timeout")]
"""Requests that an engine counts as its own; refused ones never reached it, and of failed ones it may not know."""

_POOLS = Keys((POOL,))


class Coverage:
    """Contract 4.3: `coverage_ratio` and `join_ratio`."""

    tables = (COVER,)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Count requests, those that engines served, that try again, and that were given up."""
        rows = np.flatnonzero(seen.rollup_slot > LASTING)
        batch, cost = seen.batch, zeroed(seen.cost.total[rows])
        again, given_up = seen.again[rows].astype(np.float64), np.isin(batch.outcome[rows], GIVEN_UP).astype(np.float64)
        _book(
            into,
            seen.pool[rows],
            seen.event_at[rows],
            requests=np.ones(len(rows)),
            served=_served(batch)[rows].astype(np.float64),
            grouped=(_grouped(batch) | ~np.isnan(batch["retries"]))[rows].astype(np.float64),
            resent=again,
            resent_cost=again * cost,
            retries=zeroed(batch["retries"][rows]),
            abandoned=given_up,
            abandoned_cost=given_up * cost,
        )

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`. An engine may tell by counters, records or both: each may miss some."""
        pools, sums = totals.window(COVER)
        requests, served, joined, records, counts = sums.T[:5]
        yield plain(m.COVERAGE_RATIO, _POOLS, pools, _share(served, np.maximum(records, counts)))
        yield plain(m.JOIN_RATIO, _POOLS, pools, _share(joined, np.where(records > 0, requests, 0.0)))


def book_joined(into: Gathering, pools: Ints, at: Floats) -> None:
    """Book requests of ``pools[n]`` that finished at ``at[n]`` (s, epoch) and were joined with an engine's record."""
    _book(into, pools, at, joined=np.ones(len(pools)))


def book_records(into: Gathering, batch: Batch, rows: Ints, pool: Ints) -> None:
    """Book some rows of a batch of ``pool[n]`` that an engine's log tells of and that are not counted."""
    rows = rows[_served(batch)[rows]]
    _book(into, pool[rows], batch.event_at[rows], engine_records=np.ones(len(rows)))


def book_counts(into: Gathering, pool: int, at: float, requests: float) -> None:
    """Book by how much an engine's own counter of requests grew."""
    _book(into, np.array([pool]), np.array([at]), engine_counts=np.array([requests]))


def _grouped(batch: Batch) -> Bools:
    """Which requests tell what tries they belong to."""
    groups = batch.attempt_group
    if groups.count(None) == len(groups):
        return np.zeros(len(groups), np.bool_)
    return np.array([group is not None and group not in MISSING for group in groups], np.bool_)


def _served(batch: Batch) -> Bools:
    """Which requests an engine finished."""
    return np.isin(batch.outcome, SERVED) & ~batch.cache_hit


def _book(into: Gathering, pools: Ints, at: Floats, **columns: Floats) -> None:
    slots = (at // COVER.slot_s).astype(np.int64)
    into.add_slots(COVER, slots, pools, *(columns.get(name, np.zeros(len(pools))) for name in COVER.columns))


def _share(part: Floats, whole: Floats) -> Floats:
    """``part / whole``, NaN where the whole is 0."""
    return part / np.where(whole > 0, whole, np.nan)


def METER(config: Config) -> Coverage:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Coverage()
