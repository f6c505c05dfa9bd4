"""Predicted against measured for the formulas that were used; the calibration, its age."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capwatch.capacity import queueing
from capwatch.review.calendar import DAY
from capwatch.review.facts import Facts
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import day, number, percent, seconds
from capwatch.review.week import Week

ORDER: Final = 170
OLD_DAYS: Final = 90
APART: Final = 0.25
"""Relative error of a prediction from which it is told of; rates are measured to a tenth or two."""


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """How far the arithmetic can be trusted."""
    tables, text, findings, missing, numbers = [], [], [], [], {}
    for name, one in facts.items():
        text.append(_said(week, name, one))
        if one.pool.measured is None:
            why = "the rates are assumed" if one.pool.assumed else "the rates are configured by hand"
            missing.append(Missing(f"calibration age and error of {name}", why, "`capwatch calibrate`"))
        else:
            findings += _old(week, name, one)
        if one.after is None:
            continue
        rows = compared(one, one.after)
        numbers[name] = {"predicted": rows}
        if rows:
            tables.append(_table(name, rows))
            findings += _apart(name, rows)
    return Section("Predicted against measured", text, tables, (), findings, missing, numbers)


def _said(week: Week, name: str, one: Facts) -> str:
    pool = one.pool
    rates = (
        f"{number(pool.prefill_tokens_per_second)} prompt and {number(pool.decode_tokens_per_second)} output tokens/s"
    )
    if pool.measured is not None:
        age = (week.end - pool.measured.measured_at) / DAY
        return f"{name}: {rates}, measured {day(pool.measured.measured_at)} UTC, {number(age)} days before the end."
    return f"{name}: {rates}, {'assumed' if pool.assumed else 'as configured'}."


def _old(week: Week, name: str, one: Facts) -> list[Finding]:
    assert one.pool.measured is not None  # noqa: S101 - it is known here
    age = (week.end - one.pool.measured.measured_at) / DAY
    if age < OLD_DAYS:
        return []
    return [
        Finding(
            f"{name}: its calibration is {number(age)} days old",
            "info",
            ["models, engines and drivers have likely changed since"],
            ["`capwatch calibrate` on a week of logs"],
            {"days": age},
            name,
        )
    ]


def compared(one: Facts, now: Stretch) -> list[dict[str, Any]]:
    """(what, predicted, measured) for what is told in both ways, in seconds, requests or shares."""
    told = now.hours.told("duration_s")
    prompt, cached, _ = now.lengths
    found: list[dict[str, Any]] = []
    if told and now.hours.sum("prefill"):
        computed = (prompt - cached) / one.pool.prefill_tokens_per_second
        found.append(_pair("prefill of a request (F1)", "s", computed, now.hours.sum("prefill") / told))
    replicas = one.one.replicas
    waited = now.hours.mean("queue_s")
    if replicas is not None and waited is not None:
        queue = one.queueing(now)
        servers, demand = queue.each * replicas, queue.demand
        wait = queueing.mean_wait(servers, demand.rate, queue.service, demand.stretch)
        found.append(_pair(f"mean wait, {queue.view} (F18)", "s", wait, waited))
        late = now.hours.over("queue_s", one.pool.wait_budget)
        found.append(_pair(f"late share, {queue.view} (F19)", "share", demand.late_at(replicas), late))
    shown = one.one.shown
    if shown.get("in_flight_law") and "in_flight_measured" in shown:
        law, counted = shown["in_flight_law"], shown["in_flight_measured"]
        found.append(_pair("requests in the engines, λW (F10)", "requests", law, counted))
    memory = one.memory(one.week)
    if memory is not None and memory.running is not None and "kv_measured" in shown:
        found.append(_pair("KV memory of a replica (running sequences)", "share", memory.running, shown["kv_measured"]))
    if told and now.running is not None:
        tpot, output = now.hours.mean("tpot_s"), now.lengths[2]
        if tpot is not None and output > 1:
            found.append(
                _pair("decode of a request, (O − 1)·TPOT", "s", (output - 1) * tpot, now.hours.sum("decode") / told)
            )
    return found


def _pair(what: str, unit: str, predicted: float, measured: float | None) -> dict[str, Any]:
    error = None if measured is None or measured <= 0 else predicted / measured - 1
    return {"what": what, "unit": unit, "predicted": predicted, "measured": measured, "error": error}


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    shown = []
    for one in rows:
        form = {"share": percent, "s": seconds, "requests": number}[one["unit"]]
        error = "not known" if one["error"] is None else f"{100 * one['error']:+,.0f} %"
        shown.append([one["what"], form(one["predicted"]), form(one["measured"]), error])
    return Table(f"{name}: predicted against measured", ["what", "predicted", "measured", "off by"], shown)


def _apart(name: str, rows: list[dict[str, Any]]) -> list[Finding]:
    late = next((one for one in rows if one["what"].startswith("late share")), None)
    if late is None or late["measured"] is None or late["measured"] < 0.02:
        return []
    if late["predicted"] > late["measured"] * APART:
        return []
    return [
        Finding(
            f"{name}: {percent(late['measured'])} of the requests wait too long, {percent(late['predicted'])} would by"
            " the formula",
            "warning",
            ["requests queue before the slots are full: fewer of them work than are configured, or memory binds first"],
            ["measure the slots at the objective (`capwatch calibrate`), and look at KV memory and preemptions"],
            dict(late),
            name,
            "computed",
        )
    ]
