"""What engines tell, in their logs or on their pages, becomes increments: the other half of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from capwatch.config.schema import DEFAULT_POOL
from capwatch.dialect import Decoded
from capwatch.dialect.vocabulary import replica_name
from capwatch.eventclock import EventClock
from capwatch.fleet import PATIENCE_S, Fleet, News
from capwatch.ledger import ENGINE, OTHER, POOL, Gathering
from capwatch.load.flight import book_measured
from capwatch.meters import coverage
from capwatch.meters import engine as meter
from capwatch.origin import Origin
from capwatch.record import EngineSample


class Hearing:
    """The engines of one pipeline."""

    def __init__(self, into: Gathering, time: EventClock) -> None:
        """Book into a gathering; what is heard may turn the clock."""
        self._into = into
        self.time = time
        self._fleet = Fleet()

    def take(self, origin: Origin, decoded: Decoded, now: float) -> None:
        """Hear what lines tell of engines; ``now`` (s, epoch) is the wall clock."""
        for _, sample in decoded.samples:
            self.hear(origin.pool or DEFAULT_POOL, replica_name(origin.engine, sample.engine), sample, now=now)

    def hear(
        self,
        pool: str,
        engine: str,
        sample: EngineSample | None,
        *,
        patience: float = PATIENCE_S,
        state: str | None = None,
        grown: Mapping[str, float] | None = None,
        now: float | None = None,
    ) -> None:
        """Take in what an engine told, see `Fleet.hear`.

        ``grown`` is by how much its counters grew since it was heard before, see `Vocabulary.counters`; ``now``
        (s, epoch) the wall clock, by default the time of the sample.
        """
        news = self._fleet.hear(pool, engine, sample, patience=patience, state=state)
        self._book([news] if news else [], now)
        if news is None or sample is None or sample.at is None:
            return
        self.time.heard_at = max(self.time.heard_at, sample.at)
        if grown:
            number = self._into.names.id(POOL.name, pool)
            coverage.book_counts(self._into, number, sample.at, grown.get("requests", 0.0))
            meter.book_recomputed(self._into, number, sample.at, grown.get("recomputed_tokens"))
        if sample.running is not None and sample.waiting is not None:
            book_measured(self._into, pool, engine, sample.at, sample.running + sample.waiting)

    def live(self, pool: str) -> int:
        """How many replicas of a pool are heard of."""
        return self._fleet.live(pool)

    def expect(self, engines: Iterable[tuple[str, str]]) -> None:
        """Show these (pool, engine) as unknown until they are heard, see `Fleet.expect`."""
        self._book(self._fleet.expect(engines))

    def expire(self) -> None:
        """Withdraw what is too old; forget the names of replicas that are gone."""
        self._book(self._fleet.expire(self.time.at))
        for engine in sorted(self._fleet.retire(self.time.at)):
            number = self._into.names.find(ENGINE.name, engine)
            if number is not None and number > OTHER:
                self._into.names.forget(ENGINE.name, number)

    def inherit(self, other: Hearing) -> None:
        """Go on with the replicas and the clock of another pipeline of the same names."""
        self._fleet, self.time = other._fleet, other.time

    def news(self) -> list[object]:
        """See `Fleet.news`."""
        return self._fleet.news()

    def absorb(self, news: Iterable[Any]) -> None:
        """See `Fleet.absorb`."""
        self._fleet.absorb(news)

    def save(self) -> list[object]:
        """See `Fleet.save`."""
        return self._fleet.save()

    def load(self, saved: Iterable[Any]) -> None:
        """See `Fleet.load`."""
        self._fleet.load(saved)

    def _book(self, found: Iterable[News], now: float | None = None) -> None:
        for news in found:
            meter.book(self._into, news)
            if self.time.takes(meter.FLEET, np.array([news.at]), news.at if now is None else now).all():
                meter.book_hour(self._into, news)
