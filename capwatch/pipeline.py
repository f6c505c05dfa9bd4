"""Batches in, increments out: every decision about a request is made here, once, in the order the contract gives.

No I/O and no clock: the time comes with each call. One pipeline is one reading thread's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from capwatch import cost, slo
from capwatch.classes import Classified, Classifier
from capwatch.config.schema import Config
from capwatch.dedupe import Seen as SeenIds
from capwatch.dialect import Decoded
from capwatch.labels import Labels
from capwatch.ledger import CLASS, LASTING, POOL, SOURCE, Delta, Gathering, Names, Totals
from capwatch.meters import rollup, shelf, sources
from capwatch.meters.classes import COUNTS
from capwatch.meters.costs import ABANDONED
from capwatch.meters.flow import FLOW, PHASES
from capwatch.metrics import DROP_REASONS
from capwatch.record import Batch, Bools, Floats, Ints
from capwatch.seen import ROLLUP_S, ROLLUP_SLOTS, Groups, Meter, Seen
from capwatch.sketch import SLICE, SLICES

AHEAD_S: Final = 60.0
"""The event clock is never more than this ahead of the wall clock (contract, section 4)."""
FUTURE_S: Final = 300.0
"""A record further ahead than this counts in totals only."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where lines come from."""

    source: str
    pool: str | None = None
    """The pool that the source's configuration names, if any."""
    counts: bool = True
    """Whether its records are requests of their own (contract, section 2a)."""


