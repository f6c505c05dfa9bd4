"""From a source to the data model of a week: a state directory, or raw logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import numpy as np

from capwatch.config.schema import Config, Drift, Pool
from capwatch.keep.past import HOUR, Past
from capwatch.ledger import POOL
from capwatch.meters.rollup import PARTS
from capwatch.observed import Given
from capwatch.record import Floats
from capwatch.review import beside, logs, ticks
from capwatch.review.asked import Asked
from capwatch.review.calendar import WEEK, IsoWeek
from capwatch.review.hours import Hours
from capwatch.review.stretch import SILENT
from capwatch.review.told import Kept, Told
from capwatch.review.week import Demand, PoolWeek, Seconds, Week

DEMAND_S: Final = 13 * WEEK
"""Hours are kept for 13 weeks."""
_PLACE: Final = [axis.name for axis in PARTS].index(POOL.name)


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
    yield Opened(logs.replayed(found, week, now), found.config, words)


def gathered(past: Told, week: IsoWeek, config: Config | None, source: str) -> Week:
    """The week as a history tells it; a configuration that is given comes before the settings in the history."""
    this = Hours.of(past.hours(week.since, week.until))
    last = Hours.of(past.hours(week.since - WEEK, week.since))
    demand = _demand(past, week)
    told = _pools(past, week, config)
    drift = config.drift if config is not None else Drift()
    begin, end = (int(this.at.min()), int(this.at.max()) + HOUR) if len(this) else (week.since, week.since)
    begin, end = _whole(past, this, begin, end)
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
            (told_seconds := _seconds(past, name, begin, end)),
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


def _whole(past: Told, this: Hours, begin: int, end: int) -> tuple[int, int]:
    """Without a first and a last hour of which the source tells a part only: such a silence chance would not make."""
    at = [past.seconds(pool, begin, end)[0] for pool in (this.names(POOL.name) if len(this) else ())]
    at = [one for one in at if len(one)]
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
    events, why = ticks.watch(told, one.pool, drift, begin, end)
    if why and then:
        events, why = then, ""
    return replace(one, events=events, unjudged=why, service_cv2=ticks.service_cv2(told, begin, end))


def _demand(past: Told, week: IsoWeek) -> Mapping[str, Demand]:
    """Requests and cost of each pool by the hour, of all weeks that are kept."""
    found: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for slot in past.hours(week.until - DEMAND_S, week.until):
        hours = Hours.of([slot], sketches=False)
        sums: dict[str, Floats] = defaultdict(lambda: np.zeros(2))
        for name, requests, cost in zip(slot.names, hours.requests_by_row, hours.cost_by_row, strict=True):
            sums[name[_PLACE]] += (requests, cost)
        for pool, (requests, cost) in sums.items():
            found[pool].append((slot.at, float(requests), float(cost)))
    columns = {pool: np.array(rows, np.float64).T for pool, rows in found.items()}
    return {pool: Demand(at.astype(np.int64), requests, cost) for pool, (at, requests, cost) in columns.items()}


def _seconds(past: Told, pool: str, begin: int, end: int) -> Seconds | None:
    at, counts = past.seconds(pool, begin, end)
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
