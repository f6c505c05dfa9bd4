"""What the log of a load test says about the test: open or closed loop, where the objective broke, what was left.

Times are arrivals and ends of requests, s in any epoch; every request has both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.capacity.bursts import quantile
from capwatch.record import Bools, Floats

WINDOW: Final = 100
"""Arrivals that are compared with their time: few enough to be of one load, and many against what clients dally."""
CLOSED: Final = 0.75
"""Deficit from which a loop is closed: midway between 1 and the most that chance comes to over such short windows.

Over one gap a request that ends in it is missed for half of the gap on average, if it ends at any time of it, and for
all of it if its end is what brings the next arrival.
"""
PACED: Final = 0.01
"""Ca² below which gaps are constant: a metronome, not chance."""
CLOSE: Final = 0.05
"""An arrival follows an end when it comes within this part of the mean gap between ends; 5 % do so by chance."""


@dataclass(frozen=True, slots=True)
class Loop:
    """How requests came.

    Attributes:
        verdict: `open`, `closed`, or `unclear` where there are too few requests or both would look alike.
        deficit: how many requests fewer an arrival finds in flight than there are on average, the median over short
            windows: 0 to 0.5 where arrivals come by chance whatever the system does (Wolff 1982, PASTA: 0 over long
            ones), 1 where each waits for the end of another (arrival theorem; Lavenberg and Reiser 1980, Sevcik and
            Mitrani 1981). None with too few requests.
        error: standard error of the deficit.
        follows: share of the arrivals that directly follow an end.
        gap_cv2: Ca² of the gaps.
    """

    verdict: str
    deficit: float | None
    error: float | None
    follows: float | None
    gap_cv2: float | None


def loop(started: Floats, finished: Floats) -> Loop:
    """Whether a load test was an open loop, by what its arrivals find.

    Workers that think for longer than they wait look more and more like an open loop, and load the system like one.

    Args:
        started: float64[n], arrivals in any order.
        finished: float64[n], the ends of the same requests.

    >>> at = np.cumsum(np.random.default_rng(7).exponential(0.1, 5000))
    >>> loop(at, at + 0.5).verdict, loop(np.arange(1000.0), np.arange(1.0, 1001.0)).verdict
    ('open', 'closed')
    """
    order = np.argsort(started, kind="stable")
    arrivals, ends = started[order], np.sort(finished)
    windows = (len(arrivals) - 1) // WINDOW
    if windows < 3:
        return Loop("unclear", None, None, None, None)
    gaps = np.diff(arrivals)
    cv2 = float(gaps.var() / gaps.mean() ** 2) if gaps.mean() else None
    deficits = _deficits(arrivals, ends, windows)
    low, deficit, high = (float(one) for one in np.quantile(deficits, (0.25, 0.5, 0.75)))
    error = 1.2533 * (high - low) / 1.349 / np.sqrt(windows)  # of a median, by the quartiles of a normal distribution
    follows = _follows(arrivals, ends)
    if cv2 is not None and cv2 < PACED:
        verdict = "closed" if follows > 0.5 else "open"
    elif abs(deficit - CLOSED) < 2 * error:
        verdict = "unclear"
    else:
        verdict = "closed" if deficit > CLOSED else "open"
    return Loop(verdict, deficit, float(error), follows, cv2)


def _deficits(arrivals: Floats, ends: Floats, windows: int) -> Floats:
    """Time average less what arrivals find, in each window of arrivals."""
    found = np.arange(len(arrivals)) - np.searchsorted(ends, arrivals, side="right")
    edges = arrivals[: windows * WINDOW + 1 : WINDOW]
    held = _until(edges, arrivals) - _until(edges, ends)
    span = np.diff(edges)
    seen: Floats = found[1 : windows * WINDOW + 1].reshape(windows, WINDOW).mean(axis=1)
    average = np.divide(np.diff(held), span, out=seen.copy(), where=span > 0)
    deficits: Floats = average - seen
    return deficits


def _until(times: Floats, events: Floats) -> Floats:
    """Σ (t − e) over the events before each time: the integral of their number so far."""
    origin = events[0]
    sums = np.concatenate([[0.0], np.cumsum(events - origin)])
    before = np.searchsorted(events, times)
    result: Floats = before * (times - origin) - sums[before]
    return result


def _follows(arrivals: Floats, ends: Floats) -> float:
    last = np.searchsorted(ends, arrivals, side="right") - 1
    known = last >= 0
    mean_gap = (ends[-1] - ends[0]) / max(len(ends) - 1, 1)
    return float(((arrivals[known] - ends[last[known]]) <= CLOSE * mean_gap).mean()) if known.any() else 0.0


@dataclass(frozen=True, slots=True)
class Break:
    """Requests/s of the fastest window that kept the objective below every one that broke it, and of the slowest that
    broke it; None where there is none.
    """

    kept: float | None
    broken: float | None


def slo_break(started: Floats, good: Bools, window: float, objective: float) -> Break:
    """At which rate the objective broke.

    Args:
        started: float64[n], arrivals of the requests that can be judged.
        good: bool[n], whether each met its targets.
        window: seconds over which a rate and a share of good requests are taken.
        objective: share that has to be good, in 0..1.

    >>> at = np.concatenate([np.arange(0, 60, 0.5), np.arange(60, 120, 0.1)])
    >>> slo_break(at, at < 60, 10, 0.95)
    Break(kept=2.0, broken=10.0)
    """
    if not len(started):
        return Break(None, None)
    place = ((started - started.min()) // window).astype(np.int64)
    whole = max(1, int((started.max() - started.min()) // window))  # a window that was cut short has no rate
    counts = np.bincount(place)[:whole]
    share = np.bincount(place, good)[:whole] / np.maximum(counts, 1)
    rates, holds = counts[counts > 0] / window, share[counts > 0] >= objective
    broken = rates[~holds].min() if not holds.all() else None
    kept = rates[holds & (rates < broken)] if broken is not None else rates
    return Break(float(kept.max()) if len(kept) else None, None if broken is None else float(broken))


@dataclass(frozen=True, slots=True)
class Rest:
    """What a test left behind: requests in flight at the last arrival, and seconds until the last of them ended.

    ``drained`` is whether those were no longer than a request took at the beginning: its p99 among the first tenth.
    """

    in_flight: int
    seconds: float
    drained: bool


def rest(started: Floats, finished: Floats) -> Rest | None:
    """Whether the queue drained before the test was over; None without requests.

    >>> at = np.arange(0.0, 100.0, 0.1)
    >>> rest(at, at + 0.5).drained, rest(at, at + 0.5 + at / 10).drained  # steady, and a wait that grows
    (True, False)
    """
    if not len(started):
        return None
    last = started.max()
    first = np.argsort(started, kind="stable")[: max(1, len(started) // 10)]
    usual = quantile(finished[first] - started[first], 0.99)
    seconds = float(finished.max() - last)
    return Rest(int(np.count_nonzero(finished > last)), seconds, seconds <= usual * (1 + 1e-9))


def wasted(cost: Floats, gone: Bools) -> float | None:
    """Share of the work, replica-seconds, that was done for clients who had gone; None where no cost is known.

    >>> wasted(np.array([1.0, 3.0, np.nan]), np.array([True, False, True]))
    0.25
    """
    known = ~np.isnan(cost)
    whole = float(cost[known].sum())
    return float(cost[known & gone].sum()) / whole if whole else None


def varied(lengths: Floats) -> bool | None:
    """Whether lengths are a distribution: the p95 exceeds the median by a tenth. None where no length is told.

    >>> varied(np.full(100, 512.0)), varied(np.arange(1.0, 100.0)), varied(np.array([np.nan]))
    (False, True, None)
    """
    told = lengths[~np.isnan(lengths)]
    return bool(quantile(told, 0.95) > 1.1 * quantile(told, 0.5)) if len(told) else None
