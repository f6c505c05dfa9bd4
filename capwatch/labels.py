"""The series budget (contract, section 5): which tenants, routes, models and pairs have series of their own.

Promises, whatever the order of arrival: never more names than the limits; a request's label is decided when it is
counted and never moved; what has no name of its own is `other`, so that sums stay right; a name keeps its series
while it has traffic within seven days, then it is retired.

Three quarters of the names go to whoever comes first. The last quarter is kept for late names that are dearer than
the median named one, or, where `other` has grown, four times dearer than its mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from statistics import median
from typing import Final

import numpy as np

from capwatch.config.schema import Limits
from capwatch.ledger import MODEL, OTHER, ROUTE, TENANT, UNKNOWN, Axis, Names
from capwatch.record import Floats, Ints, Texts

LONGEST: Final = 128
"""Characters of a label value (contract, section 5)."""
RETIRE_S: Final = 7 * 86400.0
SWEEP_S: Final = 3600.0
"""Retirement is looked for once an hour of event time: soon enough for a rule of seven days."""
RESERVE: Final = 4
"""One part in four of the names is kept for late ones (contract, section 5)."""
WAITING: Final = 4
"""Names in `other` are weighed in a table of this many times the limit (Space-Saving, Metwally 2005)."""
DEARER: Final = 4.0
"""How many times the mean of `other` a late name must cost; fewer than that many names are no basis for a mean."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SECRET = re.compile(
    r"[^\s@]+@[^\s@]+\.[^\s@]+"  # an e-mail address
    r"|(?:Bearer\s|(?:sk|pk|rk|ak|hf|gsk|ghp|gho|ghs|glpat|xox[abps])[-_]|AKIA|AIza|eyJ)\S{6,}.*"  # keys by prefix
    r"|(?=\S*[A-Z])(?=\S*[a-z])(?=\S*\d)[A-Za-z0-9+/_=]{32,}",  # a long random word
    re.DOTALL,
)


def clean(text: str | None, secret: bytes = b"", *, hashed: bool = False) -> str:
    r"""A text fit for a label: no control characters, at most 128 characters, `unknown` if empty.

    What looks like a key or an e-mail address, and everything where ``hashed``, becomes a keyed hash.

    >>> clean("a\nb"), clean(""), clean("x" * 200) == "x" * 128
    ('a�b', 'unknown', True)
    >>> clean("jane@example.org").startswith("hashed-")
    True
    """
    if text is None or not text.strip():
        return "unknown"
    if hashed or _SECRET.fullmatch(text.strip()):
        digest = blake2s(text.strip().encode("utf-8", "replace"), key=secret[:32], digest_size=8)
        return f"hashed-{digest.hexdigest()}"
    return _CONTROL.sub("\ufffd", text.strip()[:LONGEST])


@dataclass(slots=True)
class _Named:
    """The names of one axis, and what waits in `other`."""

    axis: Axis
    limit: int
    seen: dict[int, float] = field(default_factory=dict)
    """Id → event time of its last request."""
    cost: dict[int, float] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)
    """Name → cost since it was first weighed (an upper bound, see `WAITING`)."""

    @property
    def first_come(self) -> int:
        return self.limit - self.limit // RESERVE

    def weigh(self, name: str, cost: float) -> None:
        """Add to a waiting name; when the table is full the cheapest gives its place and its weight."""
        if name not in self.waiting and len(self.waiting) >= WAITING * max(self.limit, RESERVE):
            cheapest = min(self.waiting, key=self.waiting.__getitem__)
            cost += self.waiting.pop(cheapest)
        self.waiting[name] = self.waiting.get(name, 0.0) + cost

    def deserves(self, name: str) -> bool:
        """Whether a waiting name has earned one of the places kept for late ones."""
        cost = self.waiting[name]
        if cost <= 0:
            return False
        others = [weight for other, weight in self.waiting.items() if other != name]
        if len(others) >= DEARER and cost > DEARER * sum(others) / len(others):
            return True
        return bool(self.cost) and cost > median(self.cost.values())


