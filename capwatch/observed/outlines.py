"""The sums of a load test from a history or a Prometheus, where the log of its requests is not at hand."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Final

import numpy as np

from capwatch.capacity.bursts import weighted
from capwatch.capacity.outline import Outline, Quantiles, Rest
from capwatch.errors import CapwatchError, UsageError
from capwatch.keep.past import Past
from capwatch.ledger import POOL
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES, PARTS
from capwatch.metrics import (
    ABANDONED_REPLICA_SECONDS,
    ARRIVALS,
    COST_REPLICA_SECONDS,
    DEPARTURES,
    ENGINE_STATE,
    GOODPUT_MISSED,
    GOODPUT_REQUESTS,
    PREFILL_SAVED_REPLICA_SECONDS,
    REQUESTS,
    ROUTE_DURATION_SECONDS,
    ROUTE_OUTPUT_TOKENS,
    ROUTE_PROMPT_TOKENS,
    ROUTE_QUEUE_SECONDS,
    ROUTE_TPOT_SECONDS,
    ROUTE_TTFT_SECONDS,
    Metric,
)
from capwatch.observed.columns import buckets, quantile, selector
from capwatch.observed.counters import Counters
from capwatch.observed.prometheus import Server
from capwatch.record import OUTCOMES, Floats
from capwatch.seen import ROLLUP_S
from capwatch.sketch import CELL_BITS, bucket_of, middle
from capwatch.slo import VERDICTS

GONE: Final = ("client_abort", "timeout")
UNJUDGED: Final = ("no_slo", "no_timing", "no_tokens", "client", "cache_hit")
LENGTHS: Final = ("prompt_tokens", "output_tokens")
SKETCH: Final = 1.0055**2
"""Both ends of a ratio of quantiles of a sketch."""
BUCKET: Final = 2.0**0.25
"""Widths of the histograms' buckets."""
FEWEST: Final = 4
"""Windows below which halves say nothing."""


def whole(since: float, until: float) -> None:
    """Raises UsageError where no window is given: a history has more in it than one test."""
    if not (math.isfinite(since) and math.isfinite(until)):
        raise UsageError("--since: give --since and --until; only a log is taken for the test as a whole")