class Pipeline:
    """Turns what decoders found into increments of the ledger."""

    def __init__(
        self,
        config: Config,
        names: Names | None = None,
        *,
        secret: bytes = b"",
        kept: bool = True,
    ) -> None:
        """A pipeline for a configuration.

        Args:
            config: the effective configuration.
            names: names given before, when a state is continued.
            secret: keys the hashes of labels that must not be shown.
            kept: whether anything of it is saved; where not, there is no history to fill, and ids may be told apart
                by Python's own hash, which is cheaper but another one in each process.
        """
        self.names = names or Names()
        self.meters = shelf(config, history=kept)
        self.clock = 0.0
        """Event clock, s: the newest event time, bounded by the wall clock."""
        self._told_at = 0.0
        self._config = config
        self._classifier = Classifier(config)
        hashed = config.privacy.tenant == "hash"
        self._labels = Labels(config.limits, self.names, secret=secret, hash_tenants=hashed)
        self._ids = SeenIds(config.dedupe.window, None if kept else hash)
        self._into = Gathering(self.names)
        self._begin(config)

    def totals(self) -> Totals:
        """Empty totals with the tables of this pipeline's meters."""
        return empty(self.meters)

    def take(self, origin: Origin, decoded: Decoded, now: float) -> None:
        """Count what was decoded from some lines of one source.

        ``now`` (s, epoch) is the wall clock: it bounds the event clock, and later than five minutes ahead of it is
        the future.
        """
        source = self.names.id(SOURCE.name, origin.source)
        batch = decoded.batch
        repeated = self._repeats(origin, batch)
        lost = _lines_lost(decoded, repeated)
        counts = (decoded.read, decoded.counted - lost, decoded.skipped + lost)
        sources.lines(self._into, source, counts, decoded.dropped)
        if not len(batch) or not origin.counts:
            return
        timely, late, rollup_slot = self._time(batch.event_at, now)
        classified = self._classifier.classify(origin.source, origin.pool, batch)
        of = classified.of
        charged = cost.of(batch, classified.prefill_rate[of], classified.decode_rate[of])
        groups = self._grouped(classified, np.where(repeated, 0.0, np.nan_to_num(charged.total)))
        sources.duplicates(self._into, groups.route[of[repeated]])
        sources.late(self._into, source, int((late & ~repeated).sum()))
        targets = slo.Targets(*(bound[of] for bound in classified.targets))
        seen = Seen(
            batch=batch,
            source=source,
            groups=groups,
            cost=charged,
            verdict=slo.judge(batch, targets),
            event_at=batch.event_at,
            slot=np.where(timely, batch.event_at // SLICE, LASTING).astype(np.int64),
            rollup_slot=rollup_slot,
            timely=timely,
        )
        if repeated.any():
            seen = _rows(seen, np.flatnonzero(~repeated))
        if len(seen.batch):
            for meter in self.meters:
                meter.measure(seen, self._into)
        self._settle()

    def tick(self, now: float) -> None:
        """Let the event clock run on with the wall clock while the logs are silent."""
        if self._told_at and now > self._told_at:
            self.clock += now - self._told_at
            self._told_at = now
            self._settle()

    def freeze(self) -> Delta:
        """The increments since the last call."""
        return self._into.freeze(self.clock)

    def save(self) -> Mapping[str, object]:
        """What the pipeline remembers beside the totals, as plain builtins."""
        return {"clock": self.clock, "labels": self._labels.save(), "ids": list(self._ids.save().items())}

    def load(self, saved: Mapping[str, object]) -> None:
        """Remember again what `save` gave."""
        self.clock = saved["clock"]  # type: ignore[assignment]
        self._labels.load(saved["labels"])  # type: ignore[arg-type]
        self._ids.load(saved["ids"])  # type: ignore[arg-type]

    def _begin(self, config: Config) -> None:
        """Series of capwatch itself and of pools start at 0, so that a rate sees their first step."""
        into = self._into
        for one in config.sources:
            source = self.names.id(SOURCE.name, one.name)
            sources.lines(into, source, (0, 0, 0), dict.fromkeys(DROP_REASONS, 0))
            sources.late(into, source, 0)
        sources.overflow(into, dict.fromkeys(("tenant", "route", "model", "tenant_route", "series"), 0.0))
        pools = self._pools = np.array([self.names.id(POOL.name, pool.name) for pool in self._classifier.pools])
        self._classes = np.array([self.names.id(CLASS.name, name) for name in self._classifier.classes])
        for table in (FLOW, PHASES, ABANDONED):
            into.add(table, pools, *(np.zeros(len(pools)) for _ in table.columns))
        keys = COUNTS.pack(np.repeat(pools, len(self._classes)), np.tile(self._classes, len(pools)))
        into.add(COUNTS, keys, np.zeros(len(keys)), np.zeros(len(keys)))

    def _repeats(self, origin: Origin, batch: Batch) -> Bools:
        keys = [key or one for key, one in zip(batch.dedupe_key, batch.request_id, strict=True)]
        return self._ids.repeats(origin.source, keys, self.clock)

    def _time(self, event_at: Floats, now: float) -> tuple[Bools, Bools, Ints]:
        """Turn the event clock by a batch in its order; which records are timely, which too late, and rollup slots."""
        future = event_at > now + FUTURE_S
        bounded = np.where(future, 0.0, np.minimum(event_at, now + AHEAD_S))
        running = np.maximum.accumulate(np.maximum(bounded, self.clock))
        late = ~future & (event_at // SLICE <= running // SLICE - SLICES)
        if running[-1] > self.clock:
            self.clock = float(running[-1])
        self._told_at = now
        five = event_at // ROLLUP_S
        open_ = ~future & (five > running // ROLLUP_S - ROLLUP_SLOTS)
        return ~late & ~future, late, np.where(open_, five, LASTING).astype(np.int64)

    def _grouped(self, classified: Classified, worth: Floats) -> Groups:
        counts = np.bincount(classified.of, minlength=len(classified.pool)).astype(np.float64)
        costs = np.bincount(classified.of, worth, len(classified.pool)).astype(np.float64, copy=False)
        labelled = self._labels.label(classified.texts, counts, costs, self.clock)
        return Groups(
            of=classified.of,
            tenant=labelled.tenant,
            route=labelled.route,
            model=labelled.model,
            pool=self._pools[classified.pool],
            klass=self._classes[classified.klass],
        )

    def _settle(self) -> None:
        """Pass on what the labels have decided."""
        self._labels.sweep(self.clock)
        sources.overflow(self._into, self._labels.overflow)
        if self._labels.retired:
            rollup.retire(self.names, self._labels.retired)
        self._into.retire(self._labels.retired)
        self._labels.overflow, self._labels.retired = {}, []


def empty(meters: Sequence[Meter]) -> Totals:
    """Totals without anything in them, with the tables of these meters."""
    return Totals(
        [table for meter in meters for table in meter.tables], [sketch for meter in meters for sketch in meter.sketches]
    )


def _lines_lost(decoded: Decoded, repeated: Bools) -> int:
    """Lines counted by the decoder all of whose records are repeats: they are skipped lines."""
    if not repeated.any():
        return 0
    kept = set(decoded.lines[~repeated].tolist()) | {line for line, _ in decoded.samples}
    return len(set(decoded.lines[repeated].tolist()) - kept)


def _rows(seen: Seen, index: Ints) -> Seen:
    """Some rows of what is seen."""
    return replace(
        seen,
        batch=seen.batch.take(index),
        groups=replace(seen.groups, of=seen.groups.of[index]),
        cost=cost.Cost(*(part[index] for part in seen.cost)),
        verdict=seen.verdict[index],
        event_at=seen.event_at[index],
        slot=seen.slot[index],
        rollup_slot=seen.rollup_slot[index],
        timely=seen.timely[index],
    )
