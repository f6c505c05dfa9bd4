"""Bursts: what counts of a minute hide, from the counts of each second of the last week."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from capwatch import metrics as m
from capwatch.capacity.bursts import Bursts as Told
from capwatch.config.schema import Config
from capwatch.ledger import Gathering, Totals
from capwatch.ledger.series import Series, plain
from capwatch.load import flight
from capwatch.load.flight import Seconds
from capwatch.load.tables import FLOW, OVERLOADED, POOLS, SECONDS
from capwatch.load.week import Week
from capwatch.record import Floats
from capwatch.seen import Seen

SHOWN = {
    "arrivals": (m.BURST_P99_TO_MEDIAN_RATIO, m.BURST_LONGEST_SECONDS, m.BURST_MAX_RAMP_RPS),
    "cost": (m.COST_BURST_P99_TO_MEDIAN_RATIO, m.COST_BURST_LONGEST_SECONDS, m.COST_BURST_MAX_RAMP_REPLICA_SECONDS),
}


class Bursts:
    """Contract 4.5: burst statistics of requests and of cost, and overload seconds."""

    tables = (OVERLOADED,)
    sketches = ()
    followers = (Week,)

    def measure(self, seen: Seen, into: Gathering) -> None:
        """What counts by the second is the table that `capwatch.meters.flow` fills."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        yield plain(m.OVERLOAD_SECONDS, OVERLOADED, *totals.rows(OVERLOADED))
        week = totals.followers[Week.name]
        assert isinstance(week, Week)  # noqa: S101 - the name is its own
        pools, _ = totals.rows(FLOW)
        by_second = flight.seconds(totals)
        settled = flight.settled(totals, pools)
        begin = math.floor(totals.clock) - SECONDS.slots + 1
        values = np.full((len(SHOWN), 3, len(pools)), np.nan)
        for column, (pool, until) in enumerate(zip(pools.tolist(), settled.tolist(), strict=True)):
            first, tail = _tail(by_second.of(pool), begin, math.floor(until), fresh=not week.knows(pool))
            for row, measure in enumerate(SHOWN):
                told = week.bursts(pool, tail, first).get(measure)
                if told is not None and (measure == "arrivals" or told.usual):  # no cost at all is none that is told
                    values[row, :, column] = _columns(told)
        for row, metrics in enumerate(SHOWN.values()):
            for place, metric in enumerate(metrics):
                yield plain(metric, POOLS, pools, values[row, place])


def _columns(told: Told) -> tuple[float, float, float]:
    return (math.nan if told.p99_to_usual is None else told.p99_to_usual), float(told.longest_s), told.max_ramp


def _tail(by_second: Seconds, begin: int, until: int, *, fresh: bool) -> tuple[int, dict[str, Floats]]:
    """(first second, what came in each from there to ``until``); of a pool that is new, from its first arrival on."""
    if fresh and len(by_second.second):
        begin = int(max(begin, by_second.first_arrival()))
    length = max(0, until - begin)
    rows = (by_second.second >= begin) & (by_second.second < begin + length)
    columns = {"arrivals": by_second.arrivals, "cost": by_second.cost}
    return begin, {
        name: np.bincount(by_second.second[rows] - begin, column[rows], length).astype(np.float64)
        for name, column in columns.items()
    }


def METER(config: Config) -> Bursts:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Bursts()
