"""Mix drift: what the detector says of each pool, and the ticks that it learns from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.drift.event import DIMENSIONS, EFFECTS
from capwatch.drift.ticks import HOUR, SUMS, TICK_S
from capwatch.ledger import CLASS, POOL, ROUTE, TENANT, Axis, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain, spread
from capwatch.load.tables import POOLS
from capwatch.seen import Seen

TICKS = Table((POOL, TENANT, ROUTE, CLASS), "ticks", SUMS, slot_s=TICK_S, slots=2 * HOUR + 60, closes=True)
"""Sums of ten seconds, as long as an alarm is explained by them; then they go to the history."""
STATE = Table(
    (POOL,),
    "drift",
    (*("score", "learning", "up", "down", "started", "verdict", "before", "after", "rate_change"), *EFFECTS),
    level=True,
)
"""What the detector says now; NaN is nothing. `verdict` is an index into `m.VERDICTS`."""
ALARMS = Table((POOL, Axis("direction", 1, m.DRIFT_DIRECTIONS)), "drift_alarms", ("alarms",))
VALUE: Final = Axis("value", 20)
CONTRIBUTIONS = Table((POOL, Axis("dimension", 2, DIMENSIONS), VALUE), "drift_contributions", EFFECTS, level=True)


class Drift:
    """Contract 4.4."""

    tables = (TICKS, STATE, ALARMS, CONTRIBUTIONS)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """The detectors see requests in `capwatch.drifting`."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(STATE)
        told = dict(zip(STATE.columns, values.T, strict=True))
        active = (told["up"] > 0) | (told["down"] > 0)
        costs = np.stack([told["after"], told["before"]], axis=1)
        yield spread(m.COST_PER_REQUEST_REPLICA_SECONDS, POOLS, keys, costs, m.WINDOWS)
        yield spread(
            m.DRIFT_ACTIVE, POOLS, keys, np.stack([told[way] for way in m.DRIFT_DIRECTIONS], axis=1), m.DRIFT_DIRECTIONS
        )
        yield plain(m.DRIFT_SCORE, POOLS, keys, told["score"])
        yield plain(m.DRIFT_COST_CHANGE_RATIO, POOLS, keys, told["after"] / told["before"] - 1)
        yield plain(m.DRIFT_REQUEST_RATE_CHANGE_RATIO, POOLS, keys, told["rate_change"])
        effects = np.stack([told[one] for one in EFFECTS], axis=1)
        yield spread(m.DRIFT_EFFECT_REPLICA_SECONDS, POOLS, keys, effects, EFFECTS)
        yield spread(m.DRIFT_CONTRIBUTION_REPLICA_SECONDS, CONTRIBUTIONS, *totals.rows(CONTRIBUTIONS), EFFECTS)
        alarms, counts = totals.rows(ALARMS)
        yield plain(m.DRIFT_ALARMS, ALARMS, alarms, counts)
        yield plain(m.DRIFT_STARTED_TIMESTAMP_SECONDS, POOLS, keys, np.where(active, told["started"], np.nan))
        verdicts = np.equal.outer(told["verdict"], np.arange(len(m.VERDICTS))).astype(np.float64)
        yield spread(m.DRIFT_VERDICT, POOLS, keys, np.where(active[:, None], verdicts, np.nan), m.VERDICTS)
        yield plain(m.DRIFT_LEARNING, POOLS, keys, told["learning"])


def METER(config: Config) -> Drift:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Drift()
