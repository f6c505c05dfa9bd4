"""The past of each pool as ticks of ten seconds: from the history of a state, or from logs by the daemon's own road.

A state's history has the ticks that have closed, two hours after their time, and those of 28 days; a daemon may go on
writing it meanwhile. The rates are those that the ticks were summed with, so they are the pool's own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from capwatch.config.schema import Config, Drift, Pool
from capwatch.console.progress import Progress
from capwatch.drift.marks import Marks
from capwatch.drift.ticks import DAY, Ticks
from capwatch.errors import CapwatchError
from capwatch.keep.bundle import Texts
from capwatch.keep.past import Past
from capwatch.ledger import CLASS, POOL, ROUTE, TENANT, Follower, Gathering, Sketch, Sums, Table, Totals
from capwatch.ledger.series import Series
from capwatch.load.pools import of
from capwatch.meters.drift import TICKS
from capwatch.observed import Given
from capwatch.replay import replay, told_until
from capwatch.replay.notes import notes
from capwatch.seen import Seen

_AXES: Final = {"tenant": TENANT, "route": ROUTE, "class": CLASS}


@dataclass(frozen=True, slots=True)
class PoolPast:
    """One pool's past."""

    pool: Pool
    first: int
    """First tick that is kept."""
    last: int
    """First tick after all that are kept."""
    parts: Callable[[], Iterator[Ticks]]
    """Its ticks in order of time, some at a time; it can be called again."""
    name: Callable[[str, int], str]
    """The name of a code of `tenant`, `route` or `class`."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a source tells."""

    pools: Sequence[PoolPast]
    drift: Drift
    """The knobs, as configured."""
    marks: Marks
    """Deploy notes."""


def of_state(folder: str, config: Config | None) -> Told:
    """The history of a state directory.

    Raises:
        CapwatchError: there is none, or it has no ticks.
    """
    past = Past(folder)
    marks, pools = Marks(), []
    marks.recall(past.annotations(-math.inf, math.inf))
    for name, settings in past.settings(math.inf).items():
        first, last = past.tick_span(name)
        if last:
            pools.append(_of_history(past, msgspec.convert(settings, Pool), first, last))
    if not pools:
        raise CapwatchError(f"{folder}: its history has no ticks yet; they come two hours after their requests")
    return Told(pools, Drift() if config is None else config.drift, marks)


def _of_history(past: Past, pool: Pool, first: int, last: int) -> PoolPast:
    texts = Texts()

    def parts() -> Iterator[Ticks]:
        progress = Progress(last - first, f"pool {pool.name}")
        for begin in range(first, last, DAY):
            ticks = past.ticks(pool.name, begin, min(last, begin + DAY), texts)
            if len(ticks):
                yield ticks
            progress.show(min(last, begin + DAY) - first)
        progress.end()

    return PoolPast(pool, first, last, parts, lambda axis, code: texts.texts[axis][code])


class _Keeper:
    """A meter that measures nothing, and keeps every tick that closes."""

    tables: Sequence[Table] = ()
    sketches: Sequence[Sketch] = ()

    name = "backtest"
    table = TICKS.name

    def __init__(self) -> None:
        self.closed: list[tuple[int, Sums]] = []
        self.followers: Sequence[Callable[[], Follower]] = (lambda: self,)

    def close(self, slot: int, sums: Sums) -> None:
        """Keep a tick."""
        self.closed.append((slot, sums))

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Nothing: the detectors have seen the requests."""

    def show(self, totals: Totals) -> Iterable[Series]:  # noqa: ARG002 - it shows nothing
        """Nothing."""
        return ()

    def save(self) -> Mapping[str, Any]:
        """Nothing: a replay is never saved."""
        return {}

    def load(self, parts: Mapping[str, Any]) -> None:
        """Nothing."""


def of_logs(source: Given, now: float) -> Told:
    """Logs of before ``now`` (s, epoch), read as the daemon reads them.

    Raises:
        UsageError: a file cannot be read.
    """
    config, logs = source.config, source.logs
    assert config is not None  # noqa: S101 - that is what logs come with
    keeper = _Keeper()
    names: dict[str, dict[int, str]] = {name: {} for name in _AXES}
    progress = Progress(sum(os.path.getsize(log.path) for log in logs), "backtest")
    totals = None
    for _, totals, done in replay(config, logs, told_until(config, logs, now), also=[keeper]):
        for name, axis in _AXES.items():
            names[name] |= totals.names.texts(axis.name)  # now, since names may be retired later
        progress.show(done)
    progress.end()
    marks = Marks()
    marks.recall(notes(config))
    assert totals is not None  # noqa: S101 - a replay ends with them
    by_pool = _by_pool([*keeper.closed, *sorted(totals.slots(TICKS).items())])
    pools = []
    for pool in of(config):
        ticks = by_pool.get(totals.names.find(POOL.name, pool.name))
        if ticks is not None:
            pools.append(_whole(pool, ticks, names))
    return Told(pools, config.drift, marks)


def _whole(pool: Pool, ticks: Ticks, names: Mapping[str, Mapping[int, str]]) -> PoolPast:
    """A past that is all in memory."""
    first, last = int(ticks.tick[0]), int(ticks.tick[-1]) + 1
    return PoolPast(pool, first, last, lambda: iter([ticks]), lambda axis, code: names[axis].get(code, "other"))


def _by_pool(slots: Sequence[tuple[int, Sums]]) -> dict[int | None, Ticks]:
    """The ticks of each pool, by the number of its name."""
    keys = np.concatenate([np.empty(0, np.int64), *(sums.keys for _, sums in slots)])
    tick = np.repeat(np.array([slot for slot, _ in slots], np.int64), [len(sums.keys) for _, sums in slots])
    sums = np.concatenate([np.empty((0, len(TICKS.columns))), *(sums.values for _, sums in slots)])
    pools, tenant, route, klass = TICKS.unpack(keys)
    return {
        number: Ticks.merge([Ticks(tick[mine], tenant[mine], route[mine], klass[mine], sums[mine])])
        for number in np.unique(pools).tolist()
        for mine in [np.flatnonzero(pools == number)]
    }
