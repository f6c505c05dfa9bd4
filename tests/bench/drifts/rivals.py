"""What people use instead, each with the threshold that its users would set on this very history.

Every rival is given the cost of the same requests, already without the resends that it could not know. Thresholds come
from the learnt weeks: the highest value that a drift-free history reached there, and a tenth more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.drift.reference import cell
from capwatch.drift.scale import cusum
from capwatch.drift.ticks import TICK_S, Ticks, added

from .traffic import Floats, Ints

MINUTE: Final = 6
"""Ticks of a minute."""
DAY: Final = 8640
MARGIN: Final = 1.1
CAP: Final = 4.0
"""Costs of a tick are cut at that many times the mean, as a winsorised CUSUM has it."""


@dataclass(frozen=True)
class Series:
    """Requests and cost by tick, without a gap."""

    first: int
    n: Floats
    cost: Floats

    @classmethod
    def of(cls, ticks: Ticks) -> Series:
        """The series of some ticks."""
        first, size = int(ticks.tick[0]), int(ticks.tick[-1] - ticks.tick[0]) + 1
        n, cost = (added(ticks.tick - first, ticks[name], size) for name in ("n", "cost"))
        return cls(first, n, cost)

    def means(self, size: int) -> Floats:
        """Mean cost of the last ``size`` ticks, NaN where nothing came: float64[T]."""
        n, cost = (np.concatenate([np.zeros(size), np.cumsum(part)]) for part in (self.n, self.cost))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((cost[size:] - cost[:-size]) / (n[size:] - n[:-size]))


@dataclass(frozen=True)
class Learnt:
    """What the history tells a rival."""

    mean: float
    spread: float
    """Standard deviation of one-minute means."""
    hourly: Floats
    """float64[168]: mean cost by hour of the week."""


Statistic = Callable[[Series, Learnt], Floats]
"""One value for each tick; an alarm is a value above the threshold."""


def learn(history: Series) -> Learnt:
    """Mean, spread and hours of a history."""
    here = cell(np.arange(history.first, history.first + len(history.n)))
    n, cost = (np.bincount(here, part, 168) for part in (history.n, history.cost))
    minutes = history.means(MINUTE)[MINUTE - 1 :: MINUTE]
    mean = float(history.cost.sum() / history.n.sum())
    return Learnt(mean, float(np.nanstd(minutes)), np.where(n > 0, cost / np.maximum(n, 1), mean))


def five_minutes(series: Series, learnt: Learnt) -> Floats:
    """Mean of five minutes against the same hour of the history."""
    here = cell(np.arange(series.first, series.first + len(series.n)))
    return np.asarray(np.nan_to_num(series.means(5 * MINUTE) / learnt.hourly[here] - 1))


def ewma(series: Series, learnt: Learnt) -> Floats:
    """Exponentially weighted mean of one-minute means, λ = 0.2 (Roberts 1959)."""
    minutes = np.nan_to_num(series.means(MINUTE)[MINUTE - 1 :: MINUTE], nan=learnt.mean)
    level, found = learnt.mean, []
    for value in minutes:
        level = 0.8 * level + 0.2 * float(value)
        found.append(level)
    return _at_ticks((np.array(found) - learnt.mean) / learnt.spread, len(series.n))


def plain_cusum(series: Series, learnt: Learnt) -> Floats:
    """Page's CUSUM on the cost of a tick, cut, with a slack of a tenth."""
    cut = np.minimum(series.cost, CAP * learnt.mean * np.maximum(series.n, 1))
    return cusum(cut / learnt.mean - 1.1 * series.n)


def band(series: Series, learnt: Learnt) -> Floats:
    """Five-minute mean in standard deviations of the hour before it, as adaptive bands in PromQL have it."""
    now = np.nan_to_num(series.means(5 * MINUTE), nan=learnt.mean)
    size = 60 * MINUTE
    total, squares = (np.concatenate([np.zeros(size), np.cumsum(part)]) for part in (now, now**2))
    known = np.minimum(np.arange(1, len(now) + 1), size)
    mean = (total[size:] - total[:-size]) / known
    spread = np.sqrt(np.maximum(1e-9, (squares[size:] - squares[:-size]) / known - mean**2))
    score = (now - mean) / np.maximum(spread, learnt.spread / 3)
    score[: size // 2] = 0.0
    return np.asarray(score)


def kolmogorov(series: Series, learnt: Learnt) -> Floats:
    """Largest distance of the distributions of tick means, five minutes against the hour before, in its own errors
    (Kolmogorov 1933, Smirnov 1948).
    """
    values = np.nan_to_num(series.means(1), nan=learnt.mean)
    new, old = 5 * MINUTE, 60 * MINUTE
    found = np.zeros(len(values))
    for end in range(new + old, len(values) + 1, MINUTE):
        one, other = np.sort(values[end - new : end]), np.sort(values[end - new - old : end - new])
        both = np.concatenate([one, other])
        apart = np.searchsorted(one, both, "right") / new - np.searchsorted(other, both, "right") / old
        found[end - 1] = np.abs(apart).max() * np.sqrt(new * old / (new + old))
    return found


RIVALS: Final[dict[str, Statistic]] = {
    "5-min mean against history": five_minutes,
    "EWMA of minutes": ewma,
    "CUSUM, cut cost": plain_cusum,
    "band over an hour": band,
    "KS, 5 min against an hour": kolmogorov,
}


def _at_ticks(minutes: Floats, ticks: int) -> Floats:
    """A value of each minute, known from its last tick on."""
    found = np.zeros(ticks)
    place = np.arange(len(minutes)) * MINUTE + MINUTE - 1
    found[place] = minutes
    return found


class Tuned:
    """A rival with its threshold."""

    def __init__(self, statistic: Statistic, history: Series) -> None:
        self._statistic = statistic
        self._learnt = learn(history)
        values = statistic(history, self._learnt)
        self.threshold = MARGIN * float(values[DAY // 24 :].max())

    def alarms(self, series: Series) -> Ints:
        """Ticks whose value is above the threshold."""
        values = self._statistic(series, self._learnt)
        values[: DAY // 24] = 0.0  # its own start
        return np.asarray(series.first + np.flatnonzero(values > self.threshold))


def river(name: str) -> Callable[[Series], Ints] | None:
    """River's ADWIN or PageHinkley over one-minute means; None where River is not installed."""
    try:
        from river import drift  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None

    def alarms(series: Series) -> Ints:
        detector = getattr(drift, name)()
        found = []
        for i, value in enumerate(series.means(MINUTE)[MINUTE - 1 :: MINUTE]):
            detector.update(0.0 if np.isnan(value) else float(value))
            if detector.drift_detected:
                found.append(series.first + i * MINUTE + MINUTE - 1)
        return np.array(found, np.int64)

    return alarms


def delay(alarms: Ints, onset: float) -> float:
    """S from the onset to the end of the first alarming tick after it; infinite where there is none."""
    ends = (alarms + 1) * TICK_S
    later = ends[ends > onset]
    return float(later[0] - onset) if len(later) else float("inf")
