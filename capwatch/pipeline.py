"""Batches in, increments out: every decision about a request is made here, once, in the order the contract gives.

No I/O and no clock: the time comes with each call. One pipeline is one reading thread's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from capwatch import cost, slo
from capwatch.cards import Cards
from capwatch.classes import Classified, Classifier
from capwatch.coldstarts import ColdStarts
from capwatch.config.schema import Config
from capwatch.dedupe import Seen as SeenIds
from capwatch.dialect import Decoded
from capwatch.drifting.watch import Drifting
from capwatch.eventclock import FUTURE_S, EventClock
from capwatch.hearing import Hearing
from capwatch.labels import Labels, own
from capwatch.ledger import CLASS, LASTING, POOL, SOURCE, Delta, Gathering, Names, Table, Totals
from capwatch.load.tables import FLOW, OVERLOADED, PHASES
from capwatch.memory import Memory
from capwatch.meters import commits, coverage, files, rollup, shelf, sources
from capwatch.meters.classes import COUNTS
from capwatch.meters.costs import ABANDONED, COST
from capwatch.meters.requests import TOKENS
from capwatch.meters.visits import VISITS
from capwatch.origin import Origin
from capwatch.record import Batch, Bools, Floats, Ints, zeroed
from capwatch.seen import Groups, Meter, Seen
from capwatch.waits import Waits
from capwatch.watching import Watching


class Pipeline:
    """Turns what decoders found into increments of the ledger."""

    def __init__(self, config: Config, names: Names | None = None, *, secret: bytes = b"", kept: bool = True) -> None:
        """A pipeline for a configuration.

        Args:
            config: the effective configuration.
            names: names given before, when a state is continued.
            secret: keys the hashes of labels that must not be shown.
            kept: whether any of it is saved; if not, there is no history, and ids go by Python's cheaper hash.
        """
        self.names = names or Names()
        self.meters = shelf(config, history=kept)
        self._time = EventClock()
        self._config = config
        self._classifier = Classifier(config)
        bounds = sum(bound is not None for one in config.slo for bound in (one.ttft, one.tpot, one.e2e))
        self._labels = Labels(
            config.limits,
            self.names,
            own=own(len(config.sources), len(self._classifier.pools), len(self._classifier.classes), bounds),
            bounds=bounds,
            secret=secret,
            hash_tenants=config.privacy.tenant == "hash",
        )
        self._kept = kept
        self._into = Gathering(self.names, natives=kept)
        self.engines = Hearing(self._into, self._time)
        pools = {self.names.id(POOL.name, pool.name): pool for pool in self._classifier.pools}
        ids = SeenIds(config.dedupe.window, None if kept else hash)
        self.cards = Cards(self._into, config.pools)
        watching = Watching(config, pools, self._into, self.engines.live)
        self._memory = Memory(
            ids, watching, self.cards, ColdStarts(self._into, self._time), Waits(self._into, self._time)
        )
        self.secret = secret
        self.pending = 0  # lines taken since the last freeze
        self.watches = True  # whether detectors and budgets see requests; not those of a past that is made up
        self._begin(config)

    @property
    def clock(self) -> float:
        """The event clock (s, epoch); 0 before the first event."""
        return self._time.at

    @property
    def drifts(self) -> Drifting:
        """The drift detectors."""
        return self._memory.watching.drifts

    def totals(self, *, shown: bool = True) -> Totals:
        """Empty totals with the tables of this pipeline's meters; ``shown`` False where nobody looks at metrics."""
        return empty(self.meters, natives=self._kept, shown=shown)

    def take(self, origin: Origin, decoded: Decoded, now: float) -> None:
        """Count what was decoded from some lines of one source.

        ``now`` (s, epoch) is the wall clock: it bounds the event clock, and later than five minutes ahead of it is
        the future.
        """
        source = self.names.id(SOURCE.name, origin.source)
        batch = decoded.batch
        if len(batch) and origin.counts:
            timed = self._time.move(batch.event_at, now)
            clocks = timed.clock
            self._sweep()
        else:
            clocks = np.full(len(batch), self._time.reached(now))
        repeated = self._memory.ids.repeats(origin.source, batch.dedupe_key, clocks)
        lost = decoded.lost(repeated)
        self.pending += decoded.read
        self.engines.take(origin, decoded, now)
        self._memory.take(origin, decoded, self._pools_of, now)
        newest = self._note(source, decoded, now)
        at = self.clock or newest or now
        counts = (decoded.read, decoded.counted - lost, decoded.skipped + lost)
        sources.lines(self._into, source, counts, decoded.dropped, at)
        counted = ~repeated & ~batch.part & origin.counts
        rows = np.flatnonzero(counted)
        self._hold(origin, batch, np.flatnonzero(~repeated & ~counted), now)
        if not origin.counts or not len(batch):
            return
        batch.numbers["retries"], again = self._memory.attempts.retries(origin.source, batch, rows, clocks)
        joined = self._memory.joins.join(batch, rows)
        classified = self._classifier.classify(origin.source, origin.pool, batch)
        of = classified.of
        charged = cost.of(batch, classified.prefill_rate[of], classified.decode_rate[of])
        groups = self._grouped(classified, charged.total, counted, self._time.reached(now))
        sources.duplicates(self._into, source, groups.route[of[repeated & ~batch.part]], at)
        sources.late(self._into, source, int((timed.late & counted).sum()), at)
        targets = slo.Targets(*(bound[of] for bound in classified.targets))
        seen = Seen(
            batch=batch,
            source=source,
            groups=groups,
            cost=charged,
            verdict=slo.judge(batch, targets),
            event_at=batch.event_at,
            slot=timed.slot,
            rollup_slot=timed.rollup_slot,
            timely=timed.timely,
            again=again,
            writer=origin.engine,
        )
        joined = joined[timed.rollup_slot[joined] > LASTING]
        coverage.book_joined(self._into, seen.pool[joined], seen.event_at[joined])
        if len(rows) < len(batch):
            seen = seen.take(rows)
        if len(seen.batch):
            for meter in self.meters:
                meter.measure(seen, self._into)
            if self.watches:
                self._memory.watching.watch(seen, self._into)
        sources.overflow(self._into, self._labels.overflow)
        self._labels.overflow = {}

    def tick(self, now: float) -> None:
        """Let the event clock run on, see `EventClock.run_on`, and withdraw what is too old."""
        if self._time.run_on(now):
            self._sweep()

    def book_files(self, source: str, numbers: tuple[float, ...], lost: Mapping[str, int]) -> None:
        """Set what a follower tells of a source's files, see `capwatch.meters.files.book`."""
        files.book(self._into, self.names.id(SOURCE.name, source), numbers, lost)

    def count_reset(self, reason: str) -> None:
        """Count that the state had to begin anew."""
        commits.reset(self._into, reason)

    @property
    def held(self) -> int:
        """Bytes of increments since the last freeze, about."""
        return self._into.weight(self.pending)

    def freeze(self) -> Delta:
        """The increments since the last call."""
        self.pending = 0
        self._memory.turn(self.clock)
        return self._into.freeze(self.clock)

    def inherit(self, other: Pipeline) -> None:
        """Go on from another pipeline of the same names: what it gathered and has not frozen counts here."""
        other._into.add_to(self._into)
        self.pending = other.pending
        self._time = other._time
        self.engines.inherit(other.engines)
        self._memory.inherit(other._memory)

    def news(self) -> Mapping[str, Any]:
        """What is remembered of single requests since the last call: it goes with the increments of `freeze`."""
        return {**self._memory.news(), "fleet": self.engines.news()}

    def absorb(self, delta: Delta, news: Mapping[str, Any]) -> None:
        """Remember what led to a delta that was frozen before a restart; `names` already holds its names."""
        nothing = (np.empty(0, np.int64), None)
        models, pools = (delta.sums.get(table.name, nothing)[0] for table in (TOKENS, COST))
        self._labels.absorb(_rows_of(TOKENS, models), _rows_of(COST, pools), delta.retired, delta.clock)
        self._memory.absorb(news)
        self._memory.watching.repeat(delta)
        self.engines.absorb(news.get("fleet", ()))
        self._time.at = max(self.clock, delta.clock)
        told, at = delta.levels.get(sources.LAST_EVENT.name, nothing)
        self._time.newest |= {} if at is None else dict(zip(told.tolist(), at[:, 0].tolist(), strict=True))

    def recall(self, totals: Totals) -> None:
        """After a restart, once all deltas are absorbed: take back what the totals keep for this pipeline."""
        self.drifts.recall(totals)

    def save(self) -> Mapping[str, object]:
        """What the pipeline remembers beside the totals, as plain builtins."""
        return {
            "clock": self.clock,
            "newest": list(self._time.newest.items()),
            "labels": self._labels.save(),
            "fleet": self.engines.save(),
            **self._memory.save(),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Remember again what `save` gave."""
        self._time.at = saved["clock"]
        self._time.newest = dict(saved["newest"])
        self._labels.load(saved["labels"])
        self.engines.load(saved["fleet"])
        self._memory.load(saved)

    def _begin(self, config: Config) -> None:
        """Series of capwatch itself and of pools start at 0, so that a rate sees their first step."""
        sources.begin(self._into, [self.names.id(SOURCE.name, one.name) for one in config.sources])
        commits.reset(self._into, None)
        self.drifts.begin()
        pools = self._pools = np.array([self.names.id(POOL.name, pool.name) for pool in self._classifier.pools])
        classes = self._classes = np.array([self.names.id(CLASS.name, name) for name in self._classifier.classes])
        both = COUNTS.pack(np.repeat(pools, len(classes)), np.tile(classes, len(pools)))
        started = (FLOW, PHASES, VISITS, ABANDONED, OVERLOADED)
        for table, keys in (*((table, pools) for table in started), (COUNTS, both)):
            self._into.add(table, keys, *(np.zeros(len(keys)) for _ in table.columns))

    def _pools_of(self, origin: Origin, batch: Batch) -> Ints:
        """The pool of each request."""
        classified = self._classifier.classify(origin.source, origin.pool, batch)
        return self._pools[classified.pool[classified.of]]

    def _note(self, source: int, decoded: Decoded, now: float) -> float | None:
        """Note the newest event of a source, and return it (s, epoch)."""
        told = [sample.at for _, sample in decoded.samples if sample.at is not None]
        newest = self._time.note(source, np.concatenate([decoded.batch.event_at, np.array(told)]), now)
        if newest is not None:
            sources.newest(self._into, source, newest)
        return newest

    def _grouped(self, classified: Classified, worth: Floats, counted: Bools, clock: float) -> Groups:
        """Give each group its names, by what those of its requests that count are worth."""
        groups = len(classified.pool)
        counts = np.bincount(classified.of, counted, groups).astype(np.float64, copy=False)
        worth = np.where(counted, zeroed(worth), 0.0)
        costs = np.bincount(classified.of, worth, groups).astype(np.float64, copy=False)
        pool = self._pools[classified.pool]
        labelled = self._labels.label(classified.texts, pool, counts, costs, clock)
        return Groups(
            of=classified.of,
            tenant=labelled.tenant,
            route=labelled.route,
            model=labelled.model,
            pool=pool,
            klass=self._classes[classified.klass],
        )

    def _hold(self, origin: Origin, batch: Batch, rows: Ints, now: float) -> None:
        """Keep requests that are not counted here for the rows that count them."""
        rows = rows[batch.event_at[rows] <= now + FUTURE_S]
        if len(rows):
            self._memory.joins.hold(batch, rows)
            whole = rows[~batch.part[rows] & self._time.takes(coverage.COVER, batch.event_at[rows], now)]
            coverage.book_records(self._into, batch, whole, self._pools_of(origin, batch))

    def _sweep(self) -> None:
        """Retire what the clock says is silent, before it is heard of again: who returns starts anew."""
        self._memory.expire(self.clock)
        self.engines.expire()
        self._labels.sweep(self.clock)
        if self._labels.retired:
            rollup.retire(self.names, self._labels.retired)
            self._into.retire(self._labels.retired)
            self._labels.retired = []


def empty(meters: Sequence[Meter], *, natives: bool = True, shown: bool = True) -> Totals:
    """Totals without anything in them, with the tables of these meters; followers serve what is shown alone."""
    tables = [table for meter in meters for table in meter.tables]
    sketches = [sketch for meter in meters for sketch in meter.sketches]
    followers = [follower() for meter in meters for follower in meter.followers if shown]
    return Totals(tables, sketches, followers, natives=natives)


def _rows_of(table: Table, keys: Ints) -> Iterable[tuple[int, int, int]]:
    """The ids behind keys of a table with three axes."""
    return zip(*(ids.tolist() for ids in table.unpack(keys)), strict=True)
