"""Expressions of the boards: every metric is one of the catalogue's and gets the matchers of the variables it obeys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from capwatch.metrics import CATALOGUE, Kind, Metric

TARGET: Final = ("job", "instance")
"""Labels that Prometheus itself gives to everything it scrapes."""
CHOICES: Final = ("pool", "tenant", "route", "model")
"""Labels of the catalogue that a board may offer as variables."""
FOREIGN: Final = ("up", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds")
"""Metrics that are not in the catalogue: of the scrape, and of any process that exposes itself."""
_SUFFIXES: Final = {
    Kind.SUMMARY: ("", "_sum", "_count"),
    Kind.HISTOGRAM: ("_bucket", "_sum", "_count"),
}
_SERIES: Final = {
    metric.name + suffix: metric for metric in CATALOGUE.values() for suffix in _SUFFIXES.get(metric.kind, ("",))
}
_SELECTOR: Final = re.compile(rf"(?<![\"\w:])(capwatch_\w+|{'|'.join(FOREIGN)})\b(?:\{{([^}}]*)\}})?")


def select(expression: str, variables: Sequence[str]) -> str:
    """The expression with a matcher for each of the ``variables`` that the label of a metric stands for.

    >>> select('sum(rate(capwatch_arrivals_total{pool!="x"}[$__rate_interval]))', ["pool", "tenant"])
    'sum(rate(capwatch_arrivals_total{pool!="x",job=~"$job",instance=~"$instance",pool=~"$pool"}[$__rate_interval]))'

    Raises:
        ValueError: a metric that the catalogue does not have.
    """

    def matched(found: re.Match[str]) -> str:
        held = labels(found[1])
        own = (*TARGET, *(name for name in variables if name in held))
        matchers = ([found[2]] if found[2] else []) + [f'{name}=~"${name}"' for name in own]
        return f"{found[1]}{{{','.join(matchers)}}}"

    return _SELECTOR.sub(matched, expression)


def labels(series: str) -> tuple[str, ...]:
    """The labels of a series that the catalogue gives it, those of its kind included."""
    if series in FOREIGN:
        return ()
    metric = _known(series)
    own = {"": ("quantile",), "_bucket": ("le",)} if metric.kind in _SUFFIXES else {}
    return (*metric.labels, *own.get(series.removeprefix(metric.name), ()))


def metrics(expressions: Sequence[str]) -> Iterator[Metric]:
    """The metrics of the catalogue that the expressions read, each once, in the order of their appearance."""
    found = (match[1] for expression in expressions for match in _SELECTOR.finditer(expression))
    yield from dict.fromkeys(_known(series) for series in found if series not in FOREIGN)


def _known(series: str) -> Metric:
    if series not in _SERIES:
        raise ValueError(f"{series} is no series of the catalogue")
    return _SERIES[series]


def rate(counter: str, by: str = "") -> str:
    """How much of a counter comes each second, summed over all instances.

    >>> rate("capwatch_arrivals_total", "pool")
    'sum by (pool) (rate(capwatch_arrivals_total[$__rate_interval]))'
    """
    return f"sum{_by(by)}(rate({counter}[$__rate_interval]))"


def ratio(counted: str, whole: str, by: str = "") -> str:
    """Of two counters, sums before the quotient; absent while the whole is nothing."""
    return f"{rate(counted, by)} / ({rate(whole, by)} > 0)"


def most(gauge: str, by: str = "pool") -> str:
    """The largest that an instance tells: each reckons for itself, so that a sum would count twice."""
    return f"max{_by(by)}({gauge})"


def least(gauge: str, by: str = "pool") -> str:
    """The smallest that an instance tells."""
    return f"min{_by(by)}({gauge})"


def quantile(share: float, histogram: str, by: str = "") -> str:
    """A percentile from the summed buckets of a histogram."""
    return f"histogram_quantile({share}, {rate(histogram + '_bucket', ', '.join(filter(None, [by, 'le'])))})"


def goodput(by: str = "") -> str:
    """Good requests among those that can be judged; 0 and not nothing where all are missed, 1 where none is."""
    good, missed = rate("capwatch_goodput_requests_total", by), rate("capwatch_goodput_missed_total", by)
    good, missed = f"({good} or 0 * {missed})", f"({missed} or 0 * {good})"
    return f"{good} / ({good} + {missed} > 0)"


def _by(names: str) -> str:
    return f" by ({names}) " if names else ""
