"""Service levels: goodput by tenant and route, misses by reason, latency of each class beside that of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch import metrics as m
from capwatch.review.facts import Facts
from capwatch.review.hours import PLACE, Hours
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import exact, percent, seconds
from capwatch.review.week import Week

ORDER: Final = 90
MOST: Final = 10
OBJECTIVE: Final = 0.95
"""Share of good requests under which a tenant is told of; the rules page at their own objective."""
LEAST: Final = 100
"""Judged requests below which a share is chance."""
GOOD: Final = PLACE["goodput_good"]
MISSED: Final = [PLACE[f"goodput_{reason}"] for reason in m.MISSED_REASONS]


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """Good, missed and not to be judged, which add up to all requests."""
    tables, findings, missing, numbers = [], [], [], {}
    for name, one in facts.items():
        hours = one.one.hours
        shares = {label: by(hours, label) for label in ("tenant", "route")}
        numbers[name] = _numbers(hours)
        if numbers[name]["goodput_ratio"] is None:
            missing.append(
                Missing(f"goodput of {name}", _why(hours), "`slo` targets, and a log with times to first token")
            )
            continue
        for label, rows in shares.items():
            tables.append(_table(name, label, rows))
        tables.append(_latency(name, one.after or one.week))
        findings += _findings(name, shares["tenant"])
    return Section("Service levels", (), [table for table in tables if table.rows], (), findings, missing, numbers)


def by(hours: Hours, label: str) -> list[tuple[str, float, float, float]]:
    """(name, good, missed, all) of each value of a label, the most missed first."""
    column = hours.labels[label]
    size = len(column.names)
    good, missed, whole = (
        np.bincount(column.codes, values, size)
        for values in (hours.values[:, GOOD], hours.values[:, MISSED].sum(axis=1), hours.requests_by_row)
    )
    found = [(str(column.names[i]), float(good[i]), float(missed[i]), float(whole[i])) for i in np.flatnonzero(whole)]
    return sorted(found, key=lambda one: -one[2])


def _numbers(hours: Hours) -> dict[str, Any]:
    good = hours.sum("goodput_good")
    missed = {reason: hours.sum(f"goodput_{reason}") for reason in m.MISSED_REASONS}
    unjudged = {reason: hours.sum(f"goodput_{reason}") for reason in m.UNCLASSIFIED_REASONS}
    judged = good + sum(missed.values())
    return {"goodput_ratio": good / judged if judged else None, "missed": missed, "unclassified": unjudged}


def _why(hours: Hours) -> str:
    reasons = {reason: hours.sum(f"goodput_{reason}") for reason in m.UNCLASSIFIED_REASONS}
    most = max(reasons, key=lambda reason: reasons[reason])
    return f"no request could be judged: {most} for {percent(reasons[most] / max(1.0, hours.requests))} of them"


def _table(name: str, label: str, rows: list[tuple[str, float, float, float]]) -> Table:
    told = [
        [who, exact(whole), percent(good / (good + missed)) if good + missed else "not judged", exact(missed)]
        for who, good, missed, whole in rows[:MOST]
    ]
    return Table(f"{name}: goodput by {label} (the most missed first)", [label, "requests", "goodput", "missed"], told)


def _latency(name: str, now: Stretch | None) -> Table:
    columns = ["class", "TTFT p50", "TTFT p95", "TTFT p99", "duration p95", "of the pool: TTFT p95"]
    if now is None:
        return Table(f"{name}: latency by class", columns, [])
    whole = now.hours.quantiles("ttft_s", (0.95,))
    rows = []
    for klass in now.hours.names("class"):
        mine = now.hours.where("class", klass)
        first, last = mine.quantiles("ttft_s", (0.5, 0.95, 0.99)), mine.quantiles("duration_s", (0.95,))
        if first is None and last is None:
            continue
        told = [seconds(value) for value in first or (None, None, None)]
        rows.append([klass, *told, seconds(last[0] if last else None), seconds(whole[0] if whole else None)])
    return Table(f"{name}: latency by class beside that of the pool, since the last change", columns, rows)


def _findings(name: str, tenants: list[tuple[str, float, float, float]]) -> list[Finding]:
    bad = [
        (who, good / (good + missed), missed)
        for who, good, missed, _ in tenants
        if good + missed >= LEAST and good / (good + missed) < OBJECTIVE
    ]
    if not bad:
        return []
    lost = sum(missed for *_, missed in bad)
    return [
        Finding(
            f"{name}: goodput below {percent(OBJECTIVE)} for {len(bad)} tenants, worst {bad[0][0]} at "
            f"{percent(bad[0][1])}",
            "warning",
            [f"{who}: {percent(share)} good, {exact(missed)} missed in the week" for who, share, missed in bad[:MOST]],
            ["see utilisation for what the queue adds; a pooled p95 cannot tell who is hurt, so read it by class"],
            {"tenants": {who: share for who, share, _ in bad}, "missed": lost},
            name,
        )
    ]
