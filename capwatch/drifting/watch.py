"""The detectors of all pools: requests go to their pool's, what closes goes into the ledger, events wait to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config, Pool
from capwatch.drift.attribution import Found
from capwatch.drift.channels import DOWN, UP
from capwatch.drift.event import EFFECTS, Contribution, Event
from capwatch.drift.marks import SLACK_S, Marks
from capwatch.drift.sentence import sentence
from capwatch.drift.ticks import Ticks
from capwatch.drifting.detecting import LOOK, Detecting
from capwatch.drifting.learnt import Learnt
from capwatch.drifting.requests import rows
from capwatch.ledger import CLASS, ROUTE, TENANT, Gathering, Totals
from capwatch.meters.drift import ALARMS, CONTRIBUTIONS, STATE, TICKS, VALUE
from capwatch.record import Ints
from capwatch.seen import Seen

_AXES = {"tenant": TENANT, "route": ROUTE, "class": CLASS}
_WAYS = {UP: "up", DOWN: "down"}


MOST_EVENTS: Final = 50
"""Events of the past that the API still tells."""


class Drifting:
    """All detectors of one pipeline. Plain values: `save` and `load`."""

    def __init__(self, config: Config, pools: Mapping[int, Pool], into: Gathering) -> None:
        """Watch these pools, by the ids of their names."""
        self._into = into
        self._names = into.names
        self.pools = {number: Detecting(config, pool, self._name, self._find) for number, pool in pools.items()}
        self._shown: dict[int, list[int]] = {number: [] for number in pools}
        """By pool, the keys of the contributions that are shown."""
        self.events: list[dict[str, Any]] = []
        """The last events as the contract tells them (section 1a), each with its sentence, oldest first."""
        self._fresh: list[dict[str, Any]] = []
        self.marks = Marks()
        """Deploy notes. They are not saved here: the history has them."""

    def _name(self, dimension: str, code: int) -> str:
        return self._names.texts(_AXES[dimension].name).get(code, "unknown")

    def _find(self, dimension: str, text: str) -> int | None:
        return self._names.find(_AXES[dimension].name, text)

    def begin(self) -> None:
        """Series of pools start at 0."""
        for number in self.pools:
            both = ALARMS.pack(number, np.arange(len(m.DRIFT_DIRECTIONS)))
            self._into.add(ALARMS, both, np.zeros(len(both)))

    def take(self, seen: Seen) -> None:
        """Give each pool its requests that tell what they cost."""
        charged = ~seen.batch.cache_hit & seen.timely
        pools = seen.pool
        for number in np.unique(pools[charged]).tolist():
            one = self.pools.get(number)
            if one is not None:
                one.take(rows(seen, np.flatnonzero(charged & (pools == number)), one.pool))

    def turn(self, clock: float) -> None:
        """Judge the ticks that are over at this event time (s, epoch)."""
        self.marks.expire(clock)
        for number, one in self.pools.items():
            before = one.until
            judged = one.turn(clock)
            if one.until == before:
                continue
            if len(judged.ticks):
                _book_ticks(number, judged.ticks, self._into)
            for event in judged.events:
                self._tell(one, event)
                if event.event == "raised":
                    way = np.array([m.DRIFT_DIRECTIONS.index(event.direction)])
                    self._into.add(ALARMS, ALARMS.pack(number, way), np.ones(1))
            self._show(number, one)

    def _show(self, number: int, one: Detecting) -> None:
        """Set what the page shows of a pool."""
        detector = one.detector
        found = one.look()
        active = next(iter(one.active()), None)
        told = {
            "score": detector.score,
            "learning": float(detector.learning),
            **{name: float(any(other.way == way for other in one.active())) for way, name in _WAYS.items()},
            "started": np.nan if active is None else active.event.started_at,
            "verdict": np.nan,
        }
        if active is not None:
            told["verdict"] = float(m.VERDICTS.index(active.event.verdict or "unknown"))
        told |= _costs(found, one)
        self._into.set(STATE, np.array([number]), *(np.array([told.get(name, np.nan)]) for name in STATE.columns))
        named = () if active is None else active.event.contributions if found is None else found.contributions
        self._shown[number] = self._contributions(number, named)

    def _contributions(self, number: int, named: Iterable[Contribution]) -> list[int]:
        """Set the contributions that are named now, and take the others away; their keys."""
        effects: dict[int, dict[str, float]] = {}
        for one in named:
            value = self._names.id(VALUE.name, one.value)
            key = int(CONTRIBUTIONS.pack(number, m.DIMENSIONS.index(one.dimension), value))
            effects.setdefault(key, {})[one.effect] = one.replica_seconds
        keys = [*effects, *(key for key in self._shown[number] if key not in effects)]
        if keys:
            columns = ([effects.get(key, {}).get(name, np.nan) for key in keys] for name in EFFECTS)
            self._into.set(CONTRIBUTIONS, np.array(keys), *map(np.array, columns))
        return [*effects]

    def _line(self, one: Detecting, event: Event) -> dict[str, Any]:
        """An event as the contract tells it, the deploy note that it began after, and its sentence."""
        # The wide rule of a short history knows only that it began within its window.
        unsure = event.at - event.started_at if one.detector.learning else SLACK_S
        deploy = self.marks.near(event.started_at, one.pool.name, unsure)
        told = {} if deploy is None else {"deploy": deploy._asdict()}
        return event.line(one.pool.name) | told | {"sentence": sentence(event, one.told_pool(), deploy)}

    def _tell(self, one: Detecting, event: Event) -> None:
        line = self._line(one, event)
        self._fresh.append(line)
        self.events = [*self.events, line][-MOST_EVENTS:]

    def active(self) -> list[dict[str, Any]]:
        """The drifts that are active, as the contract tells events."""
        return [self._line(pool, one.event) for pool in self.pools.values() for one in pool.active()]

    def accept(self, pool: str) -> bool:
        """Take what is active in a pool as the new normal; whether there was anything."""
        found = False
        for number, one in self.pools.items():
            if one.pool.name == pool:
                for event in one.accept():
                    found = True
                    self._tell(one, event)
                self._show(number, one)
        return found

    def due(self) -> list[str]:
        """The pools for which it is time to learn, see `Detecting.due`."""
        return [one.pool.name for one in self.pools.values() if one.due]

    def job(self, pool: str) -> dict[str, Any]:
        """What whoever learns for a pool has to know, as plain values.

        The `pool`, its `settings`, the tick `until` which history counts (0: all of it), the `events` that history may
        not have yet, and the `recent` ticks that it cannot have yet, with the `texts` of their codes.
        """
        (one,) = (one for one in self.pools.values() if one.pool.name == pool)
        return {
            "pool": pool,
            "settings": asdict(one.settings),
            "until": one.until,
            "events": [event for event in self.events if event["pool"] == pool],
            **_named(one.recent, self._name),
        }

    def learn(self, pool: str, told: Mapping[str, Any]) -> bool:
        """Go on with what was learnt of a pool, see `Learnt`; whether it was taken."""
        for number, one in self.pools.items():
            if one.pool.name == pool and one.learn(Learnt(told)):
                self._show(number, one)
                return True
        return False

    def fresh(self) -> list[dict[str, Any]]:
        """The events since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def recall(self, totals: Totals) -> None:
        """After a restart: take back the ticks that the ledger has."""
        slots = totals.slots(TICKS)
        keys = np.concatenate([np.empty(0, np.int64), *(sums.keys for sums in slots.values())])
        tick = np.repeat(np.array([*slots], np.int64), [len(sums.keys) for sums in slots.values()])
        sums = np.concatenate([np.empty((0, len(TICKS.columns))), *(sums.values for sums in slots.values())])
        pools, tenant, route, klass = TICKS.unpack(keys)
        for number, one in self.pools.items():
            mine = np.flatnonzero(pools == number)
            one.recall(Ticks.merge([Ticks(tick[mine], tenant[mine], route[mine], klass[mine], sums[mine])]))

    def inherit(self, other: Drifting) -> None:
        """Go on from the detectors of another configuration; a pool whose rates have changed begins anew."""
        for number, one in self.pools.items():
            before = other.pools.get(number)
            if before is not None and before.settings == one.settings:
                before.pool = one.pool
                self.pools[number] = before
            self._shown[number] = other._shown.get(number, [])
        self.events, self._fresh = other.events, [*other._fresh, *self._fresh]
        self.marks.inherit(other.marks)

    def news(self) -> list[Any]:
        """What changed since the last call."""
        told = [(number, one.news()) for number, one in self.pools.items()]
        return [self.events, [[number, self._shown[number], news] for number, news in told if news is not None]]

    def absorb(self, news: Iterable[Any]) -> None:
        """Remember what `news` gave before a restart."""
        self.events, pools = news
        for number, shown, one in pools:
            if number in self.pools:
                self._shown[number] = shown
                self.pools[number].absorb(one)

    def save(self) -> list[Any]:
        """All of it."""
        return [self.events, [[number, self._shown[number], one.save()] for number, one in self.pools.items()]]

    def load(self, saved: Iterable[Any]) -> None:
        """Remember again what `save` gave."""
        self.events, pools = saved
        for number, shown, one in pools:
            if number in self.pools:
                self._shown[number] = shown
                self.pools[number].load(one)


