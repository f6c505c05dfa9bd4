"""Demand of the next week by the hour, from the weeks that are known: what was, and how far it has been wrong.

Season by decomposition (STL: Cleveland and others 1990), the rest by exponential smoothing with a damped trend; beside
it the plain rule "the same hour last week". Both are tried on the last weeks that are known, each from what was known
before it; the one that was nearer is used, and its errors there are the interval.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.record import Floats
from capwatch.review import extra
from capwatch.review.calendar import HOUR, WEEK
from capwatch.review.week import Demand

SEASON: Final = WEEK // HOUR
LEAST_WEEKS: Final = 3
"""Two to learn a week's season from, and one to try it on."""
TRIED: Final = 2
"""Weeks at the end on which methods are tried, where there are so many."""
WHOLE: Final = 0.8
"""Part of the hours that must be known; the rest is taken from the week before or after."""
COVERED: Final = 0.9

Method = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The next week of a pool; demand is replica-seconds a second.

    Attributes:
        begin: of its first hour, s, epoch.
        demand, low, high: float64[168] each; nine in ten hours were inside when it was tried.
        method: which rule.
        error: mean absolute error when it was tried, over the mean demand.
        baseline: the same of "the same hour last week".
        weeks: that were known, whole.
        tried: hours on which it was tried.
    """

    begin: int
    demand: Floats
    low: Floats
    high: Floats
    method: str
    error: float
    baseline: float
    weeks: int
    tried: int


def forecast(demand: Demand, end: int) -> tuple[Forecast | None, str]:
    """(the week from ``end`` on, why there is none).

    Args:
        demand: what is known.
        end: s, epoch, where the known ends.
    """
    known = series(demand, end)
    if isinstance(known, str):
        return None, known
    weeks = len(known) // SEASON
    methods: dict[str, Method] = {"the same hour last week": same_hour, "season and smoothing": smoothed}
    tried = min(TRIED, weeks - LEAST_WEEKS + 1)
    truth = known[-tried * SEASON :]
    guesses = {name: _tried(known, method, tried) for name, method in methods.items()}
    level = max(float(truth.mean()), 1e-12)
    errors = {name: float(np.abs(guess - truth).mean()) / level for name, guess in guesses.items()}
    best = min(errors, key=lambda name: errors[name])
    found = np.maximum(methods[best](known), 0.0)
    off = np.quantile(np.abs(truth - guesses[best]), COVERED)
    return Forecast(
        end // HOUR * HOUR, found, np.maximum(found - off, 0.0), found + off, best, errors[best],
        errors["the same hour last week"], weeks, len(truth),
    ), ""  # fmt: skip


def series(demand: Demand, end: int) -> Floats | str:
    """Demand of whole weeks up to ``end``, without gaps; or why there is none."""
    last = end // HOUR * HOUR
    mine = demand.at < last
    if not mine.any():
        return "no hour is known"
    weeks = int(last - int(demand.at[0])) // WEEK
    if weeks < LEAST_WEEKS:
        days = (last - int(demand.at[0])) / 86400
        return f"{days:.0f} days of history; a week's season needs {LEAST_WEEKS} weeks"
    found = np.full(weeks * SEASON, np.nan)
    place = (demand.at[mine] - (last - weeks * WEEK)) // HOUR
    inside = place >= 0
    found[place[inside]] = demand.cost[mine][inside] / HOUR
    if np.isnan(found).mean() > 1 - WHOLE:
        return f"only {100 * (1 - np.isnan(found).mean()):.0f} % of the hours of the last {weeks} weeks are known"
    return _filled(found)


def _filled(values: Floats) -> Floats:
    """With hours that are not known taken from the same hour of other weeks, the nearest first."""
    found = values.copy()
    by_week = values.reshape(-1, SEASON)
    for place in np.flatnonzero(np.isnan(values)).tolist():
        week, hour = divmod(place, SEASON)
        others = np.flatnonzero(~np.isnan(by_week[:, hour]))
        nearest = others[np.argmin(np.abs(others - week))] if len(others) else None
        found[place] = float(np.nanmean(values)) if nearest is None else by_week[nearest, hour]
    return found


def _tried(known: Floats, method: Method, weeks: int) -> Floats:
    """What a method would have said of each of the last weeks, from what was known before it."""
    parts = [method(known[: len(known) - week * SEASON]) for week in range(weeks, 0, -1)]
    return np.maximum(np.concatenate(parts), 0.0)


def same_hour(known: Floats) -> Floats:
    """The last week once more."""
    return known[-SEASON:]


def smoothed(known: Floats) -> Floats:
    """Season of a week, and what is left smoothed exponentially with a damped trend."""
    if known.std() < 1e-9 * max(1.0, float(known.mean())):
        return np.full(SEASON, known[-1])
    tools = extra.smoothing()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an optimiser that stops early; the trial tells how good it is
        model = tools.STLForecast(
            known, tools.ETSModel, model_kwargs={"error": "add", "trend": "add", "damped_trend": True}, period=SEASON
        )
        found = np.asarray(model.fit(fit_kwargs={"disp": False}).forecast(SEASON), np.float64)
    return found if np.isfinite(found).all() else same_hour(known)
