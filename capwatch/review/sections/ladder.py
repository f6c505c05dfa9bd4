"""Bursts by shape with their answers, each against the ladder; cold starts; what covers 2×, 5× and 20×."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from capwatch.capacity import sizing, spike, work
from capwatch.capacity.shapes import season
from capwatch.metrics import START_PHASES
from capwatch.review.facts import Facts
from capwatch.review.ladder import ANSWERS, RUNGS, Covered, covered
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import day, exact, number, percent, seconds
from capwatch.review.week import Week

ORDER: Final = 120
MOST: Final = 12
FACTORS: Final = (2, 5, 20)


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """What bursts did, and what the next would do."""
    tables, text, findings, missing = [], [], [], []
    numbers: dict[str, dict[str, Any]] = {}
    for name, one in facts.items():
        told, replicas = one.one.seconds, one.one.replicas
        if told is not None and replicas is not None:
            found = covered(told, one.pool, replicas, one.one.hints)
            shapes = Counter(each.burst.shape for each in found)
            swing = season(told.arrivals, float(told.first))
            numbers[name] = {"shapes": dict(shapes), "gap_seconds": sum(each.seconds["gap"] for each in found)}
            text.append(_shapes(name, shapes, None if swing is None else swing.ratio))
            tables += [_bursts(name, found)] if found else []
            findings += _gaps(name, one, found)
        started = _starts(name, one)
        tables += [started] if started.rows else []
        if one.pool.cold_start is None:
            missing.append(
                Missing(
                    f"the cold start of {name}",
                    "it is neither configured nor measured",
                    "`pools[].cold_start`, or engine logs of a start (`role: times`)",
                )
            )
        findings += _window(name, one)
        if one.after is not None and replicas is not None:
            steps = multiples(one, one.after, replicas)
            numbers.setdefault(name, {})["multiples"] = steps
            tables.append(_multiples(name, one, steps))
    return Section("Bursts and the response ladder", text, tables, (), findings, missing, numbers)


def _starts(name: str, one: Facts) -> Table:
    """Cold starts by phase, as engines tell them from the start of their process."""
    shown, rows = one.one.shown, []
    for phase in START_PHASES:
        took = shown.get(f"start_{phase}_s")
        if took is not None:
            count = shown.get(f"start_{phase}_count")
            rows.append([phase.replace("_", " "), "the newest" if count is None else exact(count), seconds(took)])
    title = f"{name}: cold starts, mean from the start of the engine; node and image come before it"
    return Table(title, ["until", "starts", "after"], rows)


def _shapes(name: str, shapes: Mapping[str, int], swing: float | None) -> str:
    if not shapes and swing is None:
        return f"{name}: no burst stands out, and no hour of the day."
    parts = [f"{count} {shape.replace('_', ' ')} ({ANSWERS[shape]})" for shape, count in sorted(shapes.items())]
    day_swing = [] if swing is None else [f"a daily season of {number(swing)} times ({ANSWERS['seasonal']})"]
    return f"{name}: {', '.join([*parts, *day_swing])}."


def _bursts(name: str, found: list[Covered]) -> Table:
    worst = sorted(found, key=lambda one: (-one.longest_wait, -one.burst.extra))[:MOST]
    rows = [
        [
            day(one.burst.begin), seconds(one.burst.end - one.burst.begin), number(one.burst.usual_rps),
            number(one.burst.peak_rps), one.burst.shape.replace("_", " "),
            *(exact(one.seconds[rung]) for rung in RUNGS), seconds(one.longest_wait), ANSWERS[one.burst.shape],
        ]
        for one in sorted(worst, key=lambda one: one.burst.begin)
    ]  # fmt: skip
    columns = [
        "begin (UTC)", "length", "usual/s", "busiest second/s", "shape", *(f"{rung}, s" for rung in RUNGS),
        "longest wait", "answer",
    ]  # fmt: skip
    return Table(f"{name}: bursts, seconds of each by the rung that covered them", columns, rows)


def _gaps(name: str, one: Facts, found: list[Covered]) -> list[Finding]:
    bad = [each for each in found if each.seconds["gap"]]
    if not bad:
        return []
    whole = sum(each.seconds["gap"] for each in bad)
    worst = max(bad, key=lambda each: each.longest_wait)
    start = one.pool.cold_start
    late = [each for each in bad if start is not None and not spike.in_time(start, each.burst.end - each.burst.begin)]
    evidence = [
        (
            f"worst: {day(worst.burst.begin)} UTC, {number(worst.burst.peak_rps)}/s in its busiest second, wait up to"
            f" {seconds(worst.longest_wait)} against a budget of {seconds(one.pool.wait_budget)}"
        )
    ]
    if start is not None:
        evidence.append(f"{len(late)} of {len(bad)} are over before a replica that starts in {seconds(start)} is there")
    return [
        Finding(
            f"{name}: {exact(whole)} seconds of {len(bad)} bursts are covered by no rung of the ladder",
            "warning" if whole > 600 else "info",
            evidence,
            [
                "admission: bound the queue by its time budget and shed the rest, lowest priority first (seconds)",
                "overflow: a prepared endpoint by the token, or shorter answers while it lasts (seconds)",
                (
                    f"replicas: standing headroom of {percent(1 - one.pool.target_utilisation)} absorbs"
                    f" {number(sizing.absorbed(one.pool.target_utilisation))} times the usual rate"
                ),
            ],
            {"gap_seconds": whole, "bursts": len(bad)},
            name,
            "computed",
        )
    ]


def _window(name: str, one: Facts) -> list[Finding]:
    window, start = one.pool.scale_down_window, one.pool.cold_start
    if window is None or start is None or window >= start:
        return []
    return [
        Finding(
            f"{name}: replicas are taken away after {seconds(window)}, and take {seconds(start)} to come back",
            "info",
            ["a scale-down window that is shorter than the cold start makes a scaler flap"],
            [f"a window of {seconds(max(600.0, 2 * start))} or more"],
            {"scale_down_window_s": window, "cold_start_s": start},
            name,
            "computed",
        )
    ]


def multiples(one: Facts, now: Stretch, replicas: int) -> list[dict[str, Any]]:
    """What a step to a multiple of the present rate would do, and what it would need."""
    pool = one.pool
    capacity = work.capacity(replicas, now.cost)
    found = []
    for factor in FACTORS:
        rate = factor * now.charged_rate
        needed = sizing.needed(factor * now.demand, 1, pool.target_utilisation)
        told: dict[str, Any] = {
            "factor": factor, "rate": rate, "utilisation": work.utilisation(rate, now.cost, replicas),
            "replicas_needed": needed, "backlog": None, "last_wait_s": None, "shed": None,
        }  # fmt: skip
        if pool.cold_start is not None:
            then = work.capacity(max(needed, replicas), now.cost)
            step = spike.spike(rate, capacity, pool.cold_start, then, pool.wait_budget)
            told |= {"backlog": step.backlog, "last_wait_s": step.last_wait, "shed": step.shed}
        found.append(told)
    return found


def _multiples(name: str, one: Facts, told: list[dict[str, Any]]) -> Table:
    rows = []
    for each in told:
        if each["utilisation"] <= 1:
            answer = f"headroom: {percent(each['utilisation'])} busy"
        elif each["last_wait_s"] is None:
            answer = "shed or overflow; how long is not known without a cold start"
        else:
            answer = "shed or overflow until new replicas are ready"
        rows.append(
            [
                f"{each['factor']}×", f"{number(each['rate'])}/s", percent(each["utilisation"]),
                exact(each["replicas_needed"]), number(each["backlog"]), seconds(each["last_wait_s"]),
                number(each["shed"]), answer,
            ]
        )  # fmt: skip
    columns = [
        "burst", "rate", "utilisation", "replicas needed", "requests that wait", "longest wait",
        f"shed at {seconds(one.pool.wait_budget)}", "covered by",
    ]  # fmt: skip
    return Table(f"{name}: what covers a step to 2, 5 and 20 times the mean rate", columns, rows)
