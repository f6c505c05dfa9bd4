"""What engines tell beside the log: preemptions, abandoned work, how much of the traffic the log sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capwatch.review.calendar import HOUR
from capwatch.review.facts import Facts
from capwatch.review.section import Missing, Section, Table
from capwatch.review.text import number, percent
from capwatch.review.week import Week

ORDER: Final = 110


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """As a server has scraped it; the busy ratio of a GPU is not capacity, so it is not among it."""
    rows, missing, numbers = [], [], {}
    for name, one in facts.items():
        shown = one.one.shown
        if not shown:
            continue
        numbers[name] = {"shown": dict(shown)}
        lost = shown.get("abandoned_replica_seconds")
        rows.append(
            [
                name, number(shown.get("preemptions")), "not known" if lost is None else f"{number(lost / HOUR)} hours",
                percent(shown.get("coverage_ratio")), percent(shown.get("join_ratio")),
            ]
        )  # fmt: skip
    if facts:
        missing.append(
            Missing(
                "restarts of engines, throttling and faults of GPUs",
                "no source of a review keeps them by the week",
                "the dashboards and alerts (capwatch_engine_restarts_total, capwatch_gpu_*)",
            )
        )
    columns = ["pool", "preemptions", "abandoned replica-hours", "seen by the log", "joined to engine logs"]
    tables = [Table("Of the week, by capwatch's own counters", columns, rows)] if rows else []
    return Section("Engines", (), tables, (), (), missing, numbers)
