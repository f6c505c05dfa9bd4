"""The shape of traffic at one second: bursts, peak to mean, the day's swing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity.bursts import overload_seconds
from capwatch.capacity.profile import arrivals_of
from capwatch.record import Floats
from capwatch.review.facts import Facts, busy
from capwatch.review.section import Figure, Finding, Line, Missing, Section, Table
from capwatch.review.text import number, percent, signed
from capwatch.review.week import Week

ORDER: Final = 30
BAND_S: Final = 900
"""Seconds of a point of the figure: 672 of a week."""


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """Rates, bursts and regularity of arrivals, by pool."""
    rows, figures, missing, findings, numbers = [], [], [], [], {}
    for name, one in facts.items():
        told = _shape(one)
        if told is None:
            missing.append(
                Missing(
                    f"bursts of {name}",
                    "only hourly sums are known: bursts shorter than that are invisible",
                    "counts of seconds: a state directory (15 days), or the logs themselves",
                )
            )
            continue
        numbers[name] = told
        rows.append(_row(name, one, told))
        figures.append(_figure(name, one))
        findings += _overload(name, one, told)
    columns = [
        "pool", "mean/s", "busy hour over mean", "p99 of 5 min/s", "p99 second over median", "longest burst s",
        "steepest rise/s²", "Ca²", "pattern", "against last week",
    ]  # fmt: skip
    tables = [Table("Arrivals (counts of single seconds)", columns, rows)] if rows else []
    return Section("Shape of traffic", (), tables, figures, findings, missing, numbers)


def _shape(one: Facts) -> dict[str, Any] | None:
    seconds = one.one.seconds
    if seconds is None:
        return None
    notes: dict[str, str] = {}
    found = arrivals_of(seconds.arrivals, seconds.first, one.arrival_cv2, notes)
    replicas = one.one.replicas
    found["busy_hour_to_mean"] = busy(one.after) if one.after is not None else None
    found["overload_seconds"] = None if replicas is None else overload_seconds(seconds.cost, replicas)
    found["notes"] = notes
    return {"arrivals": found}


def _row(name: str, one: Facts, told: Mapping[str, Any]) -> list[str]:
    found = told["arrivals"]
    change = "not known"
    if one.last is not None and one.week is not None and one.last.rate:
        change = f"{signed(one.week.rate / one.last.rate - 1)} requests/s"
    return [
        name, number(found["mean_rps"]), number(found["busy_hour_to_mean"]), number(found["p99_5min_rps"]),
        number(found["p99_1s_to_median"]), number(found["longest_burst_s"]), number(found["max_ramp_rps"]),
        number(found["cv2"]), str(found["pattern"]), change,
    ]  # fmt: skip


def _figure(name: str, one: Facts) -> Figure:
    seconds = one.one.seconds
    assert seconds is not None  # noqa: S101 - it has been told
    whole = len(seconds.arrivals) // BAND_S * BAND_S
    parts: Floats = np.sort(seconds.arrivals[:whole].reshape(-1, BAND_S), axis=1)
    at = seconds.first + np.arange(len(parts), dtype=np.float64) * BAND_S
    lines = [
        Line("busiest second", at, parts[:, -1]),
        Line("p99 second", at, parts[:, int(0.99 * BAND_S)]),
        Line("mean", at, parts.mean(axis=1), "area"),
    ]
    return Figure(f"{name}: requests/s, by the quarter of an hour", "time", "requests/s", lines)


def _overload(name: str, one: Facts, told: Mapping[str, Any]) -> list[Finding]:
    over = told["arrivals"]["overload_seconds"]
    seconds = one.one.seconds
    if not over or seconds is None:
        return []
    share = over / len(seconds.arrivals)
    if share < 0.001:
        return []
    return [
        Finding(
            f"{name}: in {percent(share)} of the seconds more work arrived than {one.one.replicas} replicas do in one",
            "warning" if share > 0.05 else "info",
            [f"{over:,} of {len(seconds.arrivals):,} seconds of the week; requests then wait, or are shed"],
            ["a bounded queue covers bursts that are shorter than its time budget; see the ladder"],
            {"overload_seconds": over},
            name,
        )
    ]
