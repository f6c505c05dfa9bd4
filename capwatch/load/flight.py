"""In flight by Little's law, over the window and as engines measure it; and whether the law may be applied."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from capwatch import metrics as m
from capwatch.capacity import little
from capwatch.ledger import ENGINE, POOL, Gathering, Totals
from capwatch.load.tables import FLOW, MEASURED, RECENT, RESIDENCE, SECONDS
from capwatch.record import Floats, Ints
from capwatch.sketch import SLICE, SLICES, quantiles

BALANCE_S: Final = 300
"""Arrivals and departures are compared over five minutes (contract, 4.2)."""
FEWEST: Final = 30
"""Departures in those five minutes below which chance alone passes 10 % too often."""
IN_ENGINE: Final = [m.PHASES.index(name) for name in ("queue", "prefill", "decode", "other")]
"""Phases that a request spends in an engine, as far as the log tells them apart."""


class Seconds(NamedTuple):
    """What `SECONDS` holds, as columns: one row for each second and pool in which something came or went."""

    second: Ints
    pool: Ints
    arrivals: Floats
    departures: Floats
    cost: Floats

    def first(self, pool: int, ever: float) -> float:
        """The first second in which the pool saw one of its ``ever`` departures; minus infinity if that is not kept."""
        rows = (self.pool == pool) & (self.departures > 0)
        if self.departures[rows].sum() < ever:
            return -math.inf
        return min(self.second[rows].tolist(), default=-math.inf)

    def first_arrival(self) -> float:
        """The first second in which anything came; minus infinity if none is kept."""
        return min(self.second[self.arrivals > 0].tolist(), default=-math.inf)

    def sums(self, pool: int, begin: float, end: float) -> tuple[float, float]:
        """(arrivals, departures) of a pool from one second on and before another."""
        rows = (self.pool == pool) & (self.second >= begin) & (self.second < end)
        return float(self.arrivals[rows].sum()), float(self.departures[rows].sum())

    def of(self, pool: int) -> Seconds:
        """The rows of one pool."""
        rows = self.pool == pool
        return Seconds(*(column[rows] for column in self))


def seconds(totals: Totals) -> Seconds:
    """The last 26 minutes by second."""
    slots = totals.slots(SECONDS)
    second = np.repeat(np.array([*slots], np.int64), [len(sums.keys) for sums in slots.values()])
    pools = np.concatenate([np.empty(0, np.int64), *(sums.keys for sums in slots.values())])
    return Seconds(second, pools, *np.concatenate([np.empty((0, 3)), *(sums.values for sums in slots.values())]).T)


def lengths(totals: Totals, pools: Ints, by_second: Seconds) -> Floats:
    """Seconds that the window of each pool is long, at least 1: of a pool that is new only what there is of it."""
    begun = window_begin(totals)
    found = [totals.clock - max(begun, _first(totals, pool, by_second)) for pool in pools.tolist()]
    return np.maximum(np.array(found, np.float64), 1.0)


def _first(totals: Totals, pool: int, by_second: Seconds) -> float:
    return by_second.first(pool, float(totals.row(FLOW, pool)[FLOW.column("departures")]))


def window_begin(totals: Totals) -> float:
    """Where the window of slices begins (s, epoch)."""
    return (math.floor(totals.clock / SLICE) - SLICES + 1) * SLICE


def in_flight(totals: Totals, by_second: Seconds) -> tuple[Ints, Floats]:
    """(pools[p], L[p, 7]): requests in each phase as λW (Little 1961), the mean over the window of event time.

    The residence of all requests that finished in the window, over its length. 0 for a pool that saw none finish, NaN
    where no duration is told.
    """
    pools, _ = totals.rows(FLOW)
    known, sums = totals.window(RECENT)
    begun = window_begin(totals)
    idle = np.array([by_second.sums(pool, begun, totals.clock + 1)[1] == 0 for pool in pools.tolist()], np.bool_)
    found = np.full((len(pools), len(m.PHASES)), np.nan)
    found[idle] = 0.0
    found[np.searchsorted(pools, known)] = sums
    return pools, found / lengths(totals, pools, by_second)[:, None]


def measured_in_flight(totals: Totals) -> tuple[Ints, Floats]:
    """(pools, requests waiting or running in the replicas of each): the mean of their samples over the window."""
    keys, sums = totals.window(MEASURED)
    pools, of = np.unique(MEASURED.ids(keys, POOL), return_inverse=True)
    return pools, np.bincount(of, sums[:, 0] / np.maximum(sums[:, 1], 1), len(pools)).astype(np.float64)


def book_measured(into: Gathering, pool: str, engine: str, at: float, requests: float) -> None:
    """Book that a replica had so many requests waiting or running at a time (s, epoch)."""
    key = MEASURED.pack(into.names.id(POOL.name, pool), into.names.id(ENGINE.name, engine))
    into.add_slots(MEASURED, np.array([int(at // SLICE)]), np.atleast_1d(key), np.array([requests]), np.ones(1))


def settled(totals: Totals, pools: Ints) -> Floats:
    """The time (s, epoch) up to which nearly all arrivals of a pool have finished: one p99 residence ago."""
    known, residences, _ = quantiles(totals.recent(RESIDENCE), (0.99,))
    longest = np.zeros(len(pools))
    for place, pool in enumerate(pools.tolist()):
        longest[place] = residences[known == pool, 0].sum()
    return totals.clock - longest


def valid(totals: Totals, pools: Ints, by_second: Seconds) -> Floats:
    """1 where arrivals and departures of the five minutes that end one p99 residence ago differ by at most 10 %."""
    holds = np.zeros(len(pools))
    for place, (pool, until) in enumerate(zip(pools.tolist(), settled(totals, pools).tolist(), strict=True)):
        end = math.floor(until)
        arrivals, departures = by_second.sums(pool, end - BALANCE_S, end)
        whole = _first(totals, pool, by_second) <= end - BALANCE_S
        holds[place] = whole and departures >= FEWEST and little.holds(arrivals, departures)
    return holds
