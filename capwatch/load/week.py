"""The last week second by second: how bursty each pool's requests and work are, in a few kilobytes an hour.

The hour that is filling is kept as it is; of an hour that has ended how often each count occurred, on the sketch's
grid, its longest burst and its steepest rise. What is older than a week goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from capwatch.capacity.bursts import Bursts, bursts, longest, weighted
from capwatch.ledger import Sums
from capwatch.load.tables import SECONDS
from capwatch.record import Floats, Ints
from capwatch.sketch import index, middle

HOUR: Final = 3600
HOURS: Final = 168
MEASURES: Final = ("arrivals", "cost")


class Hour(msgspec.Struct, array_like=True):
    """What is left of an hour, for one measure of one pool."""

    levels: list[int]
    """Buckets of the grid that occurred, ascending."""
    seconds: list[int]
    """In how many seconds each."""
    total: float
    longest: int
    """Seconds of the longest run with more than twice the usual."""
    lead: int
    """Of the run it begins with."""
    trail: int
    """Of the run it ends with; the whole hour where it is one run."""
    ramp: float
    """Largest increase from one second to the next, from the last of the hour before on."""


@dataclass(slots=True)
class Pool:
    """One pool: the hour that is filling, and those that have ended."""

    hour: int
    """Number of the hour that is filling."""
    begin: int
    """The first second of it that counts: only the first hour has any other than 0."""
    filling: Floats
    """float64[2, 3600]: `MEASURES` by second."""
    upto: int
    """Seconds of the hour that have been counted."""
    last: tuple[float, float] = (0.0, 0.0)
    """What came in the last second of the hour before."""
    ended: dict[int, tuple[Hour, Hour]] = field(default_factory=dict)


class Week:
    """A follower of the table of seconds: what closes there goes in here."""

    name = "week"
    table = SECONDS.name

    def __init__(self) -> None:
        self._pools: dict[int, Pool] = {}

    def close(self, second: int, sums: Sums) -> None:
        """Take a closed second; seconds come in order, those without anything may be missing."""
        hour, place = divmod(second, HOUR)
        for number, values in zip(sums.keys.tolist(), sums.values, strict=True):
            pool = self._pools.get(number)
            if pool is None:
                pool = self._pools[number] = Pool(hour, place, np.zeros((2, HOUR)), place)
            self._turn(pool, hour)
            pool.filling[:, place] = values[[0, 2]].astype(
                np.float32
            )  # as `save` keeps them: a restart changes nothing
            pool.upto = place + 1

    def _turn(self, pool: Pool, hour: int) -> None:
        """End the hours before this one."""
        while pool.hour < hour:
            if hour - pool.hour > HOURS:
                pool.ended, pool.hour, pool.last = {}, hour, (0.0, 0.0)
            else:
                self._end(pool)
                pool.hour += 1
            pool.begin, pool.upto, pool.filling = 0, 0, np.zeros((2, HOUR))

    def _end(self, pool: Pool) -> None:
        made = [self._hour(pool, measure) for measure in range(len(MEASURES))]
        pool.last = (float(pool.filling[0, -1]), float(pool.filling[1, -1]))
        pool.ended[pool.hour] = (made[0], made[1])
        for old in [hour for hour in pool.ended if hour <= pool.hour - HOURS]:
            del pool.ended[old]

    @staticmethod
    def _hour(pool: Pool, measure: int) -> Hour:
        counts = pool.filling[measure, pool.begin :]
        levels, seconds = np.unique(index(counts), return_counts=True)
        before = [hours[measure] for hours in pool.ended.values()]
        this = Hour(levels.tolist(), seconds.tolist(), float(counts.sum()), 0, 0, 0, 0.0)
        usual = _usual(*_merged([*before, this], measure))
        over = counts > 2 * usual
        lead = int(np.argmin(np.append(over, False)))
        trail = int(np.argmin(np.append(over[::-1], False)))
        first = pool.last[measure] if pool.ended else counts[0]
        ramp = float(np.diff(counts, prepend=first).max(initial=0.0))
        return msgspec.structs.replace(this, longest=longest(over), lead=lead, trail=trail, ramp=ramp)

    def knows(self, number: int) -> bool:
        """Whether a second of this pool has closed."""
        return number in self._pools

    def bursts(self, number: int, tail: Mapping[str, Floats], begin: int) -> dict[str, Bursts]:
        """The statistics of a pool by measure, the seconds that are still open included.

        Args:
            number: of the pool.
            tail: float64[n] of each measure, the seconds from ``begin`` (s, epoch) on without gaps.
            begin: the first of them; what is known of it and later here gives way to them.
        """
        pool, oldest = self._pools.get(number), begin // HOUR - HOURS
        if pool is not None and pool.hour <= oldest:
            pool = None
        found = {}
        for place, measure in enumerate(MEASURES):
            recent = tail[measure]
            if pool is not None:
                first = pool.hour * HOUR + pool.begin
                kept = pool.filling[place, pool.begin : max(pool.begin, begin - pool.hour * HOUR)]
                if begin > first + len(kept):  # seconds without anything have not closed any slot
                    kept = np.append(kept, np.zeros(begin - first - len(kept)))
                recent = np.concatenate([kept, recent])
            hours = [pool.ended[hour][place] for hour in sorted(pool.ended) if hour > oldest] if pool else []
            told = _told(hours, place, recent, pool.last[place] if pool else 0.0)
            if told is not None:
                found[measure] = told
        return found

    def save(self) -> dict[str, Any]:
        """Everything by part: an hour that has ended does not change any more."""
        parts: dict[str, Any] = {}
        for number, pool in self._pools.items():
            filling = pool.filling[:, : pool.upto].astype(np.float32).ravel()
            parts[str(number)] = [pool.hour, pool.begin, pool.upto, list(pool.last), filling]
            for hour, pair in pool.ended.items():
                parts[f"{number}/{hour}"] = [msgspec.to_builtins(one) for one in pair]
        return parts

    def load(self, parts: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
        for name in sorted(parts, key=lambda name: (name.count("/"), name)):
            number, _, hour = name.partition("/")
            if hour:
                first, second = (msgspec.convert(one, Hour) for one in parts[name])
                self._pools[int(number)].ended[int(hour)] = (first, second)
            else:
                at, begin, upto, last, filling = parts[name]
                pool = self._pools[int(number)] = Pool(at, begin, np.zeros((2, HOUR)), upto, (last[0], last[1]))
                pool.filling[:, :upto] = np.asarray(filling, np.float64).reshape(2, upto)


def _merged(hours: list[Hour], measure: int) -> tuple[Floats, Ints, float]:
    """(values ascending, seconds of each, sum) of some hours; counts of requests are whole."""
    levels = np.concatenate([np.array(hour.levels, np.int64) for hour in hours])
    seconds = np.concatenate([np.array(hour.seconds, np.int64) for hour in hours])
    known, of = np.unique(levels, return_inverse=True)
    values = middle(known, MEASURES[measure] == "arrivals")
    return values, np.bincount(of, seconds, len(known)).astype(np.int64), sum(hour.total for hour in hours)


def _usual(values: Floats, seconds: Ints, total: float) -> float:
    return weighted(values, seconds, 0.5) or total / max(1, int(seconds.sum()))


def _told(hours: list[Hour], measure: int, recent: Floats, before: float) -> Bursts | None:
    """The statistics of ended hours and the seconds after them; ``before`` came in the last second of those."""
    exact = bursts(recent)
    if not hours:
        return exact
    if exact is None:
        recent = np.zeros(0)
    values, seconds, total = _merged(hours, measure)
    values, seconds = np.append(values, recent), np.append(seconds, np.ones(len(recent), np.int64))
    order = np.argsort(values, kind="stable")
    values, seconds, total = values[order], seconds[order], total + float(recent.sum())
    usual = _usual(values, seconds, total)
    over = recent > 2 * usual
    lead, run, most = int(np.argmin(np.append(over, False))), 0, longest(over)
    for hour in hours:
        most = max(most, hour.longest, run + hour.lead)
        run = run + hour.trail if hour.trail == sum(hour.seconds) else hour.trail
    ramp = max([*(hour.ramp for hour in hours), float(np.diff(recent, prepend=before).max(initial=0.0))])
    p99 = weighted(values, seconds, 0.99)
    return Bursts(
        p99 / usual if usual else None, max(most, run + lead), ramp, usual, not weighted(values, seconds, 0.5)
    )
