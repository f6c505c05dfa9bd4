"""What a Prometheus has scraped of capwatch, as hours: counters become rollups, buckets become sketches.

Counts, tokens and cost are exact; lengths and times are as fine as the histograms (19 %), and of a route: they are
shared out among its tenants by their requests. A query that fails costs only its own part, which is then missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from capwatch import metrics as m
from capwatch.errors import CapwatchError
from capwatch.keep.slot import Names, Slot
from capwatch.load.tables import SECONDS
from capwatch.meters.rollup import COLUMNS
from capwatch.observed.columns import Columns, selector
from capwatch.observed.prometheus import Server
from capwatch.record import Floats, Ints, Note
from capwatch.review import scraped
from capwatch.review.calendar import HOUR, WEEK, IsoWeek
from capwatch.review.fine import Fine
from capwatch.review.rows import ALL, PLACE, Rows, rates
from capwatch.review.text import day
from capwatch.review.ticks import PoolTicks
from capwatch.sketch import Cells

HISTOGRAMS: Final = {
    "prompt_tokens": m.ROUTE_PROMPT_TOKENS,
    "output_tokens": m.ROUTE_OUTPUT_TOKENS,
    "ttft_s": m.ROUTE_TTFT_SECONDS,
    "tpot_s": m.ROUTE_TPOT_SECONDS,
    "duration_s": m.ROUTE_DURATION_SECONDS,
    "queue_s": m.ROUTE_QUEUE_SECONDS,
}
GAUGES: Final = {
    "burst_p99_to_median_ratio": m.BURST_P99_TO_MEDIAN_RATIO,
    "burst_longest_seconds": m.BURST_LONGEST_SECONDS,
    "burst_max_ramp_rps": m.BURST_MAX_RAMP_RPS,
    "arrival_cv2": m.ARRIVAL_CV2,
    "service_cv2": m.SERVICE_CV2,
    "replicas": m.REPLICAS,
    "coverage_ratio": m.COVERAGE_RATIO,
    "join_ratio": m.JOIN_RATIO,
}
SUMS: Final = {
    "preemptions": m.ENGINE_PREEMPTIONS,
    "restarts": m.ENGINE_RESTARTS,
    "recomputed_tokens": m.RECOMPUTED_TOKENS,
    "abandoned_replica_seconds": m.ABANDONED_REPLICA_SECONDS,
}
EARLIER: Final = 13 * WEEK


class Asked:
    """Two weeks of a server by tenant and route, and thirteen by pool. Times are s since the epoch.

    Attributes:
        missing: (what, why, what would provide it) of queries that failed or found nothing.
    """

    def __init__(self, server: Server, week: IsoWeek, now: float) -> None:
        """Ask.

        Raises:
            CapwatchError: the server answers nothing at all.
        """
        self._server = server
        self._begin, self._end = week.since - WEEK, int(min(week.until, now) // HOUR * HOUR)
        self._week = week
        self.missing: list[tuple[str, str, str]] = []
        self._answered = False
        self._shown: Mapping[str, Mapping[str, float]] = {}
        self._failed: CapwatchError | None = None
        self._slots = {slot.at: slot for slot in self._built()}
        if not self._answered and self._failed is not None:
            raise self._failed

    def _range(self, expr: str, begin: int, what: str, *, may_lack: bool = False) -> Columns:
        """What an expression adds in each hour; nothing, and a word on it, where it cannot be had.

        Args:
            expr: what is asked for.
            begin: s, epoch.
            what: for that word.
            may_lack: whether it is told elsewhere that the server has no such series.
        """
        try:
            found = self._server.range(expr, begin, self._end, HOUR)
        except CapwatchError as error:
            self._failed = self._failed or error
            self.missing.append((what, str(error), "the same query, answered"))
            return Columns(np.empty(0), (), np.empty((0, 0)))
        self._answered = True
        if not len(found) and not may_lack:
            self.missing.append((what, "the server has no such series of the week", "scrapes of capwatch that keep it"))
        return found

    def _rises(self, metric: m.Metric, suffix: str = "") -> Columns:
        return _risen(self._counted(metric, suffix))

    def _counted(self, metric: m.Metric, suffix: str = "") -> Columns:
        found = self._range(selector(metric.name + suffix), self._begin, metric.name)
        return found.continued(*metric.labels, "le") if len(found) else found

    def _built(self) -> Iterator[Slot]:
        yield from self._earlier()
        costs, saved = self._rises(m.COST_REPLICA_SECONDS), self._rises(m.PREFILL_SAVED_REPLICA_SECONDS)
        counted, tokens = self._counted(m.REQUESTS), self._rises(m.TOKENS)
        requests = _risen(counted)
        rows = Rows(costs, requests, self._rises(m.DEPARTURES))
        if not rows.hours:
            return
        for (tenant, route, pool, phase), column in costs.by("tenant", "route", "pool", "phase").items():
            rows.add((tenant, route, pool), f"cost_{phase}", column)
        for key, column in saved.by("tenant", "route", "pool").items():
            rows.add(key, "cost_saved", column)
        shared = {
            "outcome_": (requests, "outcome"),
            "": (tokens, "kind"),
            "goodput_": (self._rises(m.GOODPUT_MISSED), "reason"),
            "goodput_ ": (self._rises(m.GOODPUT_UNCLASSIFIED), "reason"),
            "goodput_good": (self._rises(m.GOODPUT_REQUESTS), ""),
        }
        for prefix, (found, label) in shared.items():
            for (tenant, route, value), column in found.by("tenant", "route", label).items():
                rows.share(tenant, route, prefix.rstrip() + value, column)
        for (pool, phase), column in self._rises(m.PHASE_SECONDS).by("pool", "phase").items():
            rows.spread(pool, phase, column)
        lengths = {measure: self._rises(metric, "_bucket") for measure, metric in HISTOGRAMS.items()}
        for measure, found in lengths.items():
            rows.observe(measure, found)
        self._note_gaps(counted)
        partial = self._partial(
            rows.hours,
            {
                m.REQUESTS: requests,
                m.COST_REPLICA_SECONDS: costs,
                m.TOKENS: tokens,
                m.ROUTE_PROMPT_TOKENS: lengths["prompt_tokens"],
            },
        )
        yield from (slot for slot in rows.slots() if slot.at not in partial)

    def _note_gaps(self, counted: Columns) -> None:
        """Tell where the server saw nothing."""
        for before, after in pairwise(counted.at[~np.isnan(counted.total())].tolist()):
            if after - before > HOUR:
                why = f"the server saw nothing from {day(before)} to {day(after)} UTC: counts are spread evenly over it"
                self.missing.append(("the course of a part of the week", why, "a server that scrapes without a gap"))

    def _partial(self, hours: list[int], work: Mapping[m.Metric, Columns]) -> set[int]:
        """The hours of which work is told, but not all of it: means of them would be wrong. A word on it."""
        known = {metric: ~np.isnan(found.total()) for metric, found in work.items() if len(found)}
        if len(known) < len(work):
            return set()  # what the server never has is missing as such
        told = np.array([*known.values()])
        partial = told[1:].any(axis=0) & ~told.all(axis=0)
        if partial.any():
            names = " and ".join(metric.name for metric, one in known.items() if not one[partial].all())
            why = f"the server has {names} of a part of the time only: {partial.sum()} hours are left out"
            self.missing.append(("a part of the week", why, "scrapes of capwatch that keep all of it"))
        return {hours[place] for place in np.flatnonzero(partial).tolist()}

    def _earlier(self) -> Iterator[Slot]:
        """The weeks before the last, by pool alone: what a forecast and a trend need."""
        begin, end = self._week.until - EARLIER, self._begin
        try:
            cost, requests = (
                self._server.range(_added(metric), begin + HOUR, end, HOUR)
                for metric in (m.COST_REPLICA_SECONDS, m.DEPARTURES)
            )
        except CapwatchError as error:
            self._failed = self._failed or error
            self.missing.append(("weeks before the last", str(error), "the same query, answered"))
            return
        spent, finished = cost.by("pool"), requests.by("pool")
        for place, hour in enumerate((cost.at.astype(np.int64) - HOUR).tolist()):
            names: list[Names] = []
            values: list[Floats] = []
            for key, column in spent.items():
                if column[place] > 0:
                    row = np.zeros(len(COLUMNS))
                    row[PLACE["cost_prefill"]] = column[place]
                    row[PLACE["outcome_ok"]] = _told(finished[key][place]) if key in finished else 0.0
                    names.append((ALL, ALL, ALL, key[0], ALL))
                    values.append(row)
            if names:
                yield Slot(hour, HOUR, names, np.array(values), Cells())

    def hours(self, since: float, until: float) -> Iterator[Slot]:
        """See `capwatch.review.told.Told`."""
        return (self._slots[at] for at in sorted(self._slots) if since <= at < until)

    def beside(self, name: str, since: float, until: float) -> Iterator[Slot]:  # noqa: ARG002 - `shown` tells it
        """See `capwatch.review.told.Told`."""
        return iter(())

    def seconds(self, pool: str, since: float, until: float) -> tuple[Ints, Floats]:  # noqa: ARG002 - no metric tells them
        """See `capwatch.review.told.Told`."""
        return np.empty(0, np.int64), np.empty((0, len(SECONDS.columns)))

    def ticks(self, pool: str, since: float, until: float) -> PoolTicks | None:  # noqa: ARG002 - no metric tells them
        """See `capwatch.review.told.Told`."""
        return None

    def events(self, since: float, until: float) -> None:  # noqa: ARG002 - gauges tell when, and not what it was
        """See `capwatch.review.told.Told`."""
        return

    def fine(self, begin: int, end: int) -> Fine:
        """See `capwatch.review.told.Told`."""
        return Fine(begin, end)

    def annotations(self, since: float, until: float) -> list[Note]:  # noqa: ARG002 - no metric tells them
        """See `capwatch.review.told.Told`."""
        return []

    def shown(self) -> Mapping[str, Mapping[str, float]]:
        """By pool: the last value of `GAUGES`, what `SUMS` added in the week, and what its engines told."""
        if not self._shown:
            self._shown = self._beside()
        return self._shown

    def _beside(self) -> dict[str, dict[str, float]]:
        engines = {
            what: self._range(expr, self._week.since, what, may_lack=True) for what, expr in scraped.EXPRESSIONS.items()
        }
        found = scraped.shown(engines)
        for name, metric in GAUGES.items():
            told = self._range(f"max by (pool) ({selector(metric.name)})", self._week.since, metric.name)
            for (pool,), column in told.by("pool").items():
                known = column[np.isfinite(column)]
                if len(known):
                    found.setdefault(pool, {})[name] = float(known[-1])
        for name, metric in SUMS.items():
            rises = self._rises(metric)
            inside = rises.at > self._week.since
            for (pool,), column in rises.by("pool").items():
                found.setdefault(pool, {})[name] = float(np.nansum(column[inside]))
        return found

    def settings(self, at: float) -> Mapping[str, Any]:  # noqa: ARG002 - as they are shown
        """Replicas, and the rates behind the cost: tokens over replica-seconds of the week."""
        shown = self.shown()
        measured = rates([slot for slot in self._slots.values() if slot.at >= self._week.since])
        found: dict[str, dict[str, Any]] = {}
        for pool, (prefill, decode) in measured.items():
            told: dict[str, Any] = {"name": pool}
            replicas = shown.get(pool, {}).get("replicas")
            if replicas is not None and replicas >= 1:
                told["replicas"] = round(replicas)
            if prefill is not None:
                told["prefill_tokens_per_second"] = prefill
            if decode is not None:
                told["decode_tokens_per_second"] = decode
            found[pool] = told
        return found


def _risen(counted: Columns) -> Columns:
    """What counters added in each hour; where the server saw nothing, evenly."""
    return counted.bridged().rises() if len(counted) else counted


def _added(metric: m.Metric) -> str:
    """What a counter added in the last hour, by pool; series that began, ended or fell in it are passed over."""
    name = selector(metric.name)
    return f"sum by (pool) (({name} - {name} offset 1h) >= 0)"


def _told(value: float) -> float:
    return 0.0 if np.isnan(value) else max(0.0, float(value))
