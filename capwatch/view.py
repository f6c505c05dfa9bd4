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
        found = [one for one in found if one.metric.name in families or one.metric.family in families]
    return sorted(found, key=lambda one: _ORDER[one.metric])


def hidden(metric: Metric, disabled: frozenset[str]) -> bool:
    """Whether `metrics.disable` names a metric."""
    pairs = "tenant_route:*" in disabled and metric.labels[:2] == ("tenant", "route")
    return pairs or metric.name in disabled or metric.family in disabled


def samples(series: Series) -> int:
    """How many samples these series put on a page of text."""
    return 0 if series.metric.kind is Kind.NATIVE else int((~np.isnan(series.values)).sum())
