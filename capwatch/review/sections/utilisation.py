"""Utilisation and the knee: where the pool works on its curve, and how far the promises hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity import queueing, slots
from capwatch.capacity.knee import late_shares
from capwatch.review.facts import Facts
from capwatch.review.remedies import of_load
from capwatch.review.section import Figure, Finding, Line, Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import number, percent, seconds
from capwatch.review.week import Week

ORDER: Final = 80
STEPS: Final = 60
"""Points of a curve."""


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """The operating point of each pool."""
    rows, figures, findings, missing, numbers = [], [], [], [], {}
    for name, one in facts.items():
        if one.after is None:
            missing.append(
                Missing(f"utilisation of {name}", "no request tells tokens", "a log with token counts, or engine logs")
            )
        elif one.one.replicas is None:
            missing.append(
                Missing(f"utilisation of {name}", "its replicas are not known", "`pools[].replicas` as a number")
            )
        else:
            told = point(one, one.after)
            numbers[name] = told
            rows.append(_row(name, one, told))
            figures.append(_knee(name, one, one.after, told))
            findings += _finding(name, one, one.after)
        if one.pool.slots is None:
            missing.append(
                Missing(f"the slot view of {name}", "no slots are configured: replica view only", "`pools[].slots`")
            )
    columns = [
        "pool", "replicas", "utilisation", "busy hour", "view", "Ca²", "Cs²", "expected wait", "late, predicted",
        "late, measured", "isolated/s", "pooled/s",
    ]  # fmt: skip
    tables = [Table("The operating point since the last change", columns, rows)] if rows else []
    return Section("Utilisation and the knee", (), tables, figures, findings, missing, numbers)


def point(one: Facts, now: Stretch) -> dict[str, Any]:
    """Where the pool works, and what the formulas say of it."""
    replicas = one.one.replicas
    assert replicas is not None  # noqa: S101 - it is known here
    found = one.queueing(now)
    demand = found.demand
    wait = queueing.mean_wait(found.each * replicas, demand.rate, found.service, demand.stretch)
    return {
        "utilisation": one.utilisation(now),
        "utilisation_busy_hour": None if one.peak is None else one.peak / replicas,
        "view": found.view, "arrival_cv2": one.arrival_cv2, "service_cv2": one.service_cv2,
        "slot_busy": demand.rate * found.service / (found.each * replicas),
        "expected_wait_s": wait if np.isfinite(wait) else None,
        "late_share_predicted": demand.late_at(replicas),
        "late_share_measured": now.hours.over("queue_s", one.pool.wait_budget),
        "usable_rps_isolated": replicas * slots.usable_rate(demand),
        "usable_rps_pooled": slots.usable_rate(demand, replicas),
    }  # fmt: skip


def _row(name: str, one: Facts, told: Mapping[str, Any]) -> list[str]:
    return [
        name, number(one.one.replicas), percent(told["utilisation"]), percent(told["utilisation_busy_hour"]),
        told["view"], number(told["arrival_cv2"]), number(told["service_cv2"]), seconds(told["expected_wait_s"]),
        percent(told["late_share_predicted"]), percent(told["late_share_measured"]),
        number(told["usable_rps_isolated"]), number(told["usable_rps_pooled"]),
    ]  # fmt: skip


def _knee(name: str, one: Facts, now: Stretch, told: Mapping[str, Any]) -> Figure:
    replicas = one.one.replicas
    assert replicas is not None  # noqa: S101 - it is known here
    found = one.queueing(now)
    each, demand = found.each, found.demand
    rates = np.linspace(0.3, 0.999, STEPS) * each * replicas / found.service
    pooled = late_shares(each * replicas, rates, found.service, one.pool.wait_budget, demand.stretch)
    isolated = late_shares(each, rates / replicas, found.service, one.pool.wait_budget, demand.stretch)
    live = np.array([now.charged_rate])
    lines = [
        Line("one pooled queue", rates, np.maximum(pooled, 1e-6)),
        Line("a queue at each replica", rates, np.maximum(isolated, 1e-6)),
        Line("live", live, np.array([max(told["late_share_predicted"], 1e-6)]), "points"),
        Line("promised", rates[[0, -1]], np.full(2, one.pool.late_share)),
    ]
    return Figure(
        f"{name}: share of requests that wait over {seconds(one.pool.wait_budget)} ({found.view})",
        "requests/s",
        "share",
        lines,
        log=True,
    )


def _finding(name: str, one: Facts, now: Stretch) -> list[Finding]:
    used, promises = one.utilisation(now), one.promises
    if used is None or promises is None or one.changed is not None:
        return []  # the drift has told it
    over = one.headroom
    if over is None or over >= 0:
        return []
    return [
        Finding(
            f"{name}: {promises.base} replicas are needed at {percent(one.pool.target_utilisation)}, "
            f"{one.one.replicas} are there",
            "critical" if used >= 1 else "warning",
            [
                (
                    f"utilisation {percent(used)} on average, {percent((one.peak or 0) / (one.one.replicas or 1))} in"
                    f" the busy hour; {number(now.charged_rate)} requests/s at {number(now.cost, now.error)}"
                    " replica-seconds"
                )
            ],
            [remedy.told for remedy in of_load(one, now)],
            {"replicas_needed": promises.base, "utilisation": used},
            name,
            "computed",
        )
    ]
