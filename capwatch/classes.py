"""Which pool serves a request, which class it is, which targets it has: matches of the configuration, on columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.config.schema import DEFAULT_POOL, Config, Pool
from capwatch.record import Batch, Floats, Ints, Texts
from capwatch.slo import Targets

NO_CLASS: Final = "unknown"
"""The class of a request that no configured class fits, and of all where none is configured."""
_LABELS: Final = ("tenant", "route", "model", "engine")
_REMEMBERED: Final = 50_000
"""Combinations of labels whose matches are remembered; hostile labels must not grow the memory."""


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
        none = (None, None, None)
        bounds = [*((slo.ttft, slo.tpot, slo.e2e) for slo in config.slo), none]
        self._bounds = np.array([[math.nan if bound is None else bound for bound in row] for row in bounds], np.float64)
        self._known: dict[tuple[str, str], dict[tuple[str | None, ...], int]] = {}

    def classify(self, source: str, pool: str | None, batch: Batch) -> Classified:
        """Match every request of a batch.

        ``pool`` is the pool that the source's configuration names; where None, `match` of the pools decides.
        """
        columns = {name: batch.labels[name] for name in _LABELS}
        combined = np.zeros(len(batch), np.int64)
        for column in columns.values():
            if combined.max(initial=0) >= 2**63 // len(column.names) - 1:  # would not fit: number what there is anew
                combined = np.unique(combined, return_inverse=True)[1]
            combined = combined * len(column.names) + column.codes
        first, of = grouped(combined)
        texts = {name: Texts(column.codes[first], column.names) for name, column in columns.items()}
        words = (map(column.names.__getitem__, column.codes.tolist()) for column in texts.values())
        labels = list(zip(*words, strict=True))
        known = self._known.setdefault((source, pool or ""), {})
        if len(known) >= _REMEMBERED:
            known.clear()
        for one in set(labels) - known.keys():
            known[one] = self._match(source, pool, one)
        found = np.fromiter(map(known.__getitem__, labels), np.int64, len(first))
        found, slo = np.divmod(found, len(self._bounds))
        place, klass = np.divmod(found, len(self.classes))
        targets = Targets(*self._bounds[slo].T)
        return Classified(
            of,
            texts,
            place,
            klass,
            targets,
            self._prefill[place],
            self._decode[place],
        )

    def _match(self, source: str, pool: str | None, texts: tuple[str | None, ...]) -> int:
        """Positions of pool, class and targets, as one number."""
        labels = {"source": source, **{name: text or "" for name, text in zip(_LABELS, texts, strict=True)}}
        config = self._config
        place = self._place.get(pool or "")
        if place is None:
            hits = (i for i, one in enumerate(self.pools) if one.name != DEFAULT_POOL and one.match.hits(labels))
            place = next(hits, self._place[DEFAULT_POOL])
        klass = next((i for i, one in enumerate(config.classes) if one.match.hits(labels)), len(config.classes))
        slo = next((i for i, one in enumerate(config.slo) if one.match.hits(labels)), len(config.slo))
        return (place * len(self.classes) + klass) * len(self._bounds) + slo


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
