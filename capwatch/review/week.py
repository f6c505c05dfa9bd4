"""The data model of a week: what a source has told, pool by pool, before anything is concluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capwatch.capacity.shapes import Hints
from capwatch.config.schema import Pool
from capwatch.record import Floats, Ints, Note
from capwatch.review.calendar import IsoWeek
from capwatch.review.hours import Hours


@dataclass(frozen=True, slots=True)
class Seconds:
    """Arrivals and cost of each second of a stretch, without gaps.

    Attributes:
        first: the first second, s since the epoch.
        arrivals: float64[n], requests.
        cost: float64[n], replica-seconds, in the second of the arrival.
    """

    first: int
    arrivals: Floats
    cost: Floats

    @property
    def until(self) -> int:
        """The second behind the last."""
        return self.first + len(self.arrivals)

    def between(self, since: float, until: float) -> Seconds:
        """Those from ``since`` to before ``until``, as far as they are there."""
        begin = min(max(0, int(since) - self.first), len(self.arrivals))
        end = min(max(begin, int(until) - self.first), len(self.arrivals))
        return Seconds(self.first + begin, self.arrivals[begin:end], self.cost[begin:end])


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests and cost of each hour of up to 13 weeks; an hour without data is absent.

    Attributes:
        at: int64[n], begin of each hour, ascending.
        requests, cost: float64[n].
    """

    at: Ints
    requests: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class Length:
    """Requests whose prompts have at most so many tokens, and more than the length before."""

    prompt: str
    requests: float
    spans: Mapping[str, tuple[float, float]]
    """p50 and p95 (s) of each of `capwatch.meters.lengths.SPANS` that is told, within 5 %."""


@dataclass(frozen=True, slots=True)
class PoolWeek:
    """One pool.

    Attributes:
        name: of the pool.
        pool: its settings in force; defaults where ``told`` is False.
        told: whether the settings are known.
        hours: the week by the hour.
        last: the week before.
        seconds: the week by the second; None where the source does not tell seconds.
        demand: all hours that are known, the week's included.
        events: drift events of the week, as `capwatch backtest` tells them; None where they could not be looked for.
        unjudged: why the events could not be looked for, or only in part.
        service_cv2: Cs² of the cost of single requests; None where it is not told.
        shown: what is told beside the requests, by the names of `capwatch.review.beside` and `capwatch.review.asked`.
        by_length: latency by prompt length, the shortest first.
        hints: failures and tenants by five minutes, from the first of the seconds on.
    """

    name: str
    pool: Pool
    told: bool
    hours: Hours
    last: Hours
    seconds: Seconds | None
    demand: Demand
    events: tuple[Mapping[str, Any], ...] | None = None
    unjudged: str = ""
    service_cv2: float | None = None
    hints: Hints = field(default_factory=Hints)
    shown: Mapping[str, float] = field(default_factory=dict)
    by_length: Sequence[Length] = ()

    @property
    def replicas(self) -> int | None:
        """Replicas, where they are configured as a number."""
        return self.pool.replicas if isinstance(self.pool.replicas, int) else None


@dataclass(frozen=True, slots=True)
class Week:
    """A week as a source tells it.

    Attributes:
        week: which one.
        begin, end: what is observed of it, whole hours, s since the epoch; end ≤ begin where nothing is.
        pools: those that had requests, by name.
        notes: deploys and the like, in the week and the one before.
        source: what it was made from, in a few words.
        quality: what became of the lines, by source and kind; empty where it is not told.
        missing: what could not be gathered: (what, why, what would provide it).
    """

    week: IsoWeek
    begin: int
    end: int
    pools: Mapping[str, PoolWeek]
    notes: tuple[Note, ...]
    source: str
    quality: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing: tuple[tuple[str, str, str], ...] = field(default=())
