"""In flight by Little's law: residence per phase, arrivals and departures, and whether the law may be applied."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import ENGINE, POOL, Gathering, Keys, Sketch, Table, Totals
from capwatch.ledger.series import Series, plain, spread
from capwatch.record import PHASE_FIELDS, Batch, Floats, Ints, zeroed
from capwatch.seen import Seen
from capwatch.sketch import SLICE, SLICES, index, pack, quantiles

FLOW = Table((POOL,), "flow", ("arrivals", "departures"))
PHASES = Table((POOL,), "phases", m.PHASES)
RECENT = Table((POOL,), "recent_phases", m.PHASES, slot_s=SLICE, slots=SLICES)
SECONDS = Table((POOL,), "seconds", ("arrivals", "departures", "cost"), slot_s=1, slots=1560, closes=True)
"""Counts by second of the last 26 minutes: five minutes, behind them residences of `MOST_S`, and what may be late."""
MEASURED = Table((POOL, ENGINE), "measured", ("requests", "samples"), slot_s=SLICE, slots=SLICES)
"""Requests waiting or running in each engine replica, summed over its samples of the last five minutes."""
RESIDENCE = Sketch((POOL,), "residence", lasting=False, recent=True)

MOST_S: Final = 1200
"""Residence beyond which a request counts as arrived this long before its end: its second may be closed already."""
BALANCE_S: Final = 300
"""Arrivals and departures are compared over five minutes (contract, 4.2)."""
IMBALANCE: Final = 0.10
FEWEST: Final = 30
"""Departures in those five minutes below which chance alone passes 10 % too often."""
_IN_ENGINE: Final = [m.PHASES.index(name) for name in ("queue", "prefill", "decode", "other")]
"""Phases that a request spends in an engine, as far as the log tells them apart."""
FEWEST_IN_FLIGHT: Final = 2.0
"""Below it engines' gauges undercount (a real vLLM showed 0.13 where 1.21 were in flight), so nothing is compared."""
_POOLS = Keys((POOL,))


