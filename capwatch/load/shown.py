"""Values of pools as series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from capwatch.ledger.series import Column, Series
from capwatch.load.pools import Load
from capwatch.load.tables import POOLS
from capwatch.metrics import Metric

Gauge = Callable[[Load], float | Iterable[float] | None]
"""A value of a pool, or one for each value of the metric's last label; None is absent."""


def by_pool(loads: Sequence[Load], gauges: Mapping[Metric, Gauge]) -> Iterator[Series]:
    """The series of these metrics, whose first label is the pool."""
    numbers = np.array([load.number for load in loads], np.int64)
    order = np.argsort(numbers)
    for metric, gauge in gauges.items():
        names = metric.values.get(metric.labels[-1], ())
        columns = [Column("", ((metric.labels[-1], name),)) for name in names] or [Column()]
        values = np.full((len(loads), len(columns)), np.nan)
        for row, load in zip(values, loads, strict=True):
            told = gauge(load)
            if told is not None:
                row[:] = told if isinstance(told, int | float) else tuple(told)
        yield Series(metric, POOLS, numbers[order], values[order], columns)


def by_name(metric: Metric, loads: Sequence[Load], told: Callable[[Load], Mapping[str, float]]) -> Iterator[Series]:
    """The series of a metric whose last label takes any names."""
    found = [(load.number, one) for load in loads if (one := told(load))]
    names = sorted({name for _, one in found for name in one})
    numbers = np.array([number for number, _ in found], np.int64)
    order = np.argsort(numbers)
    columns = [Column("", ((metric.labels[-1], name),)) for name in names]
    values = np.array([[one.get(name, np.nan) for name in names] for _, one in found]).reshape(len(found), len(names))
    yield Series(metric, POOLS, numbers[order], values[order], columns)
