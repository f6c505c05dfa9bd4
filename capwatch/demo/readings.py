"""Readings: what pages of the daemon's own metrics say, and what happened between two of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from capwatch.demo.scene import GATEWAY
from capwatch.demo.workload import KINDS, REPLICAS

Name = tuple[str, str]
"""A dimension (`tenant`, `route` or `class`) and a name in it."""

_SAMPLE: Final = re.compile(r"capwatch_(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_COSTS: Final = {
    "cost_replica_seconds_total": ("tenant", "route"),
    "class_cost_replica_seconds_total": ("class",),
}
_FIRST_TOKENS: Final = ("route_ttft_seconds_sum", "route_ttft_seconds_count")


@dataclass(slots=True)
class Reading:
    """What one page says, as far as it is told on; counts are for life. An empty one is the time before all counts."""

    at: float = 0.0
    """The newest event of the gateway, s since the epoch."""
    sums: dict[str, float] = field(default_factory=partial(defaultdict, float))
    """By metric without `capwatch_`: over all its series, of times to the first token over the first class alone."""
    tokens: dict[str, float] = field(default_factory=partial(defaultdict, float))
    """By kind."""
    requests: dict[str, float] = field(default_factory=partial(defaultdict, float))
    """By class."""
    costs: dict[Name, float] = field(default_factory=partial(defaultdict, float))
    """Replica-seconds, once for each dimension."""


def read(page: str) -> Reading:
    """Find on a page in the text format what is told on."""
    reading = Reading()
    for name, labels, value in _samples(page):
        if name in _FIRST_TOKENS and labels["route"] != KINDS[0].route:
            continue
        reading.sums[name] += value
        if name == "source_last_event_timestamp_seconds" and labels["source"] == GATEWAY:
            reading.at = value
        if name == "tokens_total":
            reading.tokens[labels["kind"]] += value
        if name == "class_requests_total":
            reading.requests[labels["class"]] += value
        for dimension in _COSTS.get(name, ()):
            reading.costs[dimension, labels[dimension]] += value
    return reading


def _samples(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in page.splitlines():
        found = _SAMPLE.match(line)
        if found:
            yield found[1], dict(_LABEL.findall(found[2] or "")), float(found[3])


@dataclass(frozen=True, slots=True)
class Stretch:
    """What happened between two readings."""

    first: Reading
    last: Reading

    @property
    def seconds(self) -> float:
        """Of event time."""
        return self.last.at - self.first.at

    @property
    def requests(self) -> float:
        """That ended."""
        return self._more("class_requests_total")

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds

    @property
    def cost(self) -> float:
        """Replica-seconds a request."""
        return self._more("class_cost_replica_seconds_total") / self.requests

    @property
    def utilisation(self) -> float:
        """λ·cost/replicas."""
        return self.rate * self.cost / REPLICAS

    @property
    def first_token(self) -> float:
        """Mean time to the first token of the first class, s; NaN where nothing told one."""
        total, count = map(self._more, _FIRST_TOKENS)
        return total / count if count > 0 else float("nan")

    def tokens(self, kind: str) -> float:
        """Tokens of a kind a request."""
        return (self.last.tokens[kind] - self.first.tokens[kind]) / self.requests

    def share_of_requests(self, klass: str) -> float:
        """A class's, 0..1."""
        return (self.last.requests[klass] - self.first.requests[klass]) / self.requests

    def share_of_cost(self, name: Name) -> float:
        """A tenant's, route's or class's, 0..1."""
        return (self.last.costs[name] - self.first.costs[name]) / (self.cost * self.requests)

    def _more(self, metric: str) -> float:
        return self.last.sums[metric] - self.first.sums[metric]
