"""Headroom: three promises and their price, losses, days to full, the growth phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capwatch.capacity import sizing, slots
from capwatch.load.promises import largest_zone, zones
from capwatch.review.calendar import HOUR, WEEK
from capwatch.review.facts import Facts, busy
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import exact, number, percent
from capwatch.review.trend import LEAST_DAYS, trend
from capwatch.review.week import Week

ORDER: Final = 130
SOON: Final = 42.0
"""Days under which a limit is told of as a warning: what procurement takes."""
PROMISES: Final = {
    "base": "the busy hour at the target utilisation",
    "burst": "a burst over the busy hour at it",
    "zonal": "a burst after the loss of a zone at it",
}


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """What is there against what is needed."""
    tables, text, findings, missing, numbers = [], [], [], [], {}
    for name, one in facts.items():
        promises, replicas = one.promises, one.one.replicas
        if promises is None or replicas is None or one.after is None:
            why = "no request tells tokens" if one.after is None else "its replicas are not known"
            missing.append(Missing(f"headroom of {name}", why, "`pools[].replicas`, and a log with token counts"))
            continue
        numbers[name] = _numbers(one, one.after, replicas)
        tables.append(_promises(name, one, promises, replicas))
        tables.append(_losses(name, one, promises, replicas))
        text.append(_phase(name, one, one.after, numbers[name]))
        findings += _days(name, one, numbers[name])
        if numbers[name]["trend"] is None:
            missing.append(
                Missing(
                    f"days until {name} is full",
                    f"under {LEAST_DAYS} whole days of history: no trend",
                    "four weeks of rollups (a state directory keeps hours for 13 weeks)",
                )
            )
        if one.pool.price.replica_hour_usd is None:
            missing.append(Missing(f"the price of {name}", "no price is given", "`pools[].price`"))
        if zones(one.pool) is None:
            missing.append(Missing(f"the loss of a zone of {name}", "no zones are configured", "`pools[].zones`"))
    return Section("Headroom and its price", text, tables, (), findings, missing, numbers)


def _numbers(one: Facts, now: Stretch, replicas: int) -> dict[str, Any]:
    found = trend(one.one.demand)
    limit = replicas * one.pool.target_utilisation / busy(now)
    days = None if found is None else found.until(limit)
    queue = one.queueing(now)
    isolated, pooled = slots.isolated(queue.demand), slots.pooled(queue.demand)
    return {
        "trend": None
        if found is None or days is None
        else {
            "replica_seconds_per_second": found.level, "per_day": found.slope, "per_day_error": found.error,
            "days_of_history": found.days, "days_to_full": days[1], "days_to_full_earliest": days[0],
            "days_to_full_latest": days[2],
        },
        "binding": binding(one, now),
        "routing_tax_replicas": isolated - pooled, "isolated_replicas": isolated, "pooled_replicas": pooled,
        "replica_hours": replicas * len(one.one.demand.at[one.one.demand.at >= now.until - WEEK]),
    }  # fmt: skip


def binding(one: Facts, now: Stretch) -> dict[str, float | None]:
    """How much of each limit is used: replicas at their target, KV memory, slots; the largest binds first."""
    replicas, used, memory = one.one.replicas, one.utilisation(now), one.memory(now)
    running = None if memory is None else memory.running if memory.running is not None else memory.bound
    found: dict[str, float | None] = {
        "replicas at the target": None if used is None else used / one.pool.target_utilisation,
        "KV memory": running,
    }
    if one.pool.slots is not None and replicas is not None and now.running is not None:
        found["slots"] = now.running / (one.pool.slots * replicas)
    return found


def _promises(name: str, one: Facts, promises: sizing.Promises, replicas: int) -> Table:
    price, rows = one.pool.price.replica_hour_usd, []
    for key, words in PROMISES.items():
        if key == "zonal" and zones(one.pool) is None:
            rows.append([words, "no zones configured", "", "waived"])
            continue
        needed = getattr(promises, key)
        cost = "no price given" if price is None else f"{number(needed * price * WEEK / HOUR)} USD a week"
        rows.append([words, exact(needed), cost, "kept" if replicas >= needed else f"broken by {needed - replicas}"])
    dated = one.pool.price.as_of
    as_of = "" if price is None else f", prices of {dated}" if dated is not None else ", prices without a date"
    return Table(
        f"{name}: three promises, {exact(replicas)} replicas are there{as_of}",
        ["promise", "replicas", "price", "state"],
        rows,
    )


def _losses(name: str, one: Facts, promises: sizing.Promises, replicas: int) -> Table:
    zone = largest_zone(one.pool, replicas)
    losses = {"nothing": 0, "a replica": 1} | ({} if zone is None else {"the largest zone": zone})
    rows = [[what, exact(sizing.headroom(replicas, promises.base, lost))] for what, lost in losses.items()]
    return Table(f"{name}: replicas to spare in the busy hour after the loss of …", ["loss", "to spare"], rows)


def _days(name: str, one: Facts, told: Mapping[str, Any]) -> list[Finding]:
    found = told["trend"]
    used = {what: share for what, share in told["binding"].items() if share is not None}
    first = max(used, key=lambda what: used[what]) if used else "replicas"
    if found is None or found["days_to_full"] is None or found["days_to_full_earliest"] is None:
        return []
    if found["days_to_full_latest"] is None and found["per_day"] < found["per_day_error"]:
        return []
    earliest, expected = found["days_to_full_earliest"], found["days_to_full"]
    if expected > 365 or expected <= 0:
        return []
    latest = "no end in sight" if found["days_to_full_latest"] is None else f"{number(found['days_to_full_latest'])}"
    return [
        Finding(
            f"{name}: full in {number(expected)} days at the present trend ({number(earliest)} to {latest})",
            "warning" if expected < SOON else "info",
            [
                (
                    f"demand grows by {number(found['per_day'], found['per_day_error'])} replica-seconds/s a day, over"
                    f" {exact(found['days_of_history'])} days; 90 % interval"
                ),
                f"what binds first: {first}, {percent(used.get(first))} used",
            ],
            ["order replicas now where they take longer than that, or cut the work that grows"],
            dict(found),
            name,
            "computed",
        )
    ]


def _phase(name: str, one: Facts, now: Stretch, told: Mapping[str, Any]) -> str:
    """Where the fleet stands on the way of growing ones, and the figure that would justify the next step."""
    pool, replicas = one.pool, one.one.replicas or 0
    swing = busy(now)
    if replicas <= 1:
        phase, step = "one replica", f"a second one when the busy hour passes {percent(pool.target_utilisation)}"
        figure = f"it is at {percent((one.peak or 0.0) / max(replicas, 1))}"
    elif told["routing_tax_replicas"] > 0 and pool.inflight_target is None:
        phase, step = "several replicas", "one queue before all of them when that spares a replica"
        figure = f"queues at each replica cost {exact(told['routing_tax_replicas'])} of them"
    elif pool.inflight_target is None:
        phase, step = "standing headroom", "scaling when the day swings by more than the headroom absorbs"
        figure = (
            f"the busy hour is {number(swing)} times the mean, {number(sizing.absorbed(pool.target_utilisation))} is"
            " absorbed"
        )
    elif zones(pool) is None:
        phase, step = "scaled by requests in flight", "zones when the loss of one must not be felt"
        figure = "no zones are configured"
    else:
        phase, step = "scaled over zones", "another region when one cannot hold the quota or the latency"
        figure = f"{exact(zones(pool) or 0)} zones"
    return f"{name}: growth phase: {phase}. Next: {step}; {figure}."
