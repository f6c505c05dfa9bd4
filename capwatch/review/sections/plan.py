"""The capacity plan: its nine parts, filled from what is known; the rest is marked for the owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capwatch.metrics import START_PHASES
from capwatch.review.beside import ready_s
from capwatch.review.facts import Facts, busy
from capwatch.review.section import Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import exact, number, percent, seconds
from capwatch.review.week import Week

ORDER: Final = 190
OWNER: Final = "OWNER MUST WRITE"
MEASURE: Final = "OWNER MUST MEASURE"
CONFIRM: Final = "OWNER MUST CONFIRM"


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """A plan for each pool."""
    tables, numbers = [], {}
    for name, one in facts.items():
        rows = [[str(place), *row] for place, row in enumerate(_parts(one), start=1)]
        numbers[name] = {"plan": [{"states": row[1], "value": row[2], "from": row[3]} for row in rows]}
        tables.append(Table(f"Capacity plan of {name}", ["", "the plan states", "value", "filled from"], rows))
    text = ["What the week cannot tell is marked: a plan without it is not finished."] if tables else []
    return Section("Capacity plan", text, tables, numbers=numbers)


def _parts(one: Facts) -> list[list[str]]:
    pool, now = one.pool, one.after
    return [
        ["traffic at one second, peak to mean, fastest ramp", _traffic(one, now), "shape of traffic"],
        ["objectives as percentiles for TTFT and end to end, agreed", _objectives(one), "`slo`"],
        ["throughput and concurrency of a replica at that objective, measured", _replica(one), "calibration"],
        ["cold start in stages, measured", _cold(one), "`cold_start`, engine logs"],
        [
            "headroom target and allowed utilisation",
            f"{percent(pool.target_utilisation)} utilisation, burst {number(pool.burst)} times",
            "`target_utilisation`, `burst`; defaults are 0.70 and 1.5",
        ],
        ["admission: deadlines, priorities, limits per tenant", f"{_refused(one)}; {OWNER}", "outcomes"],
        ["one sentence each for a 2×, 5× and 20× burst; the last must shed", f"{_multiples(one)}; {OWNER}", "ladder"],
        ["cost by tier, owned against rented at dated prices", _price(one), "`price`"],
        ["quota headroom confirmed per region and family", f"{_tokens(now)}; {CONFIRM}", "tokens a minute"],
    ]


def _traffic(one: Facts, now: Stretch | None) -> str:
    bursts = one.bursts
    if bursts is None or now is None:
        return "needs a week of counts by second"
    return (
        f"p99 second {number(bursts.p99_to_usual)} times the usual, longest burst {exact(bursts.longest_s)} s, steepest"
        f" rise {number(bursts.max_ramp)} requests/s in a second; busy hour {number(busy(now))} times the mean"
    )


def _objectives(one: Facts) -> str:
    if one.week is None or one.week.goodput is None:
        return OWNER
    return f"configured; {percent(one.week.goodput)} of the judged requests met them"


def _replica(one: Facts) -> str:
    pool = one.pool
    slots = MEASURE if pool.slots is None else f"{pool.slots} slots"
    rates = f"{number(pool.prefill_tokens_per_second)}/{number(pool.decode_tokens_per_second)} tokens/s"
    how = "measured" if pool.measured is not None else f"assumed, {MEASURE}" if pool.assumed else "as configured"
    return f"{rates} prompt/output ({how}), {slots}"


def _cold(one: Facts) -> str:
    start, shown = one.pool.cold_start, one.one.shown
    phases = [(phase, took) for phase in START_PHASES if (took := shown.get(f"start_{phase}_s")) is not None]
    stages = "".join(f"{phase.replace('_', ' ')} {seconds(took)}, " for phase, took in phases)
    if start is None:
        return MEASURE
    how = "as measured" if phases and start == ready_s(shown) else "as configured"
    return f"{seconds(start)} in all, {how}; {stages}{'node and image' if phases else 'stages'}: {MEASURE}"


def _refused(one: Facts) -> str:
    hours = one.one.hours
    refused = hours.sum("outcome_rate_limited", "outcome_overload")
    return f"{percent(refused / max(1.0, hours.requests))} of the requests were refused"


def _multiples(one: Facts) -> str:
    used = one.utilisation(one.after)
    if used is None or not used:
        return "utilisation not known"
    return f"the replicas there carry {number(1 / used)} times the mean rate"


def _price(one: Facts) -> str:
    price = one.pool.price
    if price.replica_hour_usd is None:
        return "price missing"
    rented = "rented: price missing" if price.rented_per_million_usd is None else "see owned against rented"
    return f"{number(price.replica_hour_usd)} USD a replica-hour ({price.as_of or 'no date'}); {rented}"


def _tokens(now: Stretch | None) -> str:
    if now is None:
        return "tokens not known"
    prompt, _, output = now.lengths
    return (
        f"{number(now.charged_rate * prompt * 60)} prompt and {number(now.charged_rate * output * 60)} output tokens a"
        " minute on average"
    )
