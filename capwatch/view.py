"""Everything that a page shows, from the totals: what the meters show, and how many series that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capwatch import metrics as m
from capwatch.ledger import Totals
from capwatch.ledger.series import Series, alone
from capwatch.metrics import CATALOGUE, Kind, Metric
from capwatch.seen import Meter

_ORDER = {metric: place for place, metric in enumerate(CATALOGUE.values())}


def view(
    meters: Sequence[Meter],
    totals: Totals,
    *,
    families: frozenset[str] | None = None,
    disabled: frozenset[str] = frozenset(),
) -> list[Series]:
    """The series of all meters in the catalogue's order, without those that hold nothing.

    Args:
        meters: what to show.
        totals: what they show it from.
        families: only the metrics of these names (with or without `_total`); None is all of them.
        disabled: `metrics.disable` of the configuration: metrics not to show, or `tenant_route:*` for all that have a
            series per tenant and route.
    """
    found = [series for meter in meters for series in meter.show(totals) if len(series.keys)]
    found = [one for one in found if not hidden(one.metric, disabled)]
    found.append(alone(m.SERIES, 1.0 + sum(map(samples, found))))
    if families is not None:
        found = [one for one in found if families.intersection(names(one.metric))]
    return sorted(found, key=lambda one: _ORDER[one.metric])


def showing(meters: Sequence[Meter], empty: Totals, families: frozenset[str] | None) -> list[Meter]:
    """Those of the meters that are needed to show the metrics of these names, see `view`.

    ``empty`` are totals of these meters in which nothing has happened: a meter shows all its metrics of them, too.
    """
    if families is None or m.SERIES.name in families:  # it counts the series of all
        return list(meters)
    shown = ((meter, {name for one in meter.show(empty) for name in names(one.metric)}) for meter in meters)
    return [meter for meter, told in shown if told & families]


def names(metric: Metric) -> tuple[str, str]:
    """The names by which people may choose a metric: with and without `_total`."""
    return metric.name, metric.family


def hidden(metric: Metric, disabled: frozenset[str]) -> bool:
    """Whether `metrics.disable` names a metric."""
    pairs = "tenant_route:*" in disabled and metric.labels[:2] == ("tenant", "route")
    return pairs or not disabled.isdisjoint(names(metric))


def samples(series: Series) -> int:
    """How many samples these series put on a page of text."""
    return 0 if series.metric.kind is Kind.NATIVE else int((~np.isnan(series.values)).sum())
