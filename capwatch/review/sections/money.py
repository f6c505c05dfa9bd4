"""Replica-hours by tier, idle ones among them, and owned against rented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity import crossover, sizing
from capwatch.record import Floats
from capwatch.review.calendar import HOUR, WEEK
from capwatch.review.facts import Facts
from capwatch.review.section import Figure, Finding, Line, Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import exact, number, percent
from capwatch.review.week import Week

ORDER: Final = 140
TIERS: Final = {"committed": 2 / 3, "on demand": 0.25, "interruptible": 0.05, "rented by the token": 0.0}
"""Each tier is for replicas that are needed in at least that share of the hours: a commitment pays from about two
thirds of its hours on, what is needed in less than one hour in twenty is cheapest by the token."""


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """What the week would have cost, cut by how often each replica was needed."""
    tables, figures, findings, missing, numbers = [], [], [], [], {}
    for name, one in facts.items():
        needed = hourly(one)
        if not len(needed):
            continue
        tiers = cut(needed)
        numbers[name] = {"tiers": tiers}
        tables.append(_tiers(name, one, tiers, needed))
        figures.append(_curve(name, one, needed))
        if one.after is None:
            continue
        told = owned(one, one.after)
        if told is None:
            missing.append(
                Missing(
                    f"owned against rented, {name}",
                    "no prices are given",
                    "`pools[].price`: replica_hour_usd, rented_per_million_usd, as_of",
                )
            )
            continue
        numbers[name]["crossover"] = told
        tables.append(_crossover(name, one, told))
        findings += _dearer(name, one, told)
    return Section("Replica-hours and money", (), tables, figures, findings, missing, numbers)


def hourly(one: Facts) -> Floats:
    """Replicas that each hour of the week needed at the target."""
    demand = one.one.demand
    mine = demand.at >= (one.week.since if one.week is not None else np.inf)
    target = one.pool.target_utilisation
    return np.array([sizing.needed(cost / HOUR, 1, target) for cost in demand.cost[mine].tolist()], np.float64)


def cut(needed: Floats) -> dict[str, dict[str, float]]:
    """Replicas of each tier, and the hours in which they are needed."""
    ordered = np.sort(needed)[::-1]
    found, below = {}, 0.0
    for tier, share in TIERS.items():
        place = min(len(ordered) - 1, int(np.ceil(share * len(ordered))) - 1) if share else 0
        top = max(below, float(ordered[max(place, 0)]))
        used = float(np.minimum(np.maximum(needed - below, 0), top - below).sum())
        found[tier] = {"replicas": top - below, "hours_used": used}
        below = top
    return found


def _tiers(name: str, one: Facts, tiers: Mapping[str, Mapping[str, float]], needed: Floats) -> Table:
    rows = []
    for tier, told in tiers.items():
        held = told["replicas"] * len(needed) if tier == "committed" else told["hours_used"]
        idle = held - told["hours_used"]
        rows.append([tier, exact(told["replicas"]), exact(held), exact(idle)])
    replicas = one.one.replicas
    if replicas is not None:
        held = replicas * len(needed)
        rows.append(["as it is", exact(replicas), exact(held), exact(max(0.0, held - float(needed.sum())))])
    columns = ["tier", "replicas", "replica-hours paid", "of them not needed at the target"]
    return Table(
        f"{name}: replica-hours of {exact(len(needed))} hours, cut by how often a replica is needed", columns, rows
    )


def _curve(name: str, one: Facts, needed: Floats) -> Figure:
    share = (np.arange(len(needed)) + 1.0) / len(needed) * 100
    lines = [Line("needed at the target", share, np.sort(needed)[::-1].astype(np.float64), "step")]
    if one.one.replicas is not None:
        lines.append(Line("there", share[[0, -1]], np.full(2, float(one.one.replicas))))
    return Figure(
        f"{name}: duration curve of replicas", "share of the hours with at least so many, %", "replicas", lines
    )


def owned(one: Facts, now: Stretch) -> dict[str, Any] | None:
    """F56 and F57 on output tokens; None without both prices, or without output."""
    price = one.pool.price
    _, _, output = now.lengths
    if price.replica_hour_usd is None or price.rented_per_million_usd is None or not output:
        return None
    busy = crossover.owned_per_million(price.replica_hour_usd, output / now.cost)
    level = crossover.break_even(busy, price.rented_per_million_usd)
    used = one.utilisation(now)
    return {
        "output_tokens_per_second": output / now.cost,
        "owned_usd_per_million_when_busy": busy,
        "owned_usd_per_million": None if not used else busy / min(used, 1.0),
        "rented_usd_per_million": price.rented_per_million_usd,
        "breakeven_utilisation": level,
        "utilisation": used,
        "as_of": None if price.as_of is None else str(price.as_of),
    }


def _crossover(name: str, one: Facts, told: Mapping[str, Any]) -> Table:
    rows = [
        ["output tokens/s of a busy replica, with this mix", number(told["output_tokens_per_second"])],
        ["owned, if always busy", f"{number(told['owned_usd_per_million_when_busy'])} USD per million output tokens"],
        ["owned, at this utilisation", f"{number(told['owned_usd_per_million'])} USD per million output tokens"],
        ["rented", f"{number(told['rented_usd_per_million'])} USD per million output tokens"],
        ["owning is cheaper from a utilisation of", percent(told["breakeven_utilisation"])],
        ["utilisation since the last change", percent(told["utilisation"])],
    ]
    dated = told["as_of"] or "no date given"
    return Table(f"{name}: owned against rented (prices of {dated})", ["what", "how much"], rows)


def _dearer(name: str, one: Facts, told: Mapping[str, Any]) -> list[Finding]:
    used, level = told["utilisation"], told["breakeven_utilisation"]
    if used is None or used >= level:
        return []
    when = "always" if level > 1 else f"below {percent(level)}"
    week = (one.one.replicas or 0) * (one.pool.price.replica_hour_usd or 0.0) * WEEK / HOUR
    return [
        Finding(
            f"{name}: at {percent(used)} utilisation a rented token is cheaper than an owned one",
            "info",
            [
                (
                    f"owned {number(told['owned_usd_per_million'])} against rented"
                    f" {number(told['rented_usd_per_million'])} USD per million output tokens; renting wins {when}"
                ),
                f"the pool costs {number(week)} USD a week as it is",
            ],
            ["fewer replicas or more work on them; privacy, latency and quota decide as much as the price"],
            dict(told),
            name,
            "computed",
        )
    ]
