"""Lengths and times: percentiles per tenant and route, histograms per route and pool.

Percentiles are of the last five minutes of event time, each within 0.55 % of the exact order statistic. Histograms
are for life: edges 2^(k/4) by exact merging of the sketch's grid, and every configured bound counted exactly; native
ones per tenant and route are exact merges of it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import BOUND, POOL, ROUTE, TENANT, Axis, Gathering, Keys, Sketch, Table, Totals
from capwatch.ledger.native import Native, native
from capwatch.ledger.series import SUMMARY, Series, histogram
from capwatch.record import Bools, Floats, Ints
from capwatch.seen import Seen
from capwatch.sketch import Cells, bucket_of, cumulative, index, pack, quantiles, series_of


class Measure(NamedTuple):
    """One length or time: its metrics, and the powers of two between which its histogram has edges."""

    name: str
    summary: m.Metric | None
    native: m.Metric | None
    """None where there is no summary either: the measure is not kept by tenant."""
    histogram: m.Metric
    low: int
    high: int


# Useful ranges: prompts and outputs to half a million tokens (the next edge is spelt in two ways by servers); TTFT and
# queue from a millisecond to 17 minutes; time per
# token from a quarter of a millisecond to 16 s; durations from 4 ms to over an hour.
MEASURES: Final = (
    Measure("prompt", m.PROMPT_TOKENS, m.TENANT_PROMPT_TOKENS, m.ROUTE_PROMPT_TOKENS, 0, 19),
    Measure("output", m.OUTPUT_TOKENS, m.TENANT_OUTPUT_TOKENS, m.ROUTE_OUTPUT_TOKENS, 0, 19),
    Measure("ttft", m.TTFT_SECONDS, m.TENANT_TTFT_SECONDS, m.ROUTE_TTFT_SECONDS, -10, 10),
    Measure("tpot", m.TPOT_SECONDS, m.TENANT_TPOT_SECONDS, m.ROUTE_TPOT_SECONDS, -12, 4),
    Measure("duration", m.DURATION_SECONDS, m.TENANT_DURATION_SECONDS, m.ROUTE_DURATION_SECONDS, -8, 12),
    Measure("queue", None, None, m.ROUTE_QUEUE_SECONDS, -10, 10),
)
_WHOLE: Final = 2
"""The first two measures are whole numbers."""
_PER_EDGE: Final = 16
"""Buckets of the grid from one edge 2^(k/4) to the next."""

MEASURE = Axis("measure", 3, tuple(measure.name for measure in MEASURES))
PAIR = Keys((TENANT, ROUTE))
ROUTE_POOL = Keys((ROUTE, POOL))
SUMS = Table((TENANT, ROUTE, MEASURE), "sums", ("count", "sum"))
HISTOGRAMS = Table((ROUTE, POOL, MEASURE), "histograms", ("count", "sum"))
SPLITS = Table((ROUTE, POOL, MEASURE, BOUND), "splits", ("below",))
"""Values within a bound that fall into the same bucket of the grid as the bound: they make its count exact."""
BY_PAIR = Sketch((TENANT, ROUTE, MEASURE), "pair", lasting=True, recent=True, native=True)
BY_ROUTE = Sketch((ROUTE, POOL, MEASURE), "route", lasting=True, recent=False)


class Latency:
    """Contract 4.1: summaries per tenant and route, histograms per route and pool."""

    tables = (SUMS, HISTOGRAMS, SPLITS)
    sketches = (BY_PAIR, BY_ROUTE)
    followers = ()

    def __init__(self, config: Config) -> None:
        bounds = {
            "ttft": {slo.ttft for slo in config.slo if slo.ttft},
            "tpot": {slo.tpot for slo in config.slo if slo.tpot},
            "duration": {slo.e2e for slo in config.slo if slo.e2e},
        }
        self._bounds: Mapping[str, list[float]] = {name: sorted(values) for name, values in bounds.items()}

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add every value that the log tells; TTFT and TPOT not of response-cache hits."""
        batch = seen.batch
        served = np.where(batch.cache_hit, np.nan, 1.0)
        values = (
            batch["prompt_tokens"],
            batch["output_tokens"],
            batch["ttft_s"] * served,
            batch.tpot_s * served,
            batch["duration_s"],
            batch["queue_s"],
        )
        groups = seen.groups
        pairs = PAIR.pack(groups.tenant, groups.route)
        routes = ROUTE_POOL.pack(groups.route, groups.pool)
        for number, (measure, column) in enumerate(zip(MEASURES, values, strict=True)):
            told = ~np.isnan(column)
            if not told.any():
                continue
            counts, sums = groups.count(told), groups.sums(column)
            some = counts > 0
            of, slots, given = groups.of[told], seen.slot[told], column[told]
            buckets = index(given)
            keys = routes << MEASURE.bits | number
            into.add(HISTOGRAMS, keys[some], counts[some], sums[some])
            into.observe(BY_ROUTE, pack(keys[of], buckets), slots)
            self._split(measure, keys[of], buckets, given, into)
            if measure.summary is not None:
                keys = pairs << MEASURE.bits | number
                into.add(SUMS, keys[some], counts[some], sums[some])
                into.observe(BY_PAIR, pack(keys[of], buckets), slots)

    def _split(self, measure: Measure, keys: Ints, buckets: Ints, values: Floats, into: Gathering) -> None:
        """Count the values that are within a bound and in its bucket of the grid."""
        for bound in self._bounds.get(measure.name, ()):
            below = (buckets == _bucket(bound)) & (values <= bound)
            if below.any():
                number = into.names.id(BOUND.name, repr(bound))
                into.add(SPLITS, keys[below] << BOUND.bits | number, np.ones(int(below.sum())))

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, sums = totals.rows(SUMS)
        series, recent, _ = quantiles(totals.recent(BY_PAIR), m.QUANTILES, _whole)
        values = np.full((len(keys), len(SUMMARY)), np.nan)
        alive = np.isin(series, keys)
        values[np.searchsorted(keys, series[alive]), : len(m.QUANTILES)] = recent[alive]
        values[:, -2], values[:, -1] = sums[:, 1], sums[:, 0]
        measured = SUMS.ids(keys, MEASURE)
        for number, measure in enumerate(MEASURES):
            if measure.summary is not None:
                rows = measured == number
                yield Series(measure.summary, PAIR, keys[rows] >> MEASURE.bits, values[rows], SUMMARY)
        cell_keys, counts = totals.lasting(BY_ROUTE).arrays()
        of_cell = BY_ROUTE.ids(series_of(cell_keys), MEASURE)
        for number, measure in enumerate(MEASURES):
            cells = Cells(cell_keys[of_cell == number], counts[of_cell == number])
            yield self._histogram(totals, number, measure, cells)

    def _histogram(self, totals: Totals, number: int, measure: Measure, cells: Cells) -> Series:
        """Cumulative counts at all edges of one measure; all series have the same edges."""
        keys, sums = totals.rows(HISTOGRAMS)
        rows = HISTOGRAMS.ids(keys, MEASURE) == number
        keys, sums = keys[rows], sums[rows]
        powers = np.arange(measure.low * 4, measure.high * 4 + 1)
        bounds = self._bounds.get(measure.name, [])
        edges = [2.0 ** (power / 4) for power in powers.tolist()]
        # A bound has the count of all buckets below its own, plus its share of its own.
        places = np.concatenate([powers * _PER_EDGE, [_bucket(bound) - 1 for bound in bounds]]).astype(np.int64)
        _, counts = cumulative(cells, places)
        for column, bound in enumerate(bounds, start=len(edges)):
            counts[:, column] += _split(totals, keys, bound).astype(np.int64)
        everything = [*edges, *bounds]
        order = sorted(range(len(everything)), key=everything.__getitem__)
        order = [place for i, place in enumerate(order) if not i or everything[place] != everything[order[i - 1]]]
        values = np.concatenate([counts[:, order], sums[:, [0, 1, 0]]], axis=1).astype(np.float64)
        columns = histogram([everything[place] for place in order])
        return Series(measure.histogram, ROUTE_POOL, keys >> MEASURE.bits, values, columns)


