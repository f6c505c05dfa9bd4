"""What each scraped engine told, and when: rates and counts between pages, restarts, and values that grew too old."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from capwatch.config.rules import engine_label
from capwatch.config.schema import Engine
from capwatch.dialect.iterations import hands_out_once
from capwatch.dialect.vocabulary import PROCESS_START, Change, Replica, Totals, difference, replica_name
from capwatch.engines import replicas
from capwatch.record import EngineSample
from capwatch.scrape.fetch import Failure

LONGEST_PAUSE_S: Final = 1.0
"""How long the loop may sleep: values are withdrawn at most this late."""

DRAINS: Final = "it hands out each statistic once; scrape /prometheus/metrics, or set drain: true if nobody else asks"
"""Why an endpoint is left alone after its first answer, which alone could tell."""

State = Literal["busy", "idle", "unknown"]


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint to be scraped."""

    url: str
    pool: str
    engine: str
    interval: float
    """Seconds between two fetches."""
    patience: float
    """Age in seconds after which a value is withdrawn."""
    drain: bool = False
    """Whether it is scraped though it hands out each statistic once."""

    @classmethod
    def of(cls, engine: Engine) -> Target:
        """From the configuration."""
        label = engine_label(engine.url, engine.engine)
        return cls(engine.url, engine.pool, label, engine.interval, engine.patience, engine.drain)


@dataclass(frozen=True, slots=True)
class Told:
    """News of one engine replica."""

    pool: str
    engine: str
    state: State
    sample: EngineSample | None = None
    """None where nothing is known any more: what was shown is to be withdrawn."""
    grown: Mapping[str, float] = field(default_factory=dict)
    """How much the engine's counters grew since its page before, by quantity (see `Vocabulary.counters`)."""


@dataclass(slots=True)
class _Known:
    """The last good page of one replica."""

    at: float
    totals: Totals
    gauges: EngineSample
    moved_at: float
    """When anything on the page last differed from the page before, which was not too old to be compared with."""
    shown: bool = True


class Scraper:
    """The state of all targets. It fetches nothing and reads no clock: ``now`` (s, epoch) comes with each call."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self.failures: dict[Target, str] = {}
        """Why the last fetch gave nothing, for the targets where it did."""
        self._due = dict.fromkeys(targets, float("-inf"))
        self._asked: set[Target] = set()
        self._left: set[Target] = set()
        """Targets that are not asked any more, since that takes from others what they were to get."""
        self._known: dict[Target, dict[str, _Known]] = {target: {} for target in self._due}

    def due(self, now: float) -> list[Target]:
        """Targets to be fetched now; each is due again only after its answer was taken.

        A clock that was set back delays nobody by more than an interval.
        """
        found = [
            target
            for target, at in self._due.items()
            if target not in self._asked | self._left and not now < at <= now + target.interval
        ]
        self._asked.update(found)
        self._due.update({target: now + target.interval for target in found})
        return found

    def pause(self, now: float) -> float:
        """Seconds until there may be something to do."""
        waits = [at - now for target, at in self._due.items() if target not in self._asked | self._left]
        return min(max(min(waits, default=LONGEST_PAUSE_S), 0.0), LONGEST_PAUSE_S)

    def take(self, target: Target, page: str | Failure, now: float) -> list[Told]:
        """What an answer says: an entry for each replica on the page, and withdrawals that it makes due."""
        self._asked.discard(target)
        if isinstance(page, str) and hands_out_once(page):
            return self._drained(target, page, now)
        found = [] if isinstance(page, Failure) else replicas(page)
        if found:
            self.failures.pop(target, None)
        else:
            self.failures[target] = page.reason if isinstance(page, Failure) else "no engine metrics on the page"
        return [told for one in found for told in self._replica(target, one, now)] + self._withdraw(target, now)

    def _drained(self, target: Target, page: str, now: float) -> list[Told]:
        """An answer that its server has now forgotten: once is too often, except where the configuration wants it."""
        if not target.drain:
            self._left.add(target)
            self.failures[target] = DRAINS
            return self._withdraw(target, now)
        self.failures.pop(target, None)
        found = replicas(page)
        idle = [] if found else [self._idle(target, name, known, now) for name, known in self._known[target].items()]
        return idle + [told for one in found for told in self._replica(target, one, now)] + self._withdraw(target, now)

    @staticmethod
    def _idle(target: Target, name: str, known: _Known, now: float) -> Told:
        """No iteration since the answer before, by an engine that has told some: it has nothing to do."""
        known.at = known.moved_at = now
        known.gauges, known.shown = msgspec.structs.replace(known.gauges, running=0.0, waiting=0.0), True
        return Told(target.pool, name, "idle", EngineSample(at=now, engine=name, running=0.0, waiting=0.0))

    def expire(self, now: float) -> list[Told]:
        """Withdrawals that are due, each told once."""
        return [told for target in self._due for told in self._withdraw(target, now)]

    def _replica(self, target: Target, one: Replica, now: float) -> Iterable[Told]:
        known = self._known[target]
        name = replica_name(target.engine, one.sample.engine)
        before = known.get(name)
        age = now - before.at if before else 0.0
        change = difference(before.totals, one.totals) if before else Change({}, restarted=False)
        known[name] = _Known(now, one.totals, one.sample, moved_at=now)
        if before and age <= target.patience and (before.totals, before.gauges) == (one.totals, one.sample):
            known[name].moved_at = before.moved_at
        if self._frozen(target, known[name], now):
            known[name].shown = before is not None and before.shown
            return
        sample = change.complete(one.sample, age if age <= target.patience else 0.0)
        sample = msgspec.structs.replace(sample, at=now, engine=name)
        yield Told(target.pool, name, "busy" if _busy(sample, change) else "idle", sample, change.grown)

    def _frozen(self, target: Target, known: _Known, now: float) -> bool:
        """Whether an engine claims to be at work while for longer than its patience nothing moves.

        Some engines keep the last gauges for ever. An engine without any counter cannot be told from a frozen one.
        """
        counts = any(
            value is not None for name, each in known.totals.items() for value in each if name != PROCESS_START
        )
        return counts and _working(known.gauges) and now - known.moved_at > target.patience

    def _withdraw(self, target: Target, now: float) -> list[Told]:
        found = []
        for name, known in self._known[target].items():
            old = now - known.at > target.patience
            if known.shown and (old or self._frozen(target, known, now)):
                known.shown = False
                found.append(Told(target.pool, name, "unknown"))
        return found


def _working(sample: EngineSample) -> bool:
    return (sample.running or 0) + (sample.waiting or 0) > 0


def _busy(sample: EngineSample, change: Change) -> bool:
    """At work at the moment of the page, or between it and the page before."""
    return _working(sample) or any(change.grown.get(name, 0) > 0 for name in ("output_tokens", "steps", "requests"))
