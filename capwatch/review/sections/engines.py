"""What engines tell beside the log: replicas as they came and went, restarts, preemptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capwatch.review.facts import Facts
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.text import exact, number
from capwatch.review.week import Week

ORDER: Final = 110
COUNTS: Final = ("restarts", "replicas_came", "replicas_left", "replicas_flapped", "preemptions")
FLAPS: Final = 4
"""Replicas in a week that came in an hour in which others left, from which a scaler is said to flap."""


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """As their logs and pages tell it; the busy ratio of a GPU is not capacity, so it is not among it."""
    rows, findings, missing, numbers = [], [], [], {}
    for name, one in facts.items():
        shown = one.one.shown
        if shown:
            numbers[name] = {"shown": dict(shown)}
        if not any(key in shown for key in (*COUNTS, "replicas_heard")):
            missing.append(
                Missing(
                    f"restarts, preemptions and replicas of {name} as they came and went",
                    "no engine tells of them",
                    "`engines` to scrape, or engine logs (`role: times`)",
                )
            )
            continue
        rows.append([name, _span(shown), _hours(shown), *(_count(shown.get(key)) for key in COUNTS)])
        findings += _findings(name, shown)
    if facts:
        missing.append(
            Missing(
                "throttling and faults of GPUs",
                "no source of a review keeps them by the week",
                "the dashboards and alerts (capwatch_gpu_*)",
            )
        )
    columns = [
        "pool", "replicas heard, fewest to most by the hour", "mean, over hours", "restarts", "came", "left",
        "came and left within an hour", "preemptions",
    ]  # fmt: skip
    tables = [Table("Engines in the week", columns, rows)] if rows else []
    return Section("Engines", (), tables, (), findings, missing, numbers)


def _span(shown: Mapping[str, float]) -> str:
    if "replicas_most" not in shown:
        return "not known"
    return f"{number(shown['replicas_fewest'])} to {number(shown['replicas_most'])}"


def _hours(shown: Mapping[str, float]) -> str:
    if "replicas_heard" not in shown:
        return "not known"
    return f"{number(shown['replicas_heard'])} over {exact(shown['hours_heard'])} hours"


def _count(value: float | None) -> str:
    return "not known" if value is None else exact(value)


def _findings(name: str, shown: Mapping[str, float]) -> list[Finding]:
    found = []
    flaps, restarts = shown.get("replicas_flapped", 0.0), shown.get("restarts", 0.0)
    if flaps >= FLAPS:
        evidence = f"{exact(shown['replicas_came'])} came and {exact(shown['replicas_left'])} left in the week"
        remedy = "a scale-down window longer than the cold start, and a target that the burst does not cross"
        title = f"{name}: {exact(flaps)} replicas came in an hour in which others left"
        found.append(Finding(title, "info", [evidence], [remedy], {"flaps": flaps}, name))
    if restarts:
        evidence = "each takes its requests with it, and a cold start until it serves again"
        remedy = "the engine's log before the start; memory first"
        title = f"{name}: engines restarted {exact(restarts)} times"
        found.append(Finding(title, "info", [evidence], [remedy], {"restarts": restarts}, name))
    return found
