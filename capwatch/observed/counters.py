"""What capwatch's counters and gauges say of a window, as a Prometheus has scraped them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from capwatch.errors import CapwatchError
from capwatch.metrics import ARRIVALS, DEPARTURES, Metric
from capwatch.observed.columns import Columns, selector
from capwatch.observed.prometheus import Server

STEP_S: Final = 300
"""Seconds between two looks at a counter of few series: scrapes are closer than that, and so is what gaps hide."""
MOMENTS: Final = 200
"""Of the window at most, at which counters of many series are looked at."""


@dataclass(frozen=True)
class Counters:
    """What a server tells of one window, of one pool or of all.

    Attributes:
        server: the server.
        since, until: s, epoch.
        pool: None for all.
        step: seconds between two looks at a gauge, and at a counter at least.
    """

    server: Server
    since: float
    until: float
    pool: str | None
    step: float = STEP_S
    _found: dict[str, Columns] = field(default_factory=dict)

    def rises(self, metric: Metric, suffix: str = "", step: float | None = None) -> Columns:
        """What a counter added in each step, each series apart."""
        name = metric.name + suffix
        if name not in self._found:
            coarse = -(-(self.until - self.since) // (MOMENTS * self.step)) * self.step
            pool = self.pool if "pool" in metric.labels else None
            told = self.server.range(selector(name, pool=pool), self.since, self.until, step or coarse)
            self._found[name] = told.continued(*metric.labels, "le").rises()
        return self._found[name]

    def added(self, metric: Metric, *by: str, suffix: str = "") -> dict[tuple[str, ...], float]:
        """What a counter added in the window, by labels, the largest first; what added nothing is left out."""
        sums = {key: float(np.nansum(column)) for key, column in self.rises(metric, suffix).by(*by).items()}
        return dict(sorted(((key, total) for key, total in sums.items() if total > 0), key=lambda pair: -pair[1]))

    def total(self, metric: Metric, suffix: str = "", **labels: str) -> float:
        """What a counter added in the window, over all series that have these labels."""
        return float(np.nansum(self.rises(metric, suffix).where(**labels).values))

    def gauge(self, metric: Metric) -> Columns:
        """A gauge of the pools that finished requests, the worst of what several instances of capwatch show of one."""
        expr = f"max by (pool) ({selector(metric.name, pool=self.pool)})"
        found = self.server.range(expr, self.since, self.until, self.step)
        kept = [row for row, labels in enumerate(found.labels) if labels.get("pool") in self.busy]
        return Columns(found.at, [found.labels[row] for row in kept], found.values[kept])

    @property
    def busy(self) -> list[str]:
        """The pools that finished requests in the window."""
        return [name for (name,) in self.added(DEPARTURES, "pool")]

    def one(self, metric: Metric, *, last: bool = False) -> float | None:
        """Mean of a gauge, or its last value; None where none is told, or several pools have one."""
        found = self.gauge(metric)
        told = found.values[~np.isnan(found.values)]
        return None if len(found) != 1 or not len(told) else float(told[-1] if last else told.mean())

    def pools(self) -> list[str]:
        """The pools there are."""
        return self.server.values("pool", self.since, self.until, ARRIVALS.name)

    def missing(self) -> CapwatchError:
        """Why there is nothing."""
        pools, window = self.pools(), f"between {at_time(self.since)} and {at_time(self.until)}"
        if self.pool is not None and pools and self.pool not in pools:
            return CapwatchError(f"{self.server.url}: no pool {self.pool!r} {window}; there are {', '.join(pools)}")
        why = f"has no request {window}" if pools else f"has no {ARRIVALS.name} {window}; does it scrape capwatch?"
        return CapwatchError(f"{self.server.url}: {why}")


def at_time(at: float) -> str:
    """RFC 3339.

    >>> at_time(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