def natives(totals: Totals) -> Iterable[Native]:
    """The native histograms, per tenant and route and for life; only the protobuf exposition carries them."""
    keys, sums = totals.rows(SUMS)
    packed, counts = totals.lasting(BY_PAIR).arrays()
    series, buckets = series_of(packed), bucket_of(packed)
    of_row, of_cell = SUMS.ids(keys, MEASURE), BY_PAIR.ids(series, MEASURE)
    for number, measure in enumerate(MEASURES):
        if measure.native is not None:
            mine, inside = keys[of_row == number], of_cell == number
            cells = Cells(pack(np.searchsorted(mine, series[inside]), buckets[inside]), counts[inside])
            yield native(measure.native, PAIR, mine >> MEASURE.bits, sums[of_row == number, 1], cells)


def _split(totals: Totals, histograms: Ints, bound: float) -> Floats:
    """For each histogram, its values within the bound that share the bound's bucket."""
    counts = np.zeros(len(histograms))
    number = totals.names.find(BOUND.name, repr(bound))
    if number is None:
        return counts
    keys, values = totals.rows(SPLITS)
    # Two measures may have the same bound: only the rows of these histograms count.
    mine = (SPLITS.ids(keys, BOUND) == number) & np.isin(keys >> BOUND.bits, histograms)
    counts[np.searchsorted(histograms, keys[mine] >> BOUND.bits)] = values[mine, 0]
    return counts


def _bucket(bound: float) -> int:
    return int(index(np.array([bound]))[0])


def _whole(series: Ints) -> Bools:
    return SUMS.ids(series, MEASURE) < _WHOLE


METER = Latency
