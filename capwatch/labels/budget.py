"""The series budget (contract, section 5): which tenants, routes, models and pairs have series of their own.

Promises, whatever the order of arrival: never more names or series than the limits; a request's label is decided when
it is counted and never moved; what has no name of its own is `other`, so that sums stay right; a name keeps its series
while it has traffic within seven days, then it is retired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from capwatch.config.schema import Limits
from capwatch.labels import series
from capwatch.labels.places import Places
from capwatch.labels.text import clean
from capwatch.ledger import MODEL, OTHER, ROUTE, TENANT, Axis, Names
from capwatch.record import Floats, Ints, Texts

RETIRE_S: Final = 7 * 86400.0
SWEEP_S: Final = 3600.0
"""Retirement is looked for once an hour of event time: soon enough for a rule of seven days."""
FADE_S: Final = 86400.0
"""Half-life of the weights by which late names are judged, event time: as long as a day's rhythm."""

_REMEMBERED: Final = 20_000
"""Texts whose clean form is remembered: enough for every name with traffic, and bounded under hostile ones."""

Combination = tuple[int, int, int, int]
"""(tenant, route, model, pool) ids; −1 in a part whose series do not depend on it."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """int64[g] ids of each group's labels, capped; see `capwatch.ledger.names`."""

    tenant: Ints
    route: Ints
    model: Ints


