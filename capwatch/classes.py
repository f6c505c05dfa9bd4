"""Which pool serves a request, which class it is, which targets it has: matches of the configuration, on columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from capwatch.config.schema import DEFAULT_POOL, Config, Pool
from capwatch.record import Batch, Floats, Ints, Texts
from capwatch.slo import Targets

NO_CLASS: Final = "unknown"
"""The class of a request that no configured class fits, and of all where none is configured."""
_LABELS: Final = ("tenant", "route", "model", "engine")
_REMEMBERED: Final = 50_000
"""Combinations of labels whose matches are remembered; hostile labels must not grow the memory."""


class _Facts(NamedTuple):
    pool: int
    klass: int
    ttft: float
    tpot: float
    e2e: float


@dataclass(frozen=True, slots=True)
class Classified:
    """What the configuration says of each group of requests with equal labels, by position in the classifier's lists.

    ``of[n]`` is the group of each request; ``texts`` holds each group's labels and the other arrays are by group.
    """

    of: Ints
    texts: Mapping[str, Texts]
    pool: Ints
    klass: Ints
    targets: Targets
    prefill_rate: Floats
    """tokens/s of a replica of the pool."""
    decode_rate: Floats


class Classifier:
    """Matches requests by their labels as the log tells them, before any cap.

    A request whose model fits no pool belongs to the implicit pool `default`, whose rates are assumed.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        named = {pool.name: pool for pool in config.pools}
        self.pools: list[Pool] = [*config.pools, *([] if DEFAULT_POOL in named else [Pool(DEFAULT_POOL, assumed=True)])]
        self.classes = [*(one.name for one in config.classes), NO_CLASS]
        self._place = {pool.name: i for i, pool in enumerate(self.pools)}
        self._prefill = np.array([pool.prefill_tokens_per_second for pool in self.pools], np.float64)
        self._decode = np.array([pool.decode_tokens_per_second for pool in self.pools], np.float64)
        self._known: dict[tuple[str, str], dict[tuple[str | None, ...], _Facts]] = {}

    def classify(self, source: str, pool: str | None, batch: Batch) -> Classified:
        """Match every request of a batch.

        ``pool`` is the pool that the source's configuration names; where None, `match` of the pools decides.
        """
        columns = {name: batch.labels[name] for name in _LABELS}
        combined = np.zeros(len(batch), np.int64)
        for column in columns.values():
            combined = combined * len(column.names) + column.codes
        first, of = grouped(combined)
        texts = {name: Texts(column.codes[first], column.names) for name, column in columns.items()}
        labels = zip(*(map(column.names.__getitem__, column.codes.tolist()) for column in texts.values()), strict=True)
        known = self._known.setdefault((source, pool or ""), {})
        if len(known) >= _REMEMBERED:
            known.clear()
        facts = [known.get(one) or known.setdefault(one, self._match(source, pool, one)) for one in labels]
        table = np.array(facts, np.float64).reshape(len(facts), len(_Facts._fields))
        place = table[:, 0].astype(np.int64)
        return Classified(
            of,
            texts,
            place,
            table[:, 1].astype(np.int64),
            Targets(table[:, 2], table[:, 3], table[:, 4]),
            self._prefill[place],
            self._decode[place],
        )

    def _match(self, source: str, pool: str | None, texts: tuple[str | None, ...]) -> _Facts:
        labels = {"source": source, **{name: text or "" for name, text in zip(_LABELS, texts, strict=True)}}
        config = self._config
        place = self._place.get(pool or "")
        if place is None:
            hits = (i for i, one in enumerate(self.pools) if one.name != DEFAULT_POOL and one.match.hits(labels))
            place = next(hits, self._place[DEFAULT_POOL])
        klass = next((i for i, one in enumerate(config.classes) if one.match.hits(labels)), len(config.classes))
        slo = next((one for one in config.slo if one.match.hits(labels)), None)
        bounds = (slo.ttft, slo.tpot, slo.e2e) if slo else (None, None, None)
        return _Facts(place, klass, *(math.nan if bound is None else bound for bound in bounds))


def grouped(keys: Ints) -> tuple[Ints, Ints]:
    """(a row of each group, the group of each row) of equal keys; groups are in the order of their keys.

    >>> [part.tolist() for part in grouped(np.array([7, 3, 7]))]
    [[1, 0], [1, 0, 1]]
    """
    order = np.argsort(keys)
    ordered = keys[order]
    begins = np.r_[True, ordered[1:] != ordered[:-1]][: len(keys)]
    of = np.empty(len(keys), np.int64)
    of[order] = np.cumsum(begins) - 1
    return order[begins], of
