"""Every quantity of a pool's week, once: what sections, findings and the document tell is read from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.capacity import kv, queueing, sizing, slots, work
from capwatch.capacity.bursts import Bursts, bursts
from capwatch.config.schema import Pool
from capwatch.load.promises import zones
from capwatch.record import Floats
from capwatch.review import change
from capwatch.review.calendar import DAY, HOUR, WEEK
from capwatch.review.stretch import RUNNING, Stretch, stretch
from capwatch.review.week import PoolWeek, Week

STEADY_S: Final = 600
"""Counts of seconds are compared within ten minutes, so that the day's swing is no burst."""
_ENOUGH: Final = 12
"""Hours beyond the first of their kind from which ups and downs from day to day are known."""
_FREE_DAY: Final = 5
"""Saturday."""


@dataclass(frozen=True, slots=True)
class Memory:
    """KV memory of one replica, as shares of its pool of tokens: for all requests in its engine, and for running ones.

    A request that waits holds none, so the first is an upper bound.
    """

    live: float
    """Tokens of a running sequence, prompt and whole output: the safe mean."""
    bound: float | None
    running: float | None


@dataclass(frozen=True, slots=True)
class Queueing:
    """The pool as a queue: slots where they are configured and times are told, else replicas.

    Attributes:
        each: servers of a replica.
        service: mean seconds in one.
        view: `slots` or `replicas`.
        demand: rate, servers and promise, as `capwatch.capacity.slots` takes them.
    """

    each: int
    service: float
    view: str
    demand: slots.Demand


@dataclass(frozen=True, slots=True)
class Facts:
    """One pool's week.

    Attributes:
        one: what was told.
        week, last: all of the week, and of the week before; None where nothing tells tokens.
        changes: drifts with their windows, the weightiest first.
        before, after: the stretches that are compared: around the weightiest change, else the two weeks.
    """

    one: PoolWeek
    week: Stretch | None
    last: Stretch | None
    changes: list[change.Change]
    before: Stretch | None
    after: Stretch | None

    @property
    def pool(self) -> Pool:
        """Its settings."""
        return self.one.pool

    @property
    def changed(self) -> change.Change | None:
        """The weightiest change."""
        return self.changes[0] if self.changes else None

    def utilisation(self, some: Stretch | None) -> float | None:
        """λ c̄/n, mean of a stretch; None where the replicas or the cost are not known."""
        if some is None or self.one.replicas is None:
            return None
        return work.utilisation(some.charged_rate, some.cost, self.one.replicas)

    @property
    def peak(self) -> float | None:
        """Demand of the busy hour, replica-seconds a second, as far as it differs from chance."""
        return None if self.after is None else self.after.demand * busy(self.after)

    @property
    def promises(self) -> sizing.Promises | None:
        """Replicas for the expected peak, for a burst, and for a burst after the loss of a zone."""
        if self.peak is None:
            return None
        return sizing.promises(self.peak, 1, self.pool.target_utilisation, self.pool.burst, zones(self.pool) or 1)

    @property
    def headroom(self) -> int | None:
        """Replicas to spare at the expected peak; negative: a broken promise."""
        if self.promises is None or self.one.replicas is None:
            return None
        return sizing.headroom(self.one.replicas, self.promises.base)

    @property
    def bursts(self) -> Bursts | None:
        """Burst statistics of the week's seconds."""
        if self.one.seconds is not None:
            return bursts(self.one.seconds.arrivals)
        shown = self.one.shown  # of the week before the end, by capwatch's own gauges
        ratio, longest = shown.get("burst_p99_to_median_ratio"), shown.get("burst_longest_seconds")
        if longest is None:
            return None
        return Bursts(ratio, int(longest), shown.get("burst_max_ramp_rps", 0.0), float("nan"), by_mean=False)

    @property
    def arrival_cv2(self) -> float | None:
        """Ca²: variance over mean of 1 s counts within ten minutes; None where seconds are not told."""
        return self.one.shown.get("arrival_cv2") if self.one.seconds is None else dispersion(self.one.seconds.arrivals)

    @property
    def service_cv2(self) -> float | None:
        """Cs² of the cost of requests; None where it is not told."""
        return self.one.shown.get("service_cv2") if self.one.service_cv2 is None else self.one.service_cv2

    def queueing(self, now: Stretch) -> Queueing:
        """The pool as a queue in a stretch; what is not measured of its variability is taken as that of M/M/c."""
        told = now.hours.told("duration_s")
        served = now.hours.sum(*RUNNING) / told if told else 0.0
        each, service, view = 1, now.cost, "replicas"
        if self.pool.slots is not None and served:
            each, service, view = self.pool.slots, served, "slots"
        ca2, cs2 = self.arrival_cv2, self.service_cv2
        stretch = queueing.variability(1.0 if ca2 is None else ca2, 1.0 if cs2 is None else cs2)
        promise = self.pool.wait_budget, self.pool.late_share
        return Queueing(each, service, view, slots.Demand(now.charged_rate, each, service, *promise, stretch))

    def memory(self, some: Stretch | None) -> Memory | None:
        """KV memory in a stretch; None where its size or what is in flight is not known."""
        tokens, replicas = self.pool.kv_pool_tokens, self.one.replicas
        if some is None or tokens is None or replicas is None or some.inside is None:
            return None
        live = some.live_tokens
        return Memory(
            live,
            kv.demand_tokens(some.inside / replicas, live) / tokens,
            None if some.running is None else kv.demand_tokens(some.running / replicas, live) / tokens,
        )