def of_state(folder: str, since: float, until: float, pool: str | None) -> Outline:
    """From the history of a state directory, whose windows are five minutes.

    Raises:
        CapwatchError: there is no history, or nothing in it is of that window and pool.
    """
    past = Past(folder)
    try:
        return _Slots(past, since // ROLLUP_S * ROLLUP_S, -(-until // ROLLUP_S) * ROLLUP_S, pool, folder).outline()
    finally:
        past.close()


class _Slots:
    """Five-minute rollups, their sums by slot, and their sketches as one."""

    def __init__(self, past: Past, since: float, until: float, pool: str | None, folder: str) -> None:
        self._past = past
        place = [axis.name for axis in PARTS].index(POOL.name)
        self._at: list[int] = []
        self._cells: list[dict[str, dict[int, int]]] = []
        self._pools: set[str] = set()
        sums = []
        for slot in past.rollups(since, until, int(ROLLUP_S)):
            kept = np.array([pool in (None, name[place]) for name in slot.names], np.bool_)
            if not kept.any():
                continue
            self._at.append(slot.at)
            self._pools |= {name[place] for name, mine in zip(slot.names, kept.tolist(), strict=True) if mine}
            sums.append(slot.values[kept].sum(axis=0))
            self._cells.append(_by_measure(slot.cells.arrays(), kept))
        if not sums:
            raise CapwatchError(
                f"{folder}: its history has no request of that window{f' and pool {pool}' if pool else ''}"
            )
        self._sums = np.array(sums)

    def _of(self, *names: str) -> Floats:
        """float64[slots], the sum of some columns."""
        return np.asarray(self._sums[:, [COLUMNS.index(name) for name in names]].sum(axis=1))

    def outline(self) -> Outline:
        outcomes = {name: float(self._of(f"outcome_{name}").sum()) for name in OUTCOMES}
        requests = sum(outcomes.values())
        good = self._of("goodput_good")
        judged = self._of(*(f"goodput_{name}" for name in VERDICTS if name not in UNJUDGED))
        gone = sum(outcomes[name] for name in GONE)
        first, last = self._at[0], self._at[-1] + ROLLUP_S
        told = {name: self._quantiles(name) for name in MEASURES}
        return Outline(
            source="a history",
            requests=round(requests),
            seconds=last - first,
            lengths={name: one for name in LENGTHS if (one := told[name])},
            coarse=SKETCH,
            hit_rates=_halves(self._of("prompt_cached"), self._of("prompt_computed")),
            engines=0,
            failed_share=(requests - outcomes["ok"] - gone) / requests,
            times={name: one for name, one in told.items() if one and name not in LENGTHS},
            rates=judged / ROLLUP_S,
            good=np.divide(good, judged, out=np.full(len(good), np.nan), where=judged > 0),
            window=ROLLUP_S,
            good_share=float(good.sum() / judged.sum()) if judged.any() else None,
            gone=round(gone),
            gone_cost=None if gone else 0.0,
            rest=self._rest(first, last),
        )

    def _quantiles(self, measure: str, slots: slice = slice(None)) -> Quantiles | None:
        cells: dict[int, int] = defaultdict(int)
        for one in self._cells[slots]:
            for bucket, n in one.get(measure, {}).items():
                cells[bucket] += n
        if not cells:
            return None
        found = np.array(sorted(cells), np.int64)
        counts = np.array([cells[bucket] for bucket in found.tolist()])
        values = middle(found, integers=measure in LENGTHS)
        p50, p95, p99 = (weighted(values, counts, q) for q in (0.5, 0.95, 0.99))
        return Quantiles(p50, p95, p99, int(counts.sum()))

    def _rest(self, first: float, last: float) -> Rest | None:
        usual = self._quantiles("duration_s", slice(0, max(1, len(self._at) // 10)))
        counts = np.zeros((2, int(last - first) + 3600))
        for pool in sorted(self._pools):
            at, columns = self._past.seconds(pool, first, first + counts.shape[1])
            counts[:, at - int(first)] += columns[:, :2].T
        came, went = np.flatnonzero(counts[0]), np.flatnonzero(counts[1])
        if usual is None or not len(came) or not len(went):
            return None
        inside = came[came < last - first]
        if not len(inside):
            return None
        left = counts[0, : inside[-1] + 1].sum() - counts[1, : inside[-1] + 1].sum()
        after = went[went > inside[-1]] if len(inside) == len(came) else went[went > inside[-1]][: round(left)]
        drain = float(after[-1] - inside[-1]) if len(after) and left > 0 else 0.0
        return Rest(max(0, round(left)), drain, usual.p99 + 1)


def _by_measure(cells: tuple[np.ndarray, np.ndarray], kept: np.ndarray) -> dict[str, dict[int, int]]:
    keys, counts = cells
    series = keys >> CELL_BITS
    rows, measures = series >> MEASURE.bits, series & (1 << MEASURE.bits) - 1
    found: dict[str, dict[int, int]] = {}
    for number, name in enumerate(MEASURES):
        mine = (measures == number) & kept[rows]
        sums: dict[int, int] = defaultdict(int)
        for bucket, n in zip(bucket_of(keys[mine]).tolist(), counts[mine].tolist(), strict=True):
            sums[bucket] += n
        found[name] = sums
    return found


def of_server(server: Server, since: float, until: float, pool: str | None, window: float) -> Outline:
    """From what a Prometheus has scraped of capwatch.

    Args:
        server: the server.
        since, until: s, epoch.
        pool: one pool; None: all.
        window: s, over which a rate is taken; no less than what is between two scrapes.

    Raises:
        CapwatchError: the server is of no use, or tells of no request in that window and pool.
    """
    scrapes = server.at(f"max(count_over_time({selector(ARRIVALS.name, pool=pool)}[{round(until - since)}s]))", until)
    if not len(scrapes):
        raise Counters(server, since, until, pool).missing()
    between = (until - since) / max(float(scrapes.values[0, 0]) - 1, 1)
    step = math.ceil(max(window, between) - 1e-9)
    return _Scraped(Counters(server, since // step * step, -(-until // step) * step, pool, step)).outline()


class _Scraped:
    """Counters of capwatch over a window."""

    def __init__(self, told: Counters) -> None:
        self._told = told
        self._mine = told.pool is None or told.pools() == [told.pool]
        """Whether counters without pools tell of this one alone."""

    def outline(self) -> Outline:
        told = self._told
        requests = told.total(DEPARTURES)
        if not requests:
            raise told.missing()
        outcomes = {name: n for (name,), n in told.added(REQUESTS, "outcome").items()} if self._mine else None
        good, missed = (
            np.nan_to_num(told.rises(metric, step=told.step).total()) for metric in (GOODPUT_REQUESTS, GOODPUT_MISSED)
        )
        judged = good + missed if self._mine else np.zeros(len(good))
        gone = None if outcomes is None else sum(outcomes.get(name, 0.0) for name in GONE)
        cost = told.total(COST_REPLICA_SECONDS)
        lengths = {"prompt_tokens": ROUTE_PROMPT_TOKENS, "output_tokens": ROUTE_OUTPUT_TOKENS}
        times = {
            "ttft_s": ROUTE_TTFT_SECONDS, "tpot_s": ROUTE_TPOT_SECONDS,
            "duration_s": ROUTE_DURATION_SECONDS, "queue_s": ROUTE_QUEUE_SECONDS,
        }  # fmt: skip
        prefill = told.rises(COST_REPLICA_SECONDS).where(phase="prefill").total()
        return Outline(
            source="a Prometheus",
            requests=round(requests),
            seconds=told.until - told.since,
            lengths={name: one for name, metric in lengths.items() if (one := self._quantiles(metric))},
            coarse=BUCKET,
            hit_rates=_halves(told.rises(PREFILL_SAVED_REPLICA_SECONDS).total(), prefill),
            engines=len(
                told.server.values("engine", told.since, told.until, selector(ENGINE_STATE.name, pool=told.pool))
            ),
            failed_share=None if outcomes is None or gone is None
            else 1 - (outcomes.get("ok", 0.0) + gone) / sum(outcomes.values()),
            times={name: one for name, metric in times.items() if (one := self._quantiles(metric))},
            rates=judged / told.step,
            good=np.divide(good, judged, out=np.full(len(good), np.nan), where=judged > 0),
            window=told.step,
            good_share=float(good.sum() / judged.sum()) if judged.any() else None,
            gone=None if gone is None else round(gone),
            gone_cost=told.total(ABANDONED_REPLICA_SECONDS) / cost if cost else None,
            rest=self._rest(),
        )  # fmt: skip

    def _quantiles(self, metric: Metric, moments: slice = slice(None)) -> Quantiles | None:
        bounds, counts = buckets(self._told.rises(metric, "_bucket"))
        sums = np.nansum(counts[:, moments], axis=1)
        found = [quantile(bounds, sums, q) for q in (0.5, 0.95, 0.99)]
        if found[0] is None or found[1] is None or found[2] is None:
            return None
        return Quantiles(found[0], found[1], found[2], round(float(sums[-1])))

    def _rest(self) -> Rest | None:
        """None where arrivals are counted when they end, so that nothing is ever in flight."""
        told = self._told
        came, went = (np.nan_to_num(told.rises(one, step=told.step).total()) for one in (ARRIVALS, DEPARTURES))
        inside = np.cumsum(came - went)
        moments = max(1, len(told.rises(ROUTE_DURATION_SECONDS, "_bucket").at) // 10)
        usual = self._quantiles(ROUTE_DURATION_SECONDS, slice(0, moments))
        if usual is None or not came.any() or not inside.any():
            return None
        last = int(np.flatnonzero(came)[-1])
        after = np.flatnonzero(went[last + 1 :])
        drain = float(after[-1] + 1) * told.step if len(after) else 0.0
        return Rest(max(0, round(float(inside[last]))), drain, usual.p99 + told.step)


def _halves(cached: Floats, computed: Floats) -> tuple[float | None, float | None]:
    """Hit rates of two halves; None where none was cached at all, as in logs that do not tell it."""
    cached, computed = np.nan_to_num(cached), np.nan_to_num(computed)
    if len(cached) < FEWEST or not cached.any():
        return None, None
    middle_one = len(cached) // 2
    halves = []
    for part in (slice(0, middle_one), slice(middle_one, None)):
        both = float(cached[part].sum() + computed[part].sum())
        halves.append(float(cached[part].sum()) / both if both else None)
    return halves[0], halves[1]
