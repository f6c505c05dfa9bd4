"""What is shown: many samples of one metric as columns, ready for any exposition format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capwatch.ledger.table import Keys
from capwatch.metrics import QUANTILES, Metric
from capwatch.record import Floats, Ints

ALONE = Keys(())
"""The keys of a metric without labels: one series, key 0."""


@dataclass(frozen=True, slots=True)
class Column:
    """One sample of a series: the suffix of its name and the labels it has beyond the series' own."""

    suffix: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """``values[n, len(columns)]`` of ``keys[n]`` of one metric; a NaN is an absent sample."""

    metric: Metric
    axes: Keys
    keys: Ints
    values: Floats
    columns: Sequence[Column]


def plain(metric: Metric, axes: Keys, keys: Ints, values: Floats) -> Series:
    """A metric with one sample a series, ``values[n]``."""
    return Series(metric, axes, keys, values.reshape(-1, 1), (Column(),))


def alone(metric: Metric, value: float) -> Series:
    """A metric without labels."""
    return plain(metric, ALONE, np.zeros(1, np.int64), np.array([value]))


def spread(metric: Metric, axes: Keys, keys: Ints, values: Floats, names: Sequence[str]) -> Series:
    """A metric whose last label is spread over the columns ``values[n, len(names)]``."""
    return Series(metric, axes, keys, values, [Column("", ((metric.labels[-1], name),)) for name in names])


def seldom(values: Floats) -> Floats:
    """Zeros made absent: series of tenants and routes appear with their first event."""
    return np.where(values == 0, np.nan, values)


SUMMARY = (
    *(Column("", (("quantile", repr(q)),)) for q in QUANTILES),
    Column("_sum"),
    Column("_count"),
)
"""The columns of a summary: its quantiles, then sum and count for life."""


def histogram(edges: Sequence[float]) -> list[Column]:
    """The columns of a classic histogram: a cumulative bucket per edge, the last for all, then sum and count."""
    bounds = [*map(repr, map(float, edges)), "+Inf"]
    return [*(Column("_bucket", (("le", bound),)) for bound in bounds), Column("_sum"), Column("_count")]