def of(week: Week) -> Mapping[str, Facts]:
    """The facts of each pool that had requests in the week."""
    return {name: _of(one, week) for name, one in week.pools.items() if len(one.hours)}


def _of(one: PoolWeek, week: Week) -> Facts:
    whole = stretch(one.hours, one.pool, week.begin, week.end)
    last = stretch(one.last, one.pool, week.begin - WEEK, week.end - WEEK)
    if last is None and len(one.last):  # of that week other hours are known than of this
        last = stretch(one.last, one.pool, float(one.last.at.min()), float(one.last.at.max()) + HOUR)
    found = change.changes(one, week.begin, week.end) if whole is not None else []
    before, after = (found[0].before, found[0].after) if found else (last, whole)
    return Facts(one, whole, last, found, before, after)


def dispersion(counts: Floats) -> float | None:
    """Variance over mean of counts within stretches of ten minutes; None where there are fewer than 30 requests.

    >>> dispersion(np.tile([0.0, 2.0], 600))
    1.0
    """
    whole = len(counts) // STEADY_S * STEADY_S
    parts = counts[:whole].reshape(-1, STEADY_S)
    if counts[:whole].sum() < 30:
        return None
    return float(((parts - parts.mean(axis=1, keepdims=True)) ** 2).sum() / parts.sum())


def busy(some: Stretch) -> float:
    """Busiest hour of a working or free day over the mean hour, at least 1; its cost, as far as it is no chance.

    The mean of each hour of day is drawn towards the mean of all by as much as its own ups and downs leave in doubt
    (DerSimonian and Laird 1986): those from day to day, and those of so many requests as came (as if their cost were
    exponential). So an even load has no busy hour, however noisy it is.
    """
    at, cost = some.hours.by_hour(lambda hours: hours.cost_by_row)
    _, requests = some.hours.by_hour(lambda hours: hours.charged_by_row)
    mean = float(cost.mean()) if len(cost) else 0.0
    if mean <= 0:
        return 1.0
    free = (at // DAY + 3) % 7 >= _FREE_DAY  # the epoch was a Thursday
    _, of = np.unique(at % DAY // HOUR + 24 * free, return_inverse=True)
    n = np.bincount(of)
    means = np.bincount(of, cost) / n
    within = 2 * mean**2 / max(float(requests.mean()), 1.0)
    freedom = len(cost) - len(n)
    if freedom >= _ENOUGH:
        within = max(within, float(((cost - means[of]) ** 2).sum()) / freedom)
    weight = n / within
    centre = float((weight * means).sum() / weight.sum())
    excess = float((weight * (means - centre) ** 2).sum()) - (len(n) - 1)
    spread = float(weight.sum() - (weight**2).sum() / weight.sum())
    between = max(0.0, excess / spread) if spread > 0 else 0.0
    shrunk = centre + between / (between + 1 / weight) * (means - centre)
    return max(1.0, float(shrunk.max()) / mean)
