"""Forecast of demand: the next week by the hour, with the interval that its own past errors give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity import sizing
from capwatch.review.calendar import HOUR, WEEK
from capwatch.review.facts import Facts
from capwatch.review.forecast import Forecast, forecast
from capwatch.review.section import Figure, Finding, Line, Missing, Section, Table
from capwatch.review.text import day, exact, number, percent
from capwatch.review.week import Week

ORDER: Final = 135
SHOWN: Final = 3 * WEEK


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """The next week of each pool; where history is too short nothing is extrapolated."""
    rows, figures, findings, missing, numbers = [], [], [], [], {}
    for name, one in facts.items():
        found, why = forecast(one.one.demand, week.end)
        if found is None:
            missing.append(Missing(f"the forecast of {name}", why, "three weeks of rollups and more"))
            continue
        numbers[name] = {"forecast": _numbers(one, found)}
        rows.append(_row(name, numbers[name]["forecast"]))
        figures.append(_figure(name, one, found))
        findings += _finding(name, one, found, numbers[name]["forecast"])
    columns = [
        "pool", "rule that was nearer", "its error", "error of the same hour last week", "tried on", "mean demand",
        "busiest hour", "replicas needed then",
    ]  # fmt: skip
    tables = [Table("The next week (demand in replica-seconds a second)", columns, rows)] if rows else []
    return Section("Forecast", (), tables, figures, findings, missing, numbers)


def _numbers(one: Facts, found: Forecast) -> dict[str, Any]:
    busiest = int(found.demand.argmax())
    target = one.pool.target_utilisation
    return {
        "method": found.method, "error_ratio": found.error, "baseline_error_ratio": found.baseline,
        "weeks_known": found.weeks, "hours_tried": found.tried, "mean": float(found.demand.mean()),
        "busiest_at": found.begin + busiest * HOUR, "busiest": float(found.demand[busiest]),
        "busiest_high": float(found.high[busiest]),
        "replicas_needed": sizing.needed(float(found.demand[busiest]), 1, target),
        "replicas_needed_high": sizing.needed(float(found.high[busiest]), 1, target),
    }  # fmt: skip


def _row(name: str, told: Mapping[str, Any]) -> list[str]:
    needed = f"{exact(told['replicas_needed'])} (at most {exact(told['replicas_needed_high'])})"
    return [
        name, told["method"], percent(told["error_ratio"]), percent(told["baseline_error_ratio"]),
        f"{exact(told['hours_tried'])} hours", number(told["mean"]),
        f"{number(told['busiest'])} on {day(told['busiest_at'])}", needed,
    ]  # fmt: skip


def _figure(name: str, one: Facts, found: Forecast) -> Figure:
    demand = one.one.demand
    mine = demand.at >= found.begin - SHOWN
    at = found.begin + np.arange(len(found.demand), dtype=np.float64) * HOUR
    lines = [
        Line("known", demand.at[mine].astype(np.float64), demand.cost[mine] / HOUR),
        Line("forecast", at, found.demand),
        Line("nine in ten hours below", at, found.high),
        Line("nine in ten above", at, found.low),
    ]
    if one.one.replicas is not None:
        ends = np.array([float(demand.at[mine][0]) if mine.any() else at[0], at[-1]])
        lines.append(Line("target", ends, np.full(2, one.one.replicas * one.pool.target_utilisation)))
    return Figure(f"{name}: demand by the hour, and of the next week", "time", "replica-seconds/s", lines)


def _finding(name: str, one: Facts, found: Forecast, told: Mapping[str, Any]) -> list[Finding]:
    replicas = one.one.replicas
    if replicas is None or told["replicas_needed"] <= replicas or (one.headroom is not None and one.headroom < 0):
        return []
    return [
        Finding(
            f"{name}: {exact(told['replicas_needed'])} replicas will be needed on {day(told['busiest_at'])} UTC",
            "warning",
            [f"by {found.method}, off by {percent(found.error)} on average when it was tried"],
            [f"+{told['replicas_needed'] - replicas} replicas by then, or the work of the busy hour moved"],
            dict(told),
            name,
            "estimated",
        )
    ]
