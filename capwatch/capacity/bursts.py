"""Bursts at one second: what counts by the minute hide. Counts of requests, or cost, in neighbouring seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capwatch.record import Floats, Ints


@dataclass(frozen=True, slots=True)
class Bursts:
    """Burst statistics of a stretch of seconds.

    Attributes:
        p99_to_usual: 99th percentile over the usual second; None where nothing came.
        longest_s: longest run of seconds with more than twice the usual.
        max_ramp: largest increase between two neighbouring seconds, per second; 0 where nothing rose.
        usual: the median; the mean where the median is 0.
        by_mean: whether it is the mean.
    """

    p99_to_usual: float | None
    longest_s: int
    max_ramp: float
    usual: float
    by_mean: bool


def bursts(counts: Floats) -> Bursts | None:
    """The statistics of counts in 1 s, in order and without gaps; None where there are none (capacity text C).

    Quantiles are sorted[min(n − 1, ⌊q n⌋)].

    Args:
        counts: float64[n], requests or replica-seconds of each second.

    >>> hour = np.full(3600, 40.0)
    >>> hour[600:690] = 400
    >>> bursts(hour)
    Bursts(p99_to_usual=10.0, longest_s=90, max_ramp=360.0, usual=40.0, by_mean=False)
    """
    if not len(counts):
        return None
    median = quantile(counts, 0.5)
    usual = median or float(counts.mean())
    return Bursts(
        p99_to_usual=quantile(counts, 0.99) / usual if usual else None,
        longest_s=longest(counts > 2 * usual),
        max_ramp=max(0.0, float(np.diff(counts).max(initial=0.0))),
        usual=usual,
        by_mean=not median,
    )


def quantile(values: Floats, q: float) -> float:
    """sorted[min(n − 1, ⌊q n⌋)], n ≥ 1.

    >>> quantile(np.arange(100.0), 0.99), quantile(np.arange(3.0), 1.0)
    (99.0, 2.0)
    """
    rank = min(len(values) - 1, int(q * len(values)))
    return float(np.partition(values, rank)[rank])


def weighted(values: Floats, counts: Ints, q: float) -> float:
    """The same quantile of values that occur so often: ``values[m]`` ascending, ``counts[m]`` with a sum n ≥ 1.

    >>> weighted(np.array([3.0, 7.0]), np.array([99, 1]), 0.99), weighted(np.array([3.0, 7.0]), np.array([99, 1]), 0.5)
    (7.0, 3.0)
    """
    ends = np.cumsum(counts)
    rank = min(int(ends[-1]) - 1, int(q * int(ends[-1])))
    return float(values[np.searchsorted(ends, rank, side="right")])


def distorted(factor: float, burst: float, window: float) -> float:
    """What is left of a burst in a coarser window: (d k + w − d)/w.

    Args:
        factor: k, burst over usual.
        burst: d, its seconds.
        window: w ≥ d, seconds.

    >>> distorted(10, 20, 300), distorted(10, 90, 300)
    (1.6, 3.7)
    """
    return (burst * factor + window - burst) / window


def overload_seconds(cost: Floats, replicas: float) -> int:
    """Seconds in which more work came than the replicas do in one: λ₁ₛ c̄ > n.

    >>> overload_seconds(np.array([11.0, 12.0, 12.5, 40.0]), 12)
    2
    """
    return int(np.count_nonzero(cost > replicas))


def retry_amplification(attempts: float, requests: float) -> float | None:
    """Attempts over unique requests; None without any. A first try and three retries are up to 4.

    >>> retry_amplification(400, 100)
    4.0
    """
    return attempts / requests if requests else None


def longest(over: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """The longest run of True.

    >>> longest(np.array([True, False, True, True]))
    2
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], over, [False]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))
