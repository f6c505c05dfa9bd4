"""Where demand is heading: a straight line through the days, with its error, and the day on which it meets a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.review.calendar import DAY, HOUR
from capwatch.review.week import Demand

LEAST_DAYS: Final = 28
"""Days under which a trend of a business is a guess."""
WHOLE: Final = 20
"""Hours of a day that must be known for it to count."""
SURE: Final = 1.645
"""Standard errors of a 90 % interval."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Mean demand of a day, replica-seconds a second.

    Attributes:
        level: now, at the end of the last day.
        slope: per day.
        error: standard error of the slope; residuals of neighbouring days are taken to be alike.
        days: that it rests on.
    """

    level: float
    slope: float
    error: float
    days: int

    def until(self, limit: float) -> tuple[float | None, float | None, float | None]:
        """Days until the line meets a limit: (earliest, expected, latest) of a 90 % interval; None: not at that slope.

        >>> Trend(10.0, 0.1, 0.02, 30).until(12.0)[1]
        20.0
        """
        slopes = self.slope + SURE * self.error, self.slope, self.slope - SURE * self.error
        left = limit - self.level
        first, middle, last = (max(0.0, left) / slope if slope > 0 or left <= 0 else None for slope in slopes)
        return first, middle, last


def trend(demand: Demand) -> Trend | None:
    """The trend of a pool; None with fewer than four weeks of whole days.

    Days of the week have their own level, so that a week that begins on a Saturday is no trend.
    """
    day = demand.at // DAY
    days, of = np.unique(day, return_inverse=True)
    hours = np.bincount(of)
    whole = hours >= WHOLE
    if whole.sum() < LEAST_DAYS:
        return None
    days, level = days[whole], (np.bincount(of, demand.cost) / hours)[whole] / HOUR
    x = (days - days[-1]).astype(np.float64)
    columns = [x, *((days % 7 == one).astype(np.float64) for one in range(7) if (days % 7 == one).any())]
    design = np.stack(columns, axis=1)
    solution, *_ = np.linalg.lstsq(design, level, rcond=None)
    residual = level - design @ solution
    freedom = max(1, len(level) - design.shape[1])
    alike = float(np.clip((residual[1:] * residual[:-1]).sum() / max(1e-300, float((residual**2).sum())), 0.0, 0.95))
    variance = float((residual**2).sum()) / freedom * (1 + alike) / (1 - alike)
    error = float(np.sqrt(variance * np.linalg.pinv(design.T @ design)[0, 0]))
    return Trend(float(np.mean(solution[1:]) + solution[0]), float(solution[0]), error, int(whole.sum()))
