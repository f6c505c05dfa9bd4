"""Where the work goes: by tenant, route and class; what the cache spares, what is lost, what large requests hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from capwatch.capacity import work
from capwatch.meters.rollup import MEASURES
from capwatch.review.calendar import HOUR
from capwatch.review.facts import Facts
from capwatch.review.hours import Hours
from capwatch.review.section import Finding, Missing, Section, Table
from capwatch.review.stretch import Stretch
from capwatch.review.text import exact, number, percent, signed
from capwatch.review.week import Week
from capwatch.sketch import middle

ORDER: Final = 50
MOST: Final = 10
LARGEST: Final = 0.01
HALF: Final = 0.5
"""Share of the work from which one tenant is told of."""
LOST: Final = ("client_abort", "timeout")
REFUSED: Final = ("rate_limited", "overload")


def SECTION(week: Week, facts: Mapping[str, Facts]) -> Section:
    """Replica-seconds of the week."""
    tables, findings, missing, numbers = [], [], [], {}
    rows, nothing = [], []
    for name, one in facts.items():
        nothing += _for_nothing(name, one)
        if one.one.shown.get("retry_amplification_ratio") is None:
            missing.append(
                Missing(
                    f"retries of {name}",
                    "no request tells which attempt it is",
                    "`attempt_group` or `retries` in the log, such as a trace id that all attempts share",
                )
            )
        if one.week is None:
            missing.append(Missing(f"cost of {name}", "no request tells tokens", "a log with token counts"))
            continue
        told = _numbers(one, one.week)
        numbers[name] = {"work": told}
        rows.append(_row(name, one, told))
        tables += [_by(name, one, label) for label in ("tenant", "route", "class")]
        findings += _dominant(name, one) + _cache(name, one, told)
        if one.pool.assumed:
            missing.append(
                Missing(
                    f"the rates of {name}",
                    "they are assumed, not measured: compare cost only within itself",
                    "`capwatch calibrate`, or both rates in `pools`",
                )
            )
    columns = [
        "pool", "replica-hours of work", "prompts", "answers", "spared by the cache", "hits", "hits last week",
        "largest 1 % hold at least", "aborted or timed out", "refused",
    ]  # fmt: skip
    whole = [Table("Work of the week", columns, rows)] if rows else []
    if nothing:
        columns = ["pool", "what", "requests", "replica-hours", "of the work"]
        whole.append(Table("Work of the week that was for nothing, or done again", columns, nothing))
    return Section("Cost", (), [*whole, *tables], (), findings, missing, numbers)


def _for_nothing(name: str, one: Facts) -> list[list[str]]:
    """Rows of what was tried again and what was given up, as far as it is told."""
    told = one.one.shown
    rows: list[tuple[str, str, float | None, float | None]] = []
    factor = told.get("retry_amplification_ratio")
    if factor is not None:
        rows.append(("retries", f"{number(factor)} attempts a request", told.get("retries"), None))
    for what, key in (("requests that try again", "resent"), ("given up: aborted or timed out", "abandoned")):
        spent = told.get(f"{key}_replica_seconds")
        if spent is not None:
            rows.append((what, "", told.get(f"{key}_requests"), spent))
    work = one.one.hours.cost
    return [
        [
            name, f"{what}, {words}" if words else what, "not known" if count is None else exact(count),
            "" if spent is None else number(spent / HOUR), "" if spent is None else percent(_part(spent, work)),
        ]
        for what, words, count, spent in rows
    ]  # fmt: skip


def _numbers(one: Facts, week: Stretch) -> dict[str, Any]:
    hours = week.hours
    prompt, cached, _ = week.lengths
    then = one.last.lengths if one.last is not None else None
    outcomes = {name: hours.sum(f"outcome_{name}") / hours.requests for name in (*LOST, *REFUSED)}
    hits, had = (cached / prompt if prompt else None), (then[1] / then[0] if then is not None and then[0] else None)
    return {
        "replica_seconds": hours.cost,
        "prefill_replica_seconds": hours.sum("cost_prefill"),
        "decode_replica_seconds": hours.sum("cost_decode"),
        "saved_replica_seconds": hours.sum("cost_saved"),
        "prefix_hit_ratio": hits,
        "prefix_hit_ratio_before": had,
        "hit_change_replicas": None if hits is None or had is None else _lost_hits(week, prompt, hits, had),
        "largest_share_at_least": largest(hours),
        "lost_ratio": sum(outcomes[name] for name in LOST),
        "refused_ratio": sum(outcomes[name] for name in REFUSED),
    }


def _lost_hits(week: Stretch, prompt: float, hits: float, had: float) -> float:
    """Replicas' worth of prefill that hits which are gone would spare; negative where there are more."""
    return week.charged_rate * work.prefill(prompt * (had - hits), 0.0, week.pool.prefill_tokens_per_second)


