"""What is read out of a table of cells, for all its series at once: quantiles, classic and native histograms."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from capwatch.sketch.cells import Cells, bucket_of, pack, series_of
from capwatch.sketch.grid import HIGHEST, SCHEMA, ZERO, Bools, Floats, Ints, middle

_COARSEST = -4  # the lowest schema that Prometheus knows
_Q_DENOMINATOR = 1_000_000  # times a count it stays in 63 bits up to 9e12 values a series


def quantiles(
    cells: Cells, qs: tuple[float, ...], integer_series: Callable[[Ints], Bools] | None = None
) -> tuple[Ints, Floats, Ints]:
    """The quantiles of every series that has values: (series[m] ascending, values[m, len(qs)], counts[m]).

    A quantile is the value of rank ceil(q·n), of rank 1 for q = 0; it is within the grid's error of that order
    statistic. `integer_series` tells by series key which hold whole numbers only (see `middle`); None means none does.
    q in 0..1 is read to six decimals and as the decimal it is meant to be, so that 0.07 of 100 values is rank 7.
    Raises ValueError for a q outside.

    >>> from capwatch.sketch.grid import index
    >>> cells = Cells(pack(np.full(4, 3), index(np.array([10.0, 20.0, 30.0, 40.0]))), np.ones(4, np.int64))
    >>> series, values, counts = quantiles(cells, (0.5, 0.95), lambda series: series == 3)
    >>> series.tolist(), values.tolist(), counts.tolist()
    ([3], [[20.0, 40.0]], [4])
    """
    keys, _ = cells.arrays()
    series, starts, ends, running = _segments(cells)
    counts = running[ends] - running[starts]
    rank = running[starts][:, None] + _ranks(counts, qs)
    # The rank-th value of a series lies in the first of its cells up to which at least that many values are counted.
    bucket = bucket_of(keys[np.searchsorted(running[1:], rank)])
    integers = np.zeros(len(series), np.bool_) if integer_series is None else integer_series(series)
    return series, middle(bucket, integers[:, None]), counts


def cumulative(cells: Cells, edges: Ints) -> tuple[Ints, Ints]:
    """How many values of every series are <= `upper(edge)`: (series[m] ascending, counts[m, k]); exact.

    `edges[k]` are bucket indices in ZERO..HIGHEST-1, in any order: the last bucket also holds what is beyond the grid.
    Raises ValueError for an edge outside.

    >>> from capwatch.sketch.grid import index
    >>> cells = Cells(pack(np.full(3, 8), index(np.array([0.0, 1.0, 1.5]))), np.ones(3, np.int64))
    >>> [column.tolist() for column in cumulative(cells, np.array([ZERO, 0, 64]))]
    [[8], [[1, 2, 3]]]
    """
    if np.any((edges < ZERO) | (edges >= HIGHEST)):
        raise ValueError(f"an edge lies in {ZERO}..{HIGHEST - 1}")
    keys, _ = cells.arrays()
    series, starts, _, running = _segments(cells)
    behind = np.searchsorted(keys, pack(series[:, None], edges), side="right")
    return series, running[behind] - running[starts][:, None]


def coarsen(bucket: Ints, schema: int) -> Ints:
    """The bucket of a Prometheus native histogram of schema -4..6 that holds the grid's bucket.

    Schema s has buckets (2^((j-1)·2^-s), 2^(j·2^-s)], so j = ceil(i / 2^(6-s)). ZERO must not be among the buckets: a
    native histogram counts zeros apart. Raises ValueError for another schema.

    >>> coarsen(np.array([-64, 0, 1, 64, 65]), 0).tolist()
    [-1, 0, 1, 1, 2]
    """
    if not _COARSEST <= schema <= SCHEMA:
        raise ValueError(f"a schema lies in {_COARSEST}..{SCHEMA}, not {schema}")
    return -(-bucket >> (SCHEMA - schema))  # a shift rounds down, so negated twice it rounds up


def _segments(cells: Cells) -> tuple[Ints, Ints, Ints, Ints]:
    """Each series, its first cell and the one behind its last, and the sum of counts before each cell (n + 1 long)."""
    keys, counts = cells.arrays()
    series, starts = np.unique(series_of(keys), return_index=True)
    ends = np.append(starts[1:], len(keys))[: len(starts)]
    return series, starts, ends, np.concatenate([[0], np.cumsum(counts)])


def _ranks(counts: Ints, qs: tuple[float, ...]) -> Ints:
    """ceil(q·n), at least 1, for each count (down) and q (across), in whole numbers: 0.07·100 as floats exceeds 7."""
    if not all(0.0 <= q <= 1.0 for q in qs):
        raise ValueError(f"a quantile lies in 0..1: {qs}")
    exact = [Fraction(q).limit_denominator(_Q_DENOMINATOR) for q in qs]
    above = np.array([q.numerator for q in exact], np.int64)
    below = np.array([q.denominator for q in exact], np.int64)
    ranks: Ints = np.maximum(-(-counts[:, None] * above // below), 1)
    return ranks