class Labels:
    """Gives names to what batches tell. All of it is plain values: `save` and `load`."""

    def __init__(
        self,
        limits: Limits,
        names: Names,
        *,
        own: int = 0,
        bounds: int = 0,
        secret: bytes = b"",
        hash_tenants: bool = False,
    ) -> None:
        """Nothing is named yet.

        Args:
            limits: the caps.
            names: gives the ids.
            own: see `capwatch.labels.series.own`.
            bounds: SLO bounds that each route's histograms count beside their own edges.
            secret: keys the hashes of texts that must not be shown.
            hash_tenants: whether tenants are always hashed.
        """
        self._limits = limits
        self._names = names
        self._own = own
        self._route_series = series.ROUTE + bounds
        self._secret = secret
        self._hash_tenants = hash_tenants
        self._cleaned: dict[tuple[str | None, bool], str] = {}
        sizes = {TENANT: limits.tenants, ROUTE: limits.routes, MODEL: limits.models}
        self._axes = {axis: Places(axis, size) for axis, size in sizes.items()}
        self._pairs: dict[tuple[int, int], float] = {}
        """(tenant, route) → event clock of its last request."""
        self._parts: set[Combination] = set()
        """What has series, see `_parted`."""
        self._known: set[Combination] = set()
        """Combinations all of whose parts have series."""
        self._count()
        self._swept = 0.0
        self.overflow: dict[str, float] = {}
        """Requests counted as `other`, by limit, since they were last taken."""
        self.retired: list[tuple[int, int]] = []
        """See `capwatch.ledger.Delta.retired`; since they were last taken."""

    def label(self, texts: Mapping[str, Texts], pools: Ints, counts: Floats, cost: Floats, clock: float) -> Labelled:
        """The ids of tenant, route and model of groups of requests, each with equal labels and one pool.

        Args:
            texts: by label, g texts as the log tells them.
            pools: int64[g], ids of their pools.
            counts: float64[g], requests in each group; 0 where all of them are repeats.
            cost: float64[g], replica-seconds of each group.
            clock: the event clock, s; it never goes back.
        """
        columns = (self._column(axis, texts[axis.name], counts, cost, clock) for axis in (TENANT, ROUTE, MODEL))
        groups: list[Combination] = list(zip(*(one.tolist() for one in columns), pools.tolist(), strict=True))
        if not self._known.issuperset(groups):
            groups = [self._within(one, count) for one, count in zip(groups, counts.tolist(), strict=True)]
        self._pairs.update(dict.fromkeys([one[:2] for one in groups], clock))
        tenant, route, model, _ = np.array(groups, np.int64).reshape(len(groups), 4).T
        return Labelled(tenant, route, model)

    def sweep(self, clock: float) -> None:
        """Retire what has been silent for seven days of event time."""
        if clock - self._swept < SWEEP_S:
            return
        for places in self._axes.values():
            places.fade(0.5 ** ((clock - self._swept) / FADE_S))
        self._swept = clock
        gone = sorted(pair for pair, seen in self._pairs.items() if seen < clock - RETIRE_S)
        self.retired += gone
        self._retire(gone)
        alive = {TENANT: {t for t, _ in self._pairs}, ROUTE: {r for _, r in self._pairs}}
        alive[MODEL] = {m for _, _, m, _ in self._parts}
        for axis, places in self._axes.items():
            for number, seen in places.seen.items():
                if seen < clock - RETIRE_S and number not in alive[axis]:
                    self._names.forget(axis.name, number)
        self._forget()

    def _column(self, axis: Axis, texts: Texts, counts: Floats, cost: Floats, clock: float) -> Ints:
        """The ids of one label: each distinct name is judged once."""
        size = len(texts.names)
        hashed = self._hash_tenants and axis is TENANT
        used = np.flatnonzero(np.bincount(texts.codes, minlength=size)).tolist()
        names = [self._clean(texts.names[code], hashed=hashed) for code in used]
        costs, requests = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for told, column in ((costs, cost), (requests, counts)):
            sums = np.bincount(texts.codes, column, size)[used].tolist()
            for name, one in zip(names, sums, strict=True):
                told[name] += one
        given = self._given(axis, costs, clock)
        for name in costs.keys() - given.keys():
            self._spill(axis.name, requests[name])
        ids = np.zeros(size, np.int64)
        ids[used] = [given.get(name, OTHER) for name in names]
        return ids[texts.codes]

    def _clean(self, text: str | None, *, hashed: bool) -> str:
        """See `clean`; what it made of a text is remembered."""
        found = self._cleaned.get((text, hashed))
        if found is None:
            if len(self._cleaned) >= _REMEMBERED:
                self._cleaned.clear()
            found = self._cleaned[text, hashed] = clean(text, self._secret, hashed=hashed)
        return found

    def _given(self, axis: Axis, costs: Mapping[str, float], clock: float) -> Mapping[str, int]:
        """The ids of those names that have one or get one now; late names are judged when all others are served."""
        places = self._axes[axis]
        given: dict[str, int] = {}

        def give(name: str) -> None:
            given[name] = number = self._names.id(axis.name, name)
            if number > OTHER:
                places.take(number, name, costs[name], clock)

        for name in costs:
            if self._names.find(axis.name, name) is not None or (places.open and not self._names.full(axis)):
                give(name)
        late = {name: cost for name, cost in costs.items() if name not in given}
        if late and not self._names.full(axis):
            places.weigh(late)
            for name in places.deserving(late):
                give(name)
        return given

    def _within(self, wanted: Combination, count: float) -> Combination:
        """The first of ever fewer names under which the limits let a group be counted; `other` in all always fits."""
        if wanted in self._known:
            return wanted
        limit = ""
        for one in _fallbacks(wanted):
            fresh = [part for part in _parted(one) if part not in self._parts]
            paired = one[1] == OTHER or one[:2] in self._pairs or self._named_pairs < self._limits.tenant_routes
            fits = not fresh or self.series + sum(map(self._size, fresh)) <= self._limits.series
            if (paired and fits) or one[:3] == (OTHER, OTHER, OTHER):
                break
            limit = limit or ("series" if paired else "tenant_route")
        if limit:
            self._spill(limit, count)
        self._take(fresh)
        self._known.add(one)
        return one

    def _take(self, parts: Iterable[Combination]) -> None:
        """Let parts have series."""
        for part in parts:
            self._parts.add(part)
            self.series += self._size(part)
            self._named_pairs += _is_pair(part) and part[1] != OTHER

    def _size(self, part: Combination) -> int:
        """Series of a part; those of `other` are among capwatch's own."""
        tenant, route, model, pool = part
        if {tenant, route, model} <= {OTHER, -1}:
            return 0
        if tenant < 0:
            return self._route_series
        return series.MODEL if model >= 0 else series.POOL if pool >= 0 else series.PAIR

    def _count(self) -> None:
        """Count anew what has series."""
        self.series = self._own + sum(map(self._size, self._parts))
        """How many series there can be at most, with the names given so far."""
        self._named_pairs = sum(_is_pair(part) and part[1] != OTHER for part in self._parts)

    def _retire(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let pairs go, with their series."""
        gone = set(pairs)
        for pair in gone:
            self._pairs.pop(pair, None)
        if gone:
            self._known = {one for one in self._known if one[:2] not in gone}
            self._parts = {part for part in self._parts if part[:2] not in gone}
            self._count()

    def _forget(self) -> None:
        """Free the places of names that are gone; the series of a route that is gone go with it."""
        for axis, places in self._axes.items():
            known = self._names.texts(axis.name)
            gone = {number for number in places.seen if number not in known}
            places.leave(gone)
            if axis is ROUTE and gone:
                self._parts = {part for part in self._parts if part[1] not in gone}
                self._count()

    def _spill(self, limit: str, count: float) -> None:
        self.overflow[limit] = self.overflow.get(limit, 0.0) + count

    def absorb(
        self,
        models: Iterable[tuple[int, int, int]],
        pools: Iterable[tuple[int, int, int]],
        retired: Iterable[tuple[int, int]],
        clock: float,
    ) -> None:
        """Take over what was decided elsewhere up to ``clock``: pairs retired, then ids counted.

        Those are (tenant, route, model) and (tenant, route, pool). Names that are gone are those that `Names` no
        longer has. What late names weigh is not known from it.
        """
        self._retire(retired)
        counted: set[Combination] = set()
        for tenant, route, model in models:
            counted |= {(tenant, route, -1, -1), (tenant, route, model, -1)}
            self._pairs[tenant, route] = clock
            for axis, number in ((TENANT, tenant), (ROUTE, route), (MODEL, model)):
                if number > OTHER:
                    self._axes[axis].take(number, "", 0.0, clock)
        for tenant, route, pool in pools:
            counted |= {(tenant, route, -1, pool), (-1, route, -1, pool)}
        self._take(counted - self._parts)
        self._forget()

    def save(self) -> object:
        """Everything remembered, as plain builtins. The names themselves are saved by their owner."""
        return {
            "axes": [
                [list(one.seen.items()), list(one.cost.items()), [[name, *two] for name, two in one.waiting.items()]]
                for one in self._axes.values()
            ],
            "pairs": [[*pair, seen] for pair, seen in self._pairs.items()],
            "parts": sorted(self._parts),
            "swept": self._swept,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Remember again what `save` gave."""
        for places, (seen, cost, waiting) in zip(self._axes.values(), saved["axes"], strict=True):
            places.seen, places.cost = dict(seen), dict(cost)
            places.waiting = {name: (weight, inherited) for name, weight, inherited in waiting}
        self._pairs = {(tenant, route): seen for tenant, route, seen in saved["pairs"]}
        self._parts = {(tenant, route, model, pool) for tenant, route, model, pool in saved["parts"]}
        self._known = set()
        self._swept = saved["swept"]
        self._count()


def _parted(one: Combination) -> tuple[Combination, ...]:
    """The parts of a combination, each with series of its own."""
    tenant, route, model, pool = one
    return (tenant, route, -1, -1), (tenant, route, model, -1), (tenant, route, -1, pool), (-1, route, -1, pool)


def _fallbacks(wanted: Combination) -> Iterable[Combination]:
    """A combination, then others with ever fewer names."""
    tenant, route, model, pool = wanted
    steps = (route, model), (route, OTHER), (OTHER, model), (OTHER, OTHER)
    return dict.fromkeys([*((tenant, *step, pool) for step in steps), (OTHER, OTHER, OTHER, pool)])


def _is_pair(part: Combination) -> bool:
    return part[0] >= 0 and part[2:] == (-1, -1)
