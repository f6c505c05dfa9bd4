"""From a source to the data model of a week: a state directory, or raw logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from capwatch.config.schema import Config, Drift, Pool
from capwatch.keep.past import HOUR, Past
from capwatch.ledger import POOL
from capwatch.observed import Given
from capwatch.record import Floats, Ints
from capwatch.review import beside, logs, ticks
from capwatch.review.asked import Asked
from capwatch.review.calendar import WEEK, IsoWeek
from capwatch.review.hours import Hours
from capwatch.review.stretch import SILENT
from capwatch.review.told import Kept, Told
from capwatch.review.week import Demand, PoolWeek, Seconds, Week

DEMAND_S: Final = 13 * WEEK
"""Hours are kept for 13 weeks."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A source that can be asked for weeks.

    Attributes:
        told: what it tells.
        config: that was given with it.
        source: what it is, in a few words.
        shown: what gauges and counters of a server tell beside, by pool.
        asked: the server, which knows what it could not tell.
    """

    told: Told
    config: Config | None
    source: str
    shown: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    asked: Asked | None = None

    def week(self, week: IsoWeek) -> Week:
        """One week of it."""
        found = gathered(self.told, week, self.config, self.source)
        pools = {
            name: replace(one, shown={**one.shown, **self.shown.get(name, {})}) for name, one in found.pools.items()
        }
        return replace(found, pools=pools, missing=() if self.asked is None else tuple(self.asked.missing))


@contextmanager
def opened(found: Given, week: IsoWeek, now: float) -> Iterator[Opened]:
    """A source, of before ``now`` (s, epoch); of ``week`` it tells most.

    Raises:
        CapwatchError: it cannot be read.
    """
    if found.state is not None:
        with closing(Past(found.state)) as past:
            yield Opened(Kept(past), found.config, "the history of a state directory")
        return
    if found.prometheus is not None:
        asked = Asked(found.prometheus, week, now)
        yield Opened(asked, found.config, f"the Prometheus at {found.prometheus.url}", shown=asked.shown(), asked=asked)
        return
    words = f"{len(found.logs)} log file{'s' * (len(found.logs) != 1)}"
    with logs.replayed(found, now) as past:
        yield Opened(Kept(past), found.config, words)


def gathered(past: Told, week: IsoWeek, config: Config | None, source: str) -> Week:
    """The week as a history tells it; a configuration that is given comes before the settings in the history."""
    this = Hours.of(past.hours(week.since, week.until))
    last = Hours.of(past.hours(week.since - WEEK, week.since))
    demand = _demand(past, week, last, this)
    told = _pools(past, week, config)
    drift = config.drift if config is not None else Drift()
    begin, end = (int(this.at.min()), int(this.at.max()) + HOUR) if len(this) else (week.since, week.since)
    seconds = {name: past.seconds(name, begin, end) for name in (this.names(POOL.name) if len(this) else ())}
    begin, end = _whole([at for at, _ in seconds.values() if len(at)], this, begin, end)
    this = this.between(begin, end)
    fine = past.fine(week.since, week.until)
    shown, by_length = beside.shown(past, this, begin, end), beside.by_length(past, begin, end)
    pools = {}
    for name in sorted({*this.names(POOL.name), *last.names(POOL.name)}):
        one = PoolWeek(
            name,
            told.get(name, Pool(name, assumed=True)),
            name in told,
            this.where(POOL.name, name),
            last.where(POOL.name, name),
            (told_seconds := _dense(*seconds[name], begin, end) if name in seconds else None),
            demand[name],
            shown=shown.get(name, {}),
            by_length=by_length.get(name, ()),
            hints=fine.hints(name, begin if told_seconds is None else told_seconds.first),
        )
        pools[name] = _watched(past, _started(one), drift, begin, end)
    notes = tuple(past.annotations(week.since - WEEK, week.until))
    return Week(week, begin, end, pools, notes, source, beside.quality(past, begin, end))


def _started(one: PoolWeek) -> PoolWeek:
    """With the cold start that was measured where none is configured."""
    if one.pool.cold_start is not None:
        return one
    return replace(one, pool=replace(one.pool, cold_start=beside.ready_s(one.shown)))


def _whole(at: Sequence[Ints], this: Hours, begin: int, end: int) -> tuple[int, int]:
    """Without a first and a last hour of which the source tells a part only: such a silence chance would not make.

    ``at`` has the seconds of each pool that has any.
    """
    if not at or end - begin < 3 * HOUR:
        return begin, end
    first, last = min(int(one[0]) for one in at), max(int(one[-1]) for one in at)
    rate = this.requests / (last - first + 1)
    late, early = rate * (first - begin) > SILENT, rate * (end - last) > SILENT
    return begin + HOUR * late, end - HOUR * early


def _watched(past: Told, one: PoolWeek, drift: Drift, begin: int, end: int) -> PoolWeek:
    """With what the detector says of the week: over its ticks, or what it said then where it cannot learn from them."""
    told = past.ticks(one.name, begin - ticks.LEARN_S, end)
    said = past.events(begin, end)
    then = None if said is None else tuple(event for event in said if event["pool"] == one.name)
    if told is None:
        return replace(one, events=then or None, unjudged="" if then else "no ticks of ten seconds are kept of it")
    events, why, cv2 = ticks.watch(told, one.pool, drift, begin, end)
    if why and then:
        events, why = then, ""
    return replace(one, events=events, unjudged=why, service_cv2=cv2)


def _demand(past: Told, week: IsoWeek, *read: Hours) -> Mapping[str, Demand]:
    """Requests and cost of each pool by the hour, of all weeks that are kept; the last two have been read."""
    older = range(week.until - DEMAND_S, week.since - WEEK, WEEK)
    found: dict[str, list[tuple[Ints, Floats, Floats]]] = defaultdict(list)
    for hours in chain((Hours.of(past.hours(at, at + WEEK), sketches=False) for at in older), read):
        pools = hours.labels[POOL.name]
        for code in np.unique(pools.codes).tolist():
            mine = pools.codes == code
            at, of = np.unique(hours.at[mine], return_inverse=True)
            requests: Floats = np.bincount(of, hours.requests_by_row[mine]).astype(np.float64)
            cost: Floats = np.bincount(of, hours.cost_by_row[mine]).astype(np.float64)
            found[str(pools.names[code])].append((at, requests, cost))
    return {pool: Demand(*map(np.concatenate, zip(*parts, strict=True))) for pool, parts in found.items()}


def _dense(at: Ints, counts: Floats, begin: int, end: int) -> Seconds | None:
    """Seconds of a stretch without gaps."""
    inside = slice(*np.searchsorted(at, (begin, end)).tolist())
    at, counts = at[inside], counts[inside]
    if not len(at):
        return None
    first = int(at[0]) // HOUR * HOUR
    dense = np.zeros((end - first, 2))
    dense[at - first] = counts[:, [0, 2]]
    return Seconds(first, dense[:, 0], dense[:, 1])


def _pools(past: Told, week: IsoWeek, config: Config | None) -> Mapping[str, Pool]:
    """The settings of each pool: of the configuration, else those in force at the end of the week, else the newest."""
    if config is not None:
        pools: Sequence[Pool] = config.pools
        return {pool.name: pool for pool in pools}
    kept = past.settings(week.until) or past.settings(float("inf"))
    found = {}
    for name, value in kept.items():
        if isinstance(value, dict):
            try:
                found[name] = msgspec.convert({"name": name} | value, Pool, strict=False)
            except msgspec.ValidationError:  # of another version: as good as not there
                continue
    return found
