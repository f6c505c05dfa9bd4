"""Data quality: what became of the lines, what requests tell, and when the log was silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch.meters.sources import BOOKS
from capwatch.metrics import DROP_REASONS
from capwatch.record import Bools
from capwatch.review.facts import Facts
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.text import day, exact, percent, seconds
from capwatch.review.week import Week

ORDER: Final = 20
CHANCE: Final = 30.0
"""Requests that usually come in such a silence: e^-30 of it is chance."""
LEAST_S: Final = 60
MOST: Final = 10


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """Nothing is hidden: what the review rests on."""
    tables, findings, numbers = [], [], {}
    missing = []
    if week.quality:
        tables.append(_lines(week.quality))
    elif facts:
        missing.append(
            Missing(
                "lines dropped, by reason",
                "the source does not tell of them in this week",
                "the logs, or a history that this version wrote",
            )
        )
    rows = []
    for name, one in facts.items():
        told = _told(one)
        gaps = silences(one)
        numbers[name] = {"told": told, "silences": [{"from": begin, "to": end} for begin, end in gaps]}
        seen = [one.one.shown.get(key) for key in ("coverage_ratio", "join_ratio")]
        rows.append([name, exact(one.one.hours.requests), *(percent(value) for value in (*told.values(), *seen))])
        if seen[0] is None:
            missing.append(
                Missing(
                    f"requests of {name} that the log does not see",
                    "no engine tells how many it served",
                    "`engines` to scrape, or engine logs (`role: times`)",
                )
            )
        findings += _gaps(name, gaps) + _untold(name, one, told)
    columns = [
        "pool", "requests", "tell tokens", "tell TTFT", "tell duration", "tell queueing", "named tenants",
        "requests in the log, of those that engines served", "joined with an engine's log",
    ]  # fmt: skip
    tables += [Table("What requests tell", columns, rows)] if rows else []
    return Section("Data quality", (), tables, (), findings, missing, numbers)


def _lines(quality: Mapping[str, Mapping[str, float]]) -> Table:
    """What became of the lines of the week, in the order of the books."""
    kinds = [kind for kind in BOOKS.columns if any(one.get(kind) for one in quality.values())]
    words = {reason: f"dropped: {reason}" for reason in DROP_REASONS}
    rows = [[name, *(exact(one.get(kind, 0.0)) for kind in kinds)] for name, one in sorted(quality.items())]
    columns = [words.get(kind, kind).replace("_", " ") for kind in kinds]
    return Table("Lines that were read in the week, by source", ["source", *columns], rows)


def _told(one: Facts) -> dict[str, float]:
    hours = one.one.hours
    whole = max(1.0, hours.requests)
    tenants = hours.labels["tenant"]
    named = np.array([name not in ("other", "unknown") for name in tenants.names], np.bool_)[tenants.codes]
    return {
        "tokens": max(hours.told("prompt_tokens"), hours.told("output_tokens")) / whole,
        "ttft": hours.told("ttft_s") / whole,
        "duration": hours.told("duration_s") / whole,
        "queue": hours.told("queue_s") / whole,
        "named_tenants": float(hours.requests_by_row[named].sum()) / whole,
    }


def silences(one: Facts) -> list[tuple[int, int]]:
    """Stretches of seconds without a request that chance would not make at the rate of the hours around them."""
    told = one.one.seconds
    if told is None:
        return []
    silent: Bools = told.arrivals == 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent, [False]]).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    long = ends - begins >= LEAST_S
    found = []
    for begin, end in zip(begins[long].tolist(), ends[long].tolist(), strict=True):
        around = np.concatenate([told.arrivals[max(0, begin - 3600) : begin], told.arrivals[end : end + 3600]])
        if len(around) and around.mean() * (end - begin) > CHANCE:
            found.append((told.first + begin, told.first + end))
    return found


def _gaps(name: str, gaps: list[tuple[int, int]]) -> list[Finding]:
    if not gaps:
        return []
    whole = sum(end - begin for begin, end in gaps)
    return [
        Finding(
            f"{name}: no request for {seconds(float(whole))} in {len(gaps)} stretches that chance would not make",
            "info",
            [f"no request from {day(begin)} for {seconds(float(end - begin))}" for begin, end in gaps[:MOST]],
            ["see whether the service or the log stood still; what is told of the week leaves whole silent hours out"],
            {"seconds": whole},
            name,
        )
    ]


def _untold(name: str, one: Facts, told: Mapping[str, Any]) -> list[Finding]:
    if told["tokens"] >= 0.95 or one.week is None:
        return []
    return [
        Finding(
            f"{name}: only {percent(told['tokens'])} of the requests tell token counts",
            "info",
            ["cost, utilisation and replicas are those of the requests that tell them; the others cost nothing here"],
            ["switch usage on in the gateway (for streams `stream_options: {include_usage: true}`)"],
            {"tokens": told["tokens"]},
            name,
        )
    ]
