"""The watchers at work: the minutes that they look at, and whether what they watch has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import Follower, Gathering, Sketch, Table, Totals
from capwatch.ledger.series import Series, spread
from capwatch.load.tables import FLOW, POOLS
from capwatch.minutes.findings import Findings
from capwatch.minutes.table import COLUMNS, MINUTE_S, MINUTES
from capwatch.record import Bools, Floats, zeroed
from capwatch.seen import Seen
from capwatch.watchers import shelf

LATE_S: Final = 60.0
"""What arrived longer before its end counts that long before it: its minute has closed."""


class Watches:
    """Metrics of section Drift, beside those of contract 4.4."""

    tables: Sequence[Table] = (MINUTES,)
    sketches: Sequence[Sketch] = ()
    followers: Sequence[Callable[[], Follower]] = (lambda: Findings(shelf()),)

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Sum the requests that finished, by minute and tenant, and those that arrived."""
        rows = np.flatnonzero(seen.timely & ~seen.batch.cache_hit)
        if not len(rows):
            return
        seen = seen.take(rows) if len(rows) < len(seen.batch) else seen
        keys = MINUTES.pack(seen.pool, seen.groups.tenant[seen.groups.of])
        columns = _columns(seen)
        nothing = np.zeros(len(rows))
        at = (seen.event_at // MINUTE_S).astype(np.int64)
        into.add_slots(MINUTES, at, keys, *(np.asarray(columns.get(name, nothing), np.float64) for name in COLUMNS))
        came = {"came": np.ones(len(rows)), "came_cost": seen.cost.total}
        at = (np.maximum(seen.arrived_at, seen.event_at - LATE_S) // MINUTE_S).astype(np.int64)
        into.add_slots(MINUTES, at, keys, *(came.get(name, nothing) for name in COLUMNS))

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        findings = found_in(totals)
        pools, _ = totals.rows(FLOW)
        active, change = np.zeros((2, len(pools), len(m.WATCHES)))
        change[:] = np.nan
        for row, pool in enumerate(pools.tolist()):
            watches = {one.watch for one in findings.active(pool)}
            for column, watch in enumerate(m.WATCHES):
                active[row, column] = watch in watches
                before, now = findings.told(pool, watch) or (0.0, 0.0)
                change[row, column] = now / before - 1 if before > 0 else np.nan
        yield spread(m.WATCH_ACTIVE, POOLS, pools, active, m.WATCHES)
        yield spread(m.WATCH_CHANGE_RATIO, POOLS, pools, change, m.WATCHES)


def found_in(totals: Totals) -> Findings:
    """What the watchers have found."""
    return cast("Findings", totals.followers[Findings.name])


def _columns(seen: Seen) -> dict[str, Floats | Bools]:
    batch, cost = seen.batch, seen.cost.total
    prompt, cached, output = (batch[name] for name in ("prompt_tokens", "cached_tokens", "output_tokens"))
    hits = ~np.isnan(prompt) & ~np.isnan(cached)
    paced = ~np.isnan(batch.tpot_s)
    after_first = np.where(paced, output - 1, 0.0)
    return {
        "requests": np.ones(len(batch)),
        "resent": seen.again,
        "retries": zeroed(batch["retries"]),
        "charged": ~np.isnan(cost),
        "cost": cost,
        "prompt": np.where(hits, prompt, 0.0),
        "cached": np.where(hits, np.minimum(cached, prompt), 0.0),
        "answers": ~np.isnan(output),
        "output": output,
        "output2": output**2,
        "told_caps": ~np.isnan(batch["max_output_tokens"]) | batch.uncapped,
        "uncapped": batch.uncapped,
        "residence": batch["duration_s"],
        "timed": paced,
        "decode_s": zeroed(batch.tpot_s) * after_first,
        "decode_tokens": after_first,
    }


def METER(config: Config) -> Watches:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Watches()