def _costs(found: Found | None, one: Detecting) -> dict[str, float]:
    """Cost per request before and after, and what explains it; without a reference only what it is now."""
    for active in one.active()[:1]:
        if found is None:
            event = active.event
            costs = {"before": event.cost_before, "after": event.cost_after, "rate_change": event.rate_change}
            return costs | event.effects
    if found is None:
        window = one.recent.between(one.until - LOOK, one.until)
        n = float(window["n"].sum())
        return {"after": float(window["cost"].sum()) / n} if n else {}
    told = {"before": found.cost_before, "after": found.cost_after, **found.effects}
    if found.rate_before > 0:
        told["rate_change"] = found.rate_after / found.rate_before - 1
    return told


def _named(ticks: Ticks, name: Callable[[str, int], str]) -> dict[str, Any]:
    """Ticks with codes that are places in lists of texts."""
    columns, texts = {}, {}
    for dimension, column in (("tenant", ticks.tenant), ("route", ticks.route), ("class", ticks.klass)):
        ids, of = np.unique(column, return_inverse=True)
        columns[dimension], texts[dimension] = of.astype(np.int64), [name(dimension, one) for one in ids.tolist()]
    return {"recent": [ticks.tick, *columns.values(), ticks.sums], "texts": texts}


def _book_ticks(number: int, ticks: Ticks, into: Gathering) -> None:
    keys: Ints = TICKS.pack(number, ticks.tenant, ticks.route, ticks.klass)
    into.add_slots(TICKS, ticks.tick, keys, *ticks.sums.T)