class Flow:
    """Contract 4.2; law 5: the phases of a pool add up to its residence."""

    tables = (FLOW, PHASES, RECENT, SECONDS, MEASURED)
    sketches = (RESIDENCE,)

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add residence by phase; arrivals count when the request finishes."""
        groups = seen.groups
        requests = groups.sums(np.ones(len(seen.batch)))
        into.add(FLOW, groups.pool, requests, requests)
        phases = residence(seen.batch)
        into.add(PHASES, groups.pool, *map(groups.sums, phases))
        known = ~np.isnan(seen.batch["duration_s"])
        timely = known & seen.timely
        pool = seen.pool
        into.add_slots(RECENT, seen.slot[timely], pool[timely], *(column[timely] for column in phases))
        into.observe(RESIDENCE, pack(pool[known], index(seen.batch["duration_s"][known])), seen.slot[known])
        self._seconds(seen, into)

    @staticmethod
    def _seconds(seen: Seen, into: Gathering) -> None:
        started = seen.batch["started_at"]
        started = np.where(np.isnan(started), seen.event_at, np.maximum(started, seen.event_at - MOST_S))
        pool = seen.pool[seen.timely]
        nothing, one = np.zeros(len(pool)), np.ones(len(pool))
        came, went = (np.floor(times[seen.timely]).astype(np.int64) for times in (started, seen.event_at))
        into.add_slots(SECONDS, came, pool, one, nothing, nothing)
        into.add_slots(SECONDS, went, pool, nothing, one, seen.cost.total[seen.timely])

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(FLOW)
        yield plain(m.ARRIVALS, FLOW, keys, values[:, 0])
        yield plain(m.DEPARTURES, FLOW, keys, values[:, 1])
        yield spread(m.PHASE_SECONDS, PHASES, *totals.rows(PHASES), m.PHASES)
        seconds = _seconds(totals)
        pools, inflight = in_flight(totals, seconds)
        yield spread(m.INFLIGHT_LITTLES_LAW, _POOLS, pools, inflight, m.PHASES)
        measured, requests = measured_in_flight(totals)
        law = inflight[np.isin(pools, measured)][:, _IN_ENGINE].sum(axis=1)
        told = np.isin(measured, pools)
        enough = np.where(law >= FEWEST_IN_FLIGHT, law, np.nan)
        yield plain(m.LITTLES_LAW_RESIDUAL_RATIO, _POOLS, measured[told], requests[told] / enough - 1)
        yield plain(m.LITTLES_LAW_VALID, _POOLS, keys, _valid(totals, keys, seconds))


def residence(batch: Batch) -> Floats:
    """Seconds in each of `m.PHASES`, float64[7, n], adding up to the duration; all 0 where that is unknown.

    What the log leaves unexplained is `other`; phases that add up to more than the duration are scaled down to it.
    """
    phases = np.zeros((len(m.PHASES), len(batch)))
    for phase, name in zip(phases, PHASE_FIELDS, strict=False):
        np.copyto(phase, batch[name], where=~np.isnan(batch[name]))
    duration = zeroed(batch["duration_s"])
    explained = phases.sum(axis=0)
    over = explained > duration
    if over.any():
        phases[:, over] *= duration[over] / explained[over]
    phases[-1] = np.where(over, 0.0, np.maximum(duration - explained, 0.0))
    return phases


class Seconds(NamedTuple):
    """What `SECONDS` holds, as columns: one row for each second and pool in which something came or went."""

    second: Ints
    pool: Ints
    arrivals: Floats
    departures: Floats

    def first(self, pool: int) -> float:
        """The first second of the last 26 minutes in which the pool saw a departure; minus infinity if none is kept."""
        return min(self.second[(self.pool == pool) & (self.departures > 0)].tolist(), default=-math.inf)

    def sums(self, pool: int, begin: float, end: float) -> tuple[float, float]:
        """(arrivals, departures) of a pool from one second on and before another."""
        rows = (self.pool == pool) & (self.second >= begin) & (self.second < end)
        return float(self.arrivals[rows].sum()), float(self.departures[rows].sum())


def in_flight(totals: Totals, seconds: Seconds) -> tuple[Ints, Floats]:
    """(pools[p], L[p, 7]): requests in each phase as λW (Little 1961), the mean over the window of event time.

    The residence of all requests that finished in the window, over its length; at the start of the log the window
    is as long as there are records. 0 for a pool that saw none finish, NaN where no duration is told.
    """
    pools, _ = totals.rows(FLOW)
    known, sums = totals.window(RECENT)
    begun = (math.floor(totals.clock / SLICE) - SLICES + 1) * SLICE
    lengths = np.array([totals.clock - max(begun, seconds.first(pool)) for pool in pools.tolist()], np.float64)
    idle = np.array([seconds.sums(pool, begun, totals.clock + 1)[1] == 0 for pool in pools.tolist()], np.bool_)
    found = np.full((len(pools), len(m.PHASES)), np.nan)
    found[idle] = 0.0
    found[np.searchsorted(pools, known)] = sums
    return pools, found / np.maximum(lengths, 1.0)[:, None]


def measured_in_flight(totals: Totals) -> tuple[Ints, Floats]:
    """(pools, requests waiting or running in the replicas of each): the mean of their samples over the window."""
    keys, sums = totals.window(MEASURED)
    pools, of = np.unique(MEASURED.ids(keys, POOL), return_inverse=True)
    return pools, np.bincount(of, sums[:, 0] / np.maximum(sums[:, 1], 1), len(pools)).astype(np.float64)


def book_measured(into: Gathering, pool: str, engine: str, at: float, requests: float) -> None:
    """Book that a replica had so many requests waiting or running at a time (s, epoch)."""
    key = MEASURED.pack(into.names.id(POOL.name, pool), into.names.id(ENGINE.name, engine))
    into.add_slots(MEASURED, np.array([int(at // SLICE)]), np.atleast_1d(key), np.array([requests]), np.ones(1))


def _seconds(totals: Totals) -> Seconds:
    slots = totals.slots(SECONDS)
    second = np.repeat(np.array([*slots], np.int64), [len(sums.keys) for sums in slots.values()])
    pools = np.concatenate([np.empty(0, np.int64), *(sums.keys for sums in slots.values())])
    arrivals, departures = np.concatenate([np.empty((0, 2)), *(sums.values[:, :2] for sums in slots.values())]).T
    return Seconds(second, pools, arrivals, departures)


def _valid(totals: Totals, pools: Ints, seconds: Seconds) -> Floats:
    """1 where arrivals and departures of the five minutes that end one p99 residence ago differ by at most 10 %."""
    known, residences, _ = quantiles(totals.recent(RESIDENCE), (0.99,))
    valid = np.zeros(len(pools))
    for place, pool in enumerate(pools.tolist()):
        end = math.floor(totals.clock - float(residences[known == pool, 0].sum()))
        arrivals, departures = seconds.sums(pool, end - BALANCE_S, end)
        whole = seconds.first(pool) <= end - BALANCE_S
        even = abs(arrivals - departures) <= IMBALANCE * max(arrivals, departures)
        valid[place] = whole and departures >= FEWEST and even
    return valid


def METER(config: Config) -> Flow:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Flow()
