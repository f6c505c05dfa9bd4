"""The last 24 hours and the last minutes for the page: read from the history once, then kept up with what is new.

The history is read by a connection of its own, which only reads, in the thread of whoever asks. Nothing of it is done
for a scrape. What has closed never changes, so its few figures are kept.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.capacity import kv
from capwatch.daemon.slots import SPAN, Grouped, Open, by_pool, by_tenant_and_route, ratio, still_open
from capwatch.errors import StateError
from capwatch.keep.codec import DamagedError
from capwatch.keep.past import DAY, Past
from capwatch.keep.slot import Slot
from capwatch.ledger import OTHER, POOL, Totals
from capwatch.ledger.names import RESERVED
from capwatch.load import flight
from capwatch.load.tables import FLOW, SECONDS
from capwatch.record import Floats, Ints
from capwatch.web.now import History, Note, Numbers, PoolHistory

MINUTE: Final = 60
MOST_POOLS: Final = 32
"""Pools whose history is told, the dearest first: some 30 kB each."""
MOST_NOTES: Final = 200
LEAST_S: Final = 60.0
"""A slot that is open for less tells too little."""
_COLUMNS: Final = (*m.PHASES, "goodput", "ttft_p50", "ttft_p95", "kv_tokens", "requests", "charged", "cost")
_RUNNING: Final = [m.PHASES.index(name) for name in ("prefill", "decode")]
_POINTS: Final = 4
"""Of five minutes, that make a quarter of an hour."""
_FAR: Final = 3600.0
"""s: a quarter of an hour says nothing of what is further away."""
Points = Mapping[str, Floats]
"""By pool, `_COLUMNS` of one slot."""


@dataclass(frozen=True, slots=True)
class Present:
    """What the totals know that the history does not yet; copies, so that they may be read later."""

    clock: float
    settled: Mapping[str, float]
    """By pool, until when nearly all that arrived has finished."""
    rollups: Open
    seconds: Sequence[tuple[int, Ints, Floats]]
    """Second, keys and values of `SECONDS`."""
    pools: Mapping[int, str]
    kv_room: Mapping[str, float]
    """Tokens that the KV caches of a pool hold, where that is known."""


def present(totals: Totals, kv_room: Mapping[str, float]) -> Present:
    """See `Present`. Quick: whoever calls holds up scrapes."""
    pools = dict(totals.names.texts(POOL.name))
    known, _ = totals.rows(FLOW)
    until = dict(zip(known.tolist(), flight.settled(totals, known).tolist(), strict=True))
    waiting = [(one.slot, one.sums) for one in totals.closed if one.table == SECONDS.name]
    seconds = [(at, sums.keys, sums.values) for at, sums in (*waiting, *totals.slots(SECONDS).items())]
    settled = {pools.get(pool, RESERVED[OTHER]): at for pool, at in until.items()}
    return Present(totals.clock, settled, still_open(totals), seconds, pools, kv_room)


class Lately:
    """What has been read of one state directory's history. One thread at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._slots: dict[int, Points] = {}
        self._minutes: dict[int, dict[str, Floats]] = {}
        """By minute and pool: arrivals and cost; 0 is kept as well."""
        self._read = 0
        """Seconds before this are in `_minutes`."""

    def history(self, now: Present) -> History:
        """The last 24 hours up to the present."""
        begin = int(now.clock - DAY) // SPAN * SPAN
        slots, minutes, notes, problem = self._known(now, begin)
        for slot in now.rollups.slots():
            length = min(SPAN, now.clock - slot.at)
            if length >= LEAST_S:
                slots[slot.at] = _points(slot, length)
        for second, keys, values in now.seconds:
            for key, row in zip(keys.tolist(), values, strict=True):
                pool = now.pools.get(key, RESERVED[OTHER])
                minutes.setdefault(second // MINUTE * MINUTE, {}).setdefault(pool, np.zeros(2))
                minutes[second // MINUTE * MINUTE][pool] += row[_WANTED]
        costs: dict[str, float] = defaultdict(float)
        for points in slots.values():
            for pool, point in points.items():
                costs[pool] += float(np.nan_to_num(point[-1]))
        pools = sorted(costs, key=lambda pool: -costs[pool])[:MOST_POOLS]
        return History(
            minutes=float(begin),
            slots=float(begin),
            minute_s=float(MINUTE),
            slot_s=float(SPAN),
            pools={pool: _pool(pool, begin, now, slots, minutes) for pool in pools},
            notes=notes,
            problem=problem,
        )

    def _known(
        self, now: Present, begin: int
    ) -> tuple[dict[int, Points], dict[int, dict[str, Floats]], list[Note], str | None]:
        """(slots, minutes, notes, problem) as the history has them from ``begin`` on; copies."""
        notes: list[Note] = []
        problem = None
        rest: dict[int, dict[str, Floats]] = {}
        try:
            with closing(Past(self._folder)) as past:
                rest = self._catch_up(past, now, begin)
                found = past.annotations(begin, now.clock + 1)[-MOST_NOTES:]
                notes = [Note(at=one.at, pool=one.pool, text=one.text) for one in found]
        except (DamagedError, StateError, sqlite3.Error) as error:
            problem = f"The history cannot be read now ({type(error).__name__}); what is newer than an hour is there."
        self._slots = {at: points for at, points in self._slots.items() if at >= begin}
        self._minutes = {at: one for at, one in self._minutes.items() if at >= begin}
        minutes = {at: {pool: row.copy() for pool, row in one.items()} for at, one in (self._minutes | rest).items()}
        return dict(self._slots), minutes, notes, problem

    def _catch_up(self, past: Past, now: Present, begin: int) -> dict[int, dict[str, Floats]]:
        """Read what is new in the history; the minute that it has only a part of comes back and is not kept."""
        newest = max(self._slots, default=begin - SPAN)
        opened = {one.slot * SPAN for one in now.rollups.closed}
        for slot in past.rollups(newest + SPAN, now.clock, SPAN):
            if slot.at not in opened:
                self._slots[slot.at] = _points(slot, SPAN)
        end = min((second for second, _, _ in now.seconds), default=int(now.clock))
        whole = end // MINUTE * MINUTE
        since = max(self._read, begin)
        for at, one in _by_minute(past, self._pools(), since, whole).items():
            self._minutes[at] = one
        self._read = max(self._read, whole)
        return _by_minute(past, self._pools(), whole, end)

    def _pools(self) -> list[str]:
        return sorted({pool for points in self._slots.values() for pool in points})


_WANTED: Final = [SECONDS.column("arrivals"), SECONDS.column("cost")]


def _by_minute(past: Past, pools: Iterable[str], since: int, until: int) -> dict[int, dict[str, Floats]]:
    """Arrivals and cost of each minute and pool that has a second in the history."""
    found: dict[int, dict[str, Floats]] = {}
    for pool in pools:
        at, counts = past.seconds(pool, since, until)
        minutes, of = np.unique(at // MINUTE * MINUTE, return_inverse=True)
        sums = np.stack([np.bincount(of, counts[:, column], len(minutes)) for column in _WANTED], axis=1)
        for minute, row in zip(minutes.tolist(), sums, strict=True):
            found.setdefault(minute, {})[pool] = row
    return found


def _points(slot: Slot, seconds: float) -> Points:
    """`_COLUMNS` by pool of the requests that finished in so many seconds."""
    one, held = by_pool([slot]), _kv_tokens(by_tenant_and_route([slot]), seconds)
    in_flight = one.in_flight(seconds)
    columns = [
        *in_flight.T,
        one.goodput(),
        *(one.quantile("ttft_s", q) for q in (0.5, 0.95)),
        np.array([held.get(name[0], math.nan) for name in one.names]),
        *(sums / seconds for sums in (one.requests(), one.charged(), one.cost())),
    ]
    return {name[0]: row for name, row in zip(one.names, np.column_stack(columns), strict=True)}


def _kv_tokens(groups: Grouped, seconds: float) -> dict[str, float]:
    """What running sequences hold at most, by pool: in prefill and decode, else in the engine, times tokens of each.

    By tenant and route, for long requests run longer; `capwatch.load.memory` has it by request.
    """
    in_flight = groups.in_flight(seconds)
    running = in_flight[:, _RUNNING].sum(axis=1)
    running = np.where(running > 0, running, in_flight[:, flight.IN_ENGINE].sum(axis=1))
    found: dict[str, float] = {}
    for name, held in zip(groups.names, (running * ratio(groups.tokens(), groups.charged())).tolist(), strict=True):
        if not math.isnan(held):
            found[name[0]] = found.get(name[0], 0.0) + held
    return found


def kv_trend(demand: Floats, room: float | None) -> tuple[float | None, bool, float | None]:
    """Of the demand for KV tokens, told every five minutes, by a straight line through the last quarter of an hour.

    A line through a single step leads nowhere, so only what grew in each five minutes has an end.

    Returns:
        Tokens/s by which it grows, None where that is not known; whether it grew all the time; seconds until it is the
        whole room, None where it did not grow all the time or that is not within an hour.

    >>> kv_trend(np.array([900.0, 10.0, 25.0, 40.0, 55.0]), 100.0)
    (0.05, True, 900.0)
    >>> kv_trend(np.array([30.0, 30.0, 60.0, 60.0]), 100.0)
    (0.04, False, None)
    """
    lately = demand[-_POINTS:].tolist()
    if room is None or len(lately) < _POINTS or any(map(math.isnan, lately)):
        return None, False, None
    growing, steady = kv.growth(lately, SPAN), all(later > earlier for earlier, later in pairwise(lately))
    full = kv.full_seconds(lately[-1], growing, room)
    return growing, steady, round(full, 3) if full == 0 or (steady and full <= _FAR) else None


def _pool(
    pool: str, begin: int, now: Present, slots: Mapping[int, Points], minutes: Mapping[int, Mapping[str, Floats]]
) -> PoolHistory:
    room = now.kv_room.get(pool)
    ends = [at for at, points in slots.items() if pool in points]
    table = np.full(((max(ends) - begin) // SPAN + 1, len(_COLUMNS)), np.nan)
    for at in ends:
        table[(at - begin) // SPAN] = slots[at][pool]
    told = dict(zip(_COLUMNS, table.T, strict=True))
    rate, cost = _by_minutes(pool, begin, now, minutes, told)
    growth, steady, full_s = kv_trend(told["kv_tokens"], room)
    return PoolHistory(
        rate=_numbers(rate),
        cost=_numbers(cost),
        in_flight={phase: _numbers(told[phase]) for phase in m.PHASES},
        goodput=_numbers(told["goodput"]),
        ttft_p50=_numbers(told["ttft_p50"]),
        ttft_p95=_numbers(told["ttft_p95"]),
        kv_demand=_numbers(told["kv_tokens"] / room if room else np.full(len(table), np.nan)),
        kv_growth=growth,
        kv_steady=steady,
        kv_full_s=full_s,
    )


def _by_minutes(
    pool: str, begin: int, now: Present, minutes: Mapping[int, Mapping[str, Floats]], told: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """Rate and cost per request of each minute: by seconds where there are any, else those of the five minutes."""
    end = int(now.settled.get(pool, now.clock)) // MINUTE * MINUTE
    found = np.full(((max(end, begin) - begin) // MINUTE, 2), np.nan)
    for at, one in minutes.items():
        if pool in one and begin <= at < end:
            found[(at - begin) // MINUTE] = one[pool] / MINUTE
    rate, cost = (
        found[:, 0],
        np.divide(found[:, 1], found[:, 0], out=np.full(len(found), np.nan), where=found[:, 0] > 0),
    )
    of = np.minimum(np.arange(len(found)) * MINUTE // SPAN, len(told["requests"]) - 1)
    first = int(np.argmin(np.isnan(rate))) if len(rate) else 0
    rate[: first + 1] = np.nan  # of the first minute only a part may be kept
    empty = np.isnan(rate)
    silent = np.ones(len(told["requests"]), np.bool_)
    silent[np.unique(of[~empty])] = False
    # Where no second of all five minutes is kept they are told as one; else nothing came in that minute.
    coarse = empty & (silent[of] | (np.arange(len(rate)) <= first))
    rate = np.where(empty, np.where(coarse, told["requests"][of], 0.0), rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        cost = np.where(coarse, told["cost"][of] / told["charged"][of], cost)
    return rate, cost


def _numbers(values: Floats) -> Numbers:
    """Four digits are more than a plot shows; what is not known is None."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()]