def largest(hours: Hours) -> float | None:
    """Share of the work that the dearest hundredth of the requests holds, at least: the longest prompts or answers."""
    if not hours.cost:
        return None
    found = []
    for measure, part in (("prompt_tokens", "cost_prefill"), ("output_tokens", "cost_decode")):
        mine = hours.measure == MEASURES.index(measure)
        if not mine.any():
            continue
        values, counts = middle(hours.bucket[mine], integers=True), hours.count[mine]
        order = np.argsort(-values, kind="stable")
        values, counts = values[order], counts[order]
        left = np.maximum(0.0, LARGEST * counts.sum() - (np.cumsum(counts) - counts))
        share = float((np.minimum(counts, left) * values).sum() / max(1e-12, float((counts * values).sum())))
        found.append(share * hours.sum(part) / hours.cost)
    return max(found) if found else None


def _row(name: str, one: Facts, told: Mapping[str, Any]) -> list[str]:
    return [
        name, number(told["replica_seconds"] / HOUR),
        *(percent(_part(told[f"{phase}_replica_seconds"], told["replica_seconds"])) for phase in ("prefill", "decode")),
        f"{number(told['saved_replica_seconds'] / HOUR)} replica-hours", percent(told["prefix_hit_ratio"]),
        percent(told["prefix_hit_ratio_before"]), percent(told["largest_share_at_least"]),
        percent(told["lost_ratio"]), percent(told["refused_ratio"]),
    ]  # fmt: skip


def _part(some: float, whole: float) -> float | None:
    return some / whole if whole else None


def shares(hours: Hours, label: str) -> dict[str, float]:
    """Share of the work of each value of a label, the largest first."""
    column = hours.labels[label]
    cost = np.bincount(column.codes, hours.cost_by_row, len(column.names))
    whole = max(1e-12, float(cost.sum()))
    found = {str(column.names[code]): float(cost[code]) / whole for code in np.unique(column.codes).tolist()}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _by(name: str, one: Facts, label: str) -> Table:
    now, then = shares(one.one.hours, label), shares(one.one.last, label)
    rows = []
    for who, share in list(now.items())[:MOST]:
        cost = share * one.one.hours.cost
        before = then.get(who, 0.0) * one.one.last.cost
        change = signed(cost / before - 1) if before else ("new" if then else "not known")
        rows.append([who, number(cost / HOUR), percent(share), percent(then.get(who)), change])
    columns = [label, "replica-hours", "share", "share last week", "work against last week"]
    return Table(f"{name}: work by {label}, {exact(len(now))} in all", columns, rows)


def _dominant(name: str, one: Facts) -> list[Finding]:
    now = shares(one.one.hours, "tenant")
    if len(now) < 2:
        return []
    who, share = next(iter(now.items()))
    if share < HALF:
        return []
    return [
        Finding(
            f"{name}: tenant {who} has {percent(share)} of the work",
            "info",
            [f"of {exact(len(now))} tenants; the pool's health is this tenant's traffic"],
            ["a budget in replica-seconds for it (`budgets`), so that others keep theirs"],
            {"tenant": who, "share": share},
            name,
        )
    ]


def _cache(name: str, one: Facts, told: Mapping[str, Any]) -> list[Finding]:
    replicas, had, hits = told["hit_change_replicas"], told["prefix_hit_ratio_before"], told["prefix_hit_ratio"]
    if replicas is None or hits > had - 0.05 or (one.changed is not None and one.changed.weight > 0):
        return []
    return [
        Finding(
            f"{name}: prefix cache hits {percent(had)} → {percent(hits)}, worth {number(replicas)} replicas",
            "info",
            ["share of prompt tokens that came from the cache, this week against last week"],
            ["stable prefixes first (system prompt, tools), then what varies; routing by prefix"],
            {"replicas": replicas},
            name,
            "computed",
        )
    ]
