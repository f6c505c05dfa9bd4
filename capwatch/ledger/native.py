"""Native histograms as columns: sketch cells merged into the buckets that Prometheus knows, ready for an exporter.

Buckets of schema s are (2^((j-1)·2^-s), 2^(j·2^-s)], so a quantile read from one is within a factor 2^(2^-s) of the
order statistic: 9.1 % at schema 3, 19 % at 2, 41 % at 1. Counts are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.ledger.table import Keys
from capwatch.metrics import Metric
from capwatch.record import Bools, Floats, Ints
from capwatch.sketch import ZERO, Cells, bucket_of, coarsen, series_of

FINEST: Final = 3
"""Twenty octaves, which is all prompts up to a million tokens, take at most 160 buckets of schema 3."""
MOST: Final = 160
"""Buckets a series: what Prometheus itself recommends to stay near; a wider distribution gets a coarser schema."""
_ENOUGH: Final = 1
"""The whole grid is 64 octaves, which is 128 buckets of schema 1: coarser is never needed."""


@dataclass(frozen=True, slots=True)
class Native:
    """Native histograms of one metric: series ``keys[n]``, and the buckets of all of them one after the other.

    The buckets of series i are ``starts[i]:starts[i + 1]``; a series without values is not there.
    """

    metric: Metric
    axes: Keys
    keys: Ints
    schemas: Ints
    sums: Floats
    zeros: Ints
    """How many values are exactly 0; they are in no bucket."""
    starts: Ints
    buckets: Ints
    """j of each bucket, ascending within a series."""
    counts: Ints
    """Values in each bucket, at least 1."""


def native(metric: Metric, axes: Keys, keys: Ints, sums: Floats, cells: Cells) -> Native:
    """The histograms of all values in ``cells``.

    Args:
        metric: what it is.
        axes: labels of the series.
        keys: series, ascending; all series of the cells are among them.
        sums: of the values of ``keys[n]``.
        cells: counts by (place of the series in ``keys``, bucket of the grid).
    """
    packed, amounts = cells.arrays()
    of, bucket = series_of(packed), bucket_of(packed)
    zero = bucket == ZERO
    zeros = np.zeros(len(keys), np.int64)
    zeros[of[zero]] = amounts[zero]
    of, bucket, amounts = of[~zero], bucket[~zero], amounts[~zero]
    schemas = _schemas(of, bucket, len(keys))
    for schema in np.unique(schemas).tolist():
        chosen = schemas[of] == schema
        bucket[chosen] = coarsen(bucket[chosen], schema)
    begins = np.flatnonzero(_begins(of, bucket))
    of, bucket = of[begins], bucket[begins]
    counts = np.add.reduceat(amounts, begins) if len(begins) else amounts
    starts = np.searchsorted(of, np.arange(len(keys) + 1))
    filled = (np.diff(starts) > 0) | (zeros > 0)
    return Native(
        metric, axes, keys[filled], schemas[filled], sums[filled], zeros[filled],
        np.concatenate([starts[:-1][filled], starts[-1:]]), bucket, counts,
    )  # fmt: skip


def _schemas(of: Ints, bucket: Ints, n: int) -> Ints:
    """The finest schema for each of n series that needs no more than `MOST` buckets."""
    schemas = np.full(n, FINEST)
    for schema in range(FINEST, _ENOUGH, -1):
        width = np.bincount(of[_begins(of, coarsen(bucket, schema))], minlength=n)
        schemas[width > MOST] = schema - 1
    return schemas


def _begins(of: Ints, bucket: Ints) -> Bools:
    """Which cells begin a bucket, cells of a series and then of a bucket standing together."""
    begins = np.ones(len(of), np.bool_)
    begins[1:] = (of[1:] != of[:-1]) | (bucket[1:] != bucket[:-1])
    return begins
