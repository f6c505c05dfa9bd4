"""Single requests of raw logs as columns, by the daemon's own decoders, joins, classes, costs and verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch import sourcing
from capwatch.console.progress import Progress
from capwatch.errors import UsageError
from capwatch.ledger import CLASS, MODEL, POOL, ROUTE, SOURCE, TENANT, Follower, Gathering, Sketch, Table, Totals
from capwatch.ledger.series import Series
from capwatch.observed.source import Given
from capwatch.record import DURATIONS, TIMES, Batch, Bools, Floats, Ints, Texts
from capwatch.replay import replay, told_until
from capwatch.seen import Seen

NUMBERS: Final = (*TIMES, *DURATIONS, "prompt_tokens", "cached_tokens", "output_tokens")
"""Columns that are taken over from the records."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that count, as columns of length n in the order of the logs; NaN where a log does not tell.

    Attributes:
        numbers: float64[n] each, of `NUMBERS`, `tpot_s`, and `prefill_cost` and `decode_cost` in replica-seconds.
        labels: `tenant`, `route`, `model`, `pool`, `class` as they are shown, within the limits; `engine` as told.
        outcome: int64[n], index into `capwatch.record.OUTCOMES`, −1 where not told.
        verdict: int64[n], index into `capwatch.slo.VERDICTS`.
        stream: int64[n], 1, 0, or −1 where not told.
        cache_hit: bool[n], answered by the gateway's response cache.
    """

    numbers: Mapping[str, Floats]
    labels: Mapping[str, Texts]
    outcome: Ints
    verdict: Ints
    stream: Ints
    cache_hit: Bools

    def __len__(self) -> int:
        return len(self.outcome)

    def __getitem__(self, name: str) -> Floats:
        """A column of numbers."""
        return self.numbers[name]

    def take(self, rows: Bools | Ints) -> Requests:
        """Some of the requests, by mask, or by index in that order."""
        return Requests(
            {name: column[rows] for name, column in self.numbers.items()},
            {name: Texts(column.codes[rows], column.names) for name, column in self.labels.items()},
            self.outcome[rows],
            self.verdict[rows],
            self.stream[rows],
            self.cache_hit[rows],
        )

    @property
    def arrived(self) -> Floats:
        """When each came, s since the epoch; where that is not told, when it ended."""
        started = self["started_at"]
        return np.where(np.isnan(started), self["finished_at"], started)

    def where(self, label: str, name: str) -> Bools:
        """bool[n], which have this label."""
        column = self.labels[label]
        found: Bools = np.array([one == name for one in column.names], np.bool_)[column.codes]
        return found

    def inside(self, pool: str | None, since: float, until: float) -> Requests:
        """Those of a pool, or of all, that arrived in a window of seconds since the epoch.

        Raises:
            UsageError: there is no request of that pool.
        """
        kept = (self.arrived >= since) & (self.arrived < until)
        if pool is not None:
            if pool not in self.labels["pool"].names:
                names = ", ".join(str(name) for name in self.labels["pool"].names) or "none"
                raise UsageError(f"--pool: no request of {pool!r}; there are {names}")
            kept &= self.where("pool", pool)
        return self.take(kept)


class Collector:
    """A meter that keeps every request."""

    tables: Sequence[Table] = ()
    sketches: Sequence[Sketch] = ()
    followers: Sequence[Callable[[], Follower]] = ()

    def __init__(self, engines: Collection[str] = ()) -> None:
        """Begin; ``engines`` are the sources whose logs engines write, each about itself."""
        self.parts: list[Requests] = []
        self._engines = engines

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Keep a batch; names are looked up now, since they may be retired later."""
        batch, groups = seen.batch, seen.groups
        numbers = {name: batch[name] for name in NUMBERS}
        numbers |= {"tpot_s": batch.tpot_s, "prefill_cost": seen.cost.prefill, "decode_cost": seen.cost.decode}
        axes = {TENANT: groups.tenant, ROUTE: groups.route, MODEL: groups.model, POOL: groups.pool, CLASS: groups.klass}
        labels = {}
        for axis, ids in axes.items():
            texts = into.names.texts(axis.name)
            named = Texts.of([texts[one] for one in ids.tolist()])
            labels[axis.name] = Texts(named.codes[groups.of], named.names)
        labels["engine"] = batch.labels["engine"]
        if into.names.text(SOURCE.name, seen.source) in self._engines and labels["engine"].names == [None]:
            labels["engine"] = Texts(labels["engine"].codes, [seen.writer])
        self.parts.append(Requests(numbers, labels, batch.outcome, seen.verdict, batch.stream, batch.cache_hit))

    def show(self, totals: Totals) -> Iterable[Series]:  # noqa: ARG002 - it keeps, and shows nothing
        """Nothing."""
        return ()

    def joined(self) -> Requests:
        """All that was kept."""
        parts = self.parts or [_none()]
        return Requests(
            {name: np.concatenate([part.numbers[name] for part in parts]) for name in parts[0].numbers},
            {name: Texts.join([part.labels[name] for part in parts]) for name in parts[0].labels},
            np.concatenate([part.outcome for part in parts]),
            np.concatenate([part.verdict for part in parts]),
            np.concatenate([part.stream for part in parts]),
            np.concatenate([part.cache_hit for part in parts]),
        )


def requests(source: Given, what: str, now: float) -> Requests:
    """Read the logs of a source of that kind, of before ``now`` (s, epoch); progress is shown as ``what``.

    Raises:
        UsageError: a file cannot be read.
    """
    config, logs = source.config, source.logs
    assert config is not None  # noqa: S101 - that is what logs come with
    collector = Collector({log.source.name for log in logs if log.source.format in sourcing.engines()})
    progress = Progress(sum(os.path.getsize(log.path) for log in logs), what)
    for _, _, done in replay(config, logs, told_until(config, logs, now), also=[collector]):
        progress.show(done)
    progress.end()
    return collector.joined()


def _none() -> Requests:
    """No request, with all columns."""
    batch = Batch.of([])
    nothing = np.empty(0)
    numbers = {name: batch[name] for name in NUMBERS}
    numbers |= dict.fromkeys(("tpot_s", "prefill_cost", "decode_cost"), nothing)
    labels = {name: Texts.of([]) for name in ("tenant", "route", "model", "pool", "class", "engine")}
    return Requests(numbers, labels, batch.outcome, batch.outcome, batch.stream, batch.cache_hit)