@dataclass(frozen=True, slots=True)
class Labelled:
    """int64[g] ids of each group's labels, capped; see `capwatch.ledger.names`."""

    tenant: Ints
    route: Ints
    model: Ints


class Labels:
    """Gives names to what batches tell. All of it is plain values: `save` and `load`."""

    def __init__(self, limits: Limits, names: Names, *, secret: bytes = b"", hash_tenants: bool = False) -> None:
        self._limits = limits
        self._names = names
        self._secret = secret
        self._hash_tenants = hash_tenants
        self._axes = {
            TENANT: _Named(TENANT, limits.tenants),
            ROUTE: _Named(ROUTE, limits.routes),
            MODEL: _Named(MODEL, limits.models),
        }
        self._pairs: dict[tuple[int, int], float] = {}
        self._triples: set[tuple[int, int, int]] = set()
        self._swept = 0.0
        self.overflow: dict[str, float] = {}
        """Requests counted as `other`, by limit, since they were last taken."""
        self.retired: list[tuple[int, int]] = []
        """See `capwatch.ledger.Delta.retired`; since they were last taken."""

    def label(self, texts: Mapping[str, Texts], counts: Floats, cost: Floats, clock: float) -> Labelled:
        """The ids of tenant, route and model of groups of requests with equal labels.

        Args:
            texts: by label, g texts as the log tells them.
            counts: float64[g], requests in each group.
            cost: float64[g], replica-seconds of each group.
            clock: the event clock, s; it never goes back.
        """
        tenant, route, model = (
            self._column(axis, texts[axis.name], counts, cost, clock) for axis in (TENANT, ROUTE, MODEL)
        )
        tenant, route = self._pair(tenant, route, counts, clock)
        return Labelled(tenant, route, self._triple(tenant, route, model, counts))

    def sweep(self, clock: float) -> None:
        """Retire what has been silent for seven days of event time."""
        if clock - self._swept < SWEEP_S:
            return
        self._swept = clock
        old = clock - RETIRE_S
        gone = {pair for pair, seen in self._pairs.items() if seen < old}
        for pair in gone:
            del self._pairs[pair]
        self._triples = {triple for triple in self._triples if triple[:2] not in gone}
        self.retired += sorted(gone)
        alive = {TENANT: {t for t, _ in self._pairs}, ROUTE: {r for _, r in self._pairs}}
        alive[MODEL] = {m for _, _, m in self._triples}
        for axis, named in self._axes.items():
            for number in [n for n, seen in named.seen.items() if seen < old and n not in alive[axis]]:
                del named.seen[number]
                named.cost.pop(number, None)
                self._names.forget(axis.name, number)

    def _column(self, axis: Axis, texts: Texts, counts: Floats, cost: Floats, clock: float) -> Ints:
        """One label: each distinct text is judged once."""
        size = len(texts.names)
        costs = np.bincount(texts.codes, cost, size).tolist()
        requests = np.bincount(texts.codes, counts, size).tolist()
        hashed = self._hash_tenants and axis is TENANT
        ids = [
            self._name(axis, clean(text, self._secret, hashed=hashed), costs[i], requests[i], clock)
            if requests[i]
            else 0
            for i, text in enumerate(texts.names)
        ]
        return np.array(ids, np.int64)[texts.codes]

    def _name(self, axis: Axis, name: str, cost: float, count: float, clock: float) -> int:
        named = self._axes[axis]
        number = self._names.find(axis.name, name)
        if number in (UNKNOWN, OTHER):
            return number
        if number is None:
            if not self._earned(named, name, cost):
                self._spill(axis.name, count)
                return OTHER
            named.waiting.pop(name, None)
            number = self._names.id(axis.name, name)
        named.seen[number] = clock
        named.cost[number] = named.cost.get(number, 0.0) + cost
        return number

    def _earned(self, named: _Named, name: str, cost: float) -> bool:
        if len(named.seen) < named.first_come and not self._names.full(named.axis):
            return True
        named.weigh(name, cost)
        if len(named.seen) >= named.limit or self._names.full(named.axis):
            return False
        return named.deserves(name)

    def _pair(self, tenant: Ints, route: Ints, counts: Floats, clock: float) -> tuple[Ints, Ints]:
        """Turn the routes of tenants beyond the limit of pairs to `other`; past the series limit the tenants too."""
        pairs = list(zip(tenant.tolist(), route.tolist(), strict=True))
        if self._pairs.keys() >= set(pairs):
            self._pairs.update(dict.fromkeys(pairs, clock))
            return tenant, route
        decided = [self._own_pair(pair, count, clock) for pair, count in zip(pairs, counts.tolist(), strict=True)]
        given = np.array(decided, np.int64).reshape(len(decided), 2)
        return given[:, 0], given[:, 1]

    def _own_pair(self, pair: tuple[int, int], count: float, clock: float) -> tuple[int, int]:
        tenant, _ = pair
        for candidate, limit in ((pair, "tenant_route"), ((tenant, OTHER), "series"), ((OTHER, OTHER), "")):
            if candidate in self._pairs or not limit or self._room(candidate):
                self._pairs[candidate] = clock
                return candidate
            self._spill(limit, count)
        raise AssertionError("the last candidate always fits")

    def _room(self, pair: tuple[int, int]) -> bool:
        """Whether a new pair fits; `other` and `unknown` come on top of the limit of pairs, not of series."""
        within = pair[1] == OTHER or len(self._pairs) < self._limits.tenant_routes
        return within and self.series + PAIR_SERIES <= self._limits.series

    def _triple(self, tenant: Ints, route: Ints, model: Ints, counts: Floats) -> Ints:
        """Turn models to `other` where a further series would pass the series limit."""
        triples = list(zip(tenant.tolist(), route.tolist(), model.tolist(), strict=True))
        if self._triples.issuperset(triples):
            return model
        return np.array([self._own_model(one, n) for one, n in zip(triples, counts.tolist(), strict=True)], np.int64)

    def _own_model(self, triple: tuple[int, int, int], count: float) -> int:
        if triple in self._triples:
            return triple[2]
        if self.series + TRIPLE_SERIES > self._limits.series:
            self._spill("series", count)
            triple = (*triple[:2], OTHER)
        self._triples.add(triple)
        return triple[2]

    @property
    def series(self) -> int:
        """How many series the names given so far can have at most."""
        return len(self._pairs) * PAIR_SERIES + len(self._triples) * TRIPLE_SERIES

    def _spill(self, limit: str, count: float) -> None:
        self.overflow[limit] = self.overflow.get(limit, 0.0) + count

    def save(self) -> object:
        """Everything remembered, as plain builtins. The names themselves are saved by their owner."""
        return {
            "axes": [
                [list(n.seen.items()), list(n.cost.items()), list(n.waiting.items())] for n in self._axes.values()
            ],
            "pairs": [[*pair, seen] for pair, seen in self._pairs.items()],
            "triples": sorted(self._triples),
            "swept": self._swept,
        }

    def load(self, saved: Mapping[str, Iterable[Iterable[object]]]) -> None:
        """Remember again what `save` gave."""
        for named, (seen, cost, waiting) in zip(self._axes.values(), saved["axes"], strict=True):
            named.seen, named.cost, named.waiting = dict(seen), dict(cost), dict(waiting)  # type: ignore[call-overload]
        self._pairs = {(t, r): seen for t, r, seen in saved["pairs"]}  # type: ignore[misc]
        self._triples = {tuple(triple) for triple in saved["triples"]}  # type: ignore[misc]
        self._swept = saved["swept"]  # type: ignore[assignment]


PAIR_SERIES: Final = 45
"""Series that one tenant-route pair can have: 5 summaries of 5, goodput 11, cost 3 in up to 3 pools."""
TRIPLE_SERIES: Final = 6
"""Series of one tenant-route-model: three kinds of tokens and, as a rule, up to three outcomes."""
