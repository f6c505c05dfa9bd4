"""In flight: L of each phase by Little's law, and what holds up the line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity import little, queueing
from capwatch.review.facts import Facts
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.stretch import PHASES, Stretch
from capwatch.review.text import exact, number, seconds, signed
from capwatch.review.week import Week

ORDER: Final = 70
APART: Final = 0.25
"""Residual of Little's law from which it is told of."""
FEWEST: Final = 2.0
"""Requests in flight below which gauges of engines say little."""


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """Means of the stretch since the last change."""
    rows, counted, lines, findings, missing, numbers = [], [], [], [], [], {}
    for name, one in facts.items():
        shown = one.one.shown
        measured, law = shown.get("in_flight_measured"), shown.get("in_flight_law")
        if measured is None or not law:
            missing.append(
                Missing(
                    f"λW of {name} against the engines' own count",
                    "engines and log do not both tell it",
                    "`engines` to scrape, or engine logs (`role: times`), beside a log with phases",
                )
            )
        else:
            off = little.residual(measured, law, 1.0) or 0.0
            counted.append([name, exact(shown["in_flight_hours"]), number(law), number(measured), signed(off)])
            findings += _unseen(name, law, measured, off)
        now = one.after
        told = None if now is None else now.in_flight
        if now is None or told is None:
            missing.append(Missing(f"in flight of {name}", "no durations are told", "a log with durations"))
            continue
        if not any(told.values()):
            missing.append(
                Missing(
                    f"phases of {name}",
                    "only the whole service is told: no times to first token or phases",
                    "a log that measures the first chunk of streams, or engine logs (`role: times`)",
                )
            )
        residence = now.hours.mean("duration_s") or 0.0
        head = blocking(one, now)
        numbers[name] = {"in_flight": dict(told), "residence_s": residence, "head_of_line": head}
        rows.append(
            [
                name, number(now.rate), seconds(residence), number(now.rate * residence),
                *(number(told[phase]) for phase in PHASES),
            ]
        )  # fmt: skip
        if head is not None:
            lines.append(
                f"{name}: head-of-line blocking, estimated: requests wait {seconds(head['together_s'])}; with"
                f" class {head['class']} in a pool of its own, with its part of the replicas, the others would wait"
                f" {seconds(head['apart_s'])}."
            )
    columns = ["pool", "λ/s", "W", "L = λW", *PHASES]
    tables = [Table("Requests in flight, mean, by phase", columns, rows)] if rows else []
    if counted:
        columns = ["pool", "hours in which engines tell it", "λW of queue, prefill and decode", "counted", "residual"]
        tables.append(Table("Requests in the engines: by Little's law, and as they count them", columns, counted))
    return Section("In flight", lines, tables, (), findings, missing, numbers)


def _unseen(name: str, law: float, measured: float, off: float) -> list[Finding]:
    """Work in the engines that the log does not tell of, as far as it is no undercount of engines with little to do."""
    if measured < FEWEST or off < APART:
        return []
    return [
        Finding(
            f"{name}: engines count {number(measured)} requests, {number(law)} follow from the log ({signed(off)})",
            "warning",
            ["the residual of Little's law over the hours in which engines tell it; what follows from the log is λW"],
            ["look for traffic that passes the gateway by, lost ends of requests, and phases that the log leaves out"],
            {"measured": measured, "law": law, "residual": off},
            name,
        )
    ]


def blocking(one: Facts, now: Stretch) -> dict[str, Any] | None:
    """What the dearest class does to the wait of the others, by F18: in one pool, and with replicas of its own.

    None with one class, or where replicas are too few to be split or do not suffice.
    """
    replicas = one.one.replicas
    names = now.hours.names("class")
    if replicas is None or len(names) < 2:
        return None
    cells = now.cells("class", names)
    costs = np.array([now.cost_of(*(float(part[i]) for part in cells[1:])) for i in range(len(names))])
    load = cells.share * costs
    if not load.sum():
        return None
    dearest = int(costs.argmax())
    own = round(replicas * float(load[dearest] / load.sum()))
    rest = np.arange(len(names)) != dearest
    if not 1 <= own < replicas or not cells.share[rest].sum():
        return None
    ca2 = 1.0 if one.arrival_cv2 is None else one.arrival_cv2
    waits = []
    for share, cost, servers in ((cells.share, costs, replicas), (cells.share[rest], costs[rest], replicas - own)):
        mean = float((share * cost).sum() / share.sum())
        if not mean:
            return None
        cs2 = float((share * (cost / mean) ** 2).sum() / share.sum()) - 1
        rate = now.charged_rate * float(share.sum())
        waits.append(queueing.mean_wait(servers, rate, mean, queueing.variability(ca2, max(0.0, cs2))))
    if not np.isfinite(waits).all():
        return None
    return {"class": names[dearest], "replicas": own, "together_s": waits[0], "apart_s": waits[1]}
