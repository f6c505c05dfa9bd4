"""The common mistakes of capacity that a server shows: scaling, caps, pools, headroom, retries, rates, percentiles.

Each check is a generator of findings, added to `CHECKS` by its name; its numbers are in the finding. What a server
cannot show is not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from capwatch.console.answer import number, percent
from capwatch.doctor.finding import Finding
from capwatch.doctor.seen import Rule, Seen
from capwatch.doctor.selectors import selectors

Check = Callable[[Seen, frozenset[str]], Iterator[Finding]]
"""From what is seen and the names of the shipped rules."""
CHECKS: Final[dict[str, Check]] = {}

GPU_BUSY: Final = re.compile(r"(?i)gpu_?util|gpu_?busy|duty_?cycle|utili[sz]ation_?gpu")
"""Names of the share of time in which a kernel was resident: DCGM, NVML exporters, device plugins."""
BATCH: Final = re.compile(r"(?i)(^|[^a-z])(batch|bulk|offline|nightly|backfill|cron|jobs?)([^a-z]|$)")
UNCAPPED: Final = 0.01
"""Share of a route's requests without a cap that is no slip any more."""
BATCH_SHARE: Final = 0.1
"""Share of a pool's cost from which batch work is in the way of others."""
RETRY_BUDGET: Final = 1.1
"""A retry budget of a tenth allows this many attempts for each request."""
MOST_TARGET: Final = 0.9
"""Above this the wait grows tenfold for one server, and no text plans for it."""
LARGEST_TENANT: Final = 0.5
CALIBRATION_S: Final = 90 * 86400
CALIBRATION_ERROR: Final = 0.2


def check(one: Check) -> Check:
    """Every check is known by its function's name."""
    CHECKS[one.__name__.replace("_", "-")] = one
    return one


def findings(seen: Seen, shipped: frozenset[str]) -> Iterator[Finding]:
    """All that all checks find."""
    for one in CHECKS.values():
        yield from one(seen, shipped)


def own(seen: Seen, shipped: frozenset[str]) -> list[Rule]:
    """The rules of the server that are not capwatch's."""
    return [rule for rule in seen.rules or () if rule.name not in shipped]


def reads(name: str, rules: Iterable[Rule], depth: int = 5) -> set[str]:
    """A name, and what it is recorded from."""
    rules = list(rules)
    made_of = {one.name for rule in rules if rule.name == name for one in selectors(rule.query)} - {name}
    return {name}.union(*(reads(one, rules, depth - 1) for one in made_of if depth))


def busy(names: Iterable[str]) -> list[str]:
    """Those that say how busy a GPU is."""
    return sorted(name for name in names if GPU_BUSY.search(name))


@check
def scaling_on_gpu_busy(seen: Seen, shipped: frozenset[str]) -> Iterator[Finding]:
    """Autoscalers as kube-state-metrics and KEDA tell them; a recorded metric is followed to what it is made of."""
    queries = {
        "kube_horizontalpodautoscaler_spec_target_metric": ("horizontalpodautoscaler", "metric_name"),
        "keda_scaler_metrics_value": ("scaledObject", "metric"),
        "keda_metrics_adapter_scaler_metrics_value": ("scaledObject", "metric"),
    }
    for query, (scaler, metric) in queries.items():
        for labels, target in seen.ask(query):
            found = busy(reads(re.sub(r"^s\d+-(prometheus-)?", "", labels.get(metric, "")), own(seen, shipped)))
            if found:
                place = f"{labels.get('namespace', '')}/{labels.get(scaler, '')}"
                yield Finding(
                    "warning", "scaling-on-gpu-busy", f"autoscaler {place} scales on GPU busy",
                    [f"it follows {labels[metric]} ({', '.join(found)}), value {number(target)}", *_side_by_side(seen)],
                    "GPU busy says that some kernel was resident. It reads nearly 100 % at a small batch as at a full "
                    "one, so it scales too early or never, and it never scales down.",
                    "scale on requests in flight per replica: `capwatch render hpa` or `capwatch render keda`",
                )  # fmt: skip


def _side_by_side(seen: Seen) -> Iterator[str]:
    gpu = seen.ask("max(capwatch_gpu_busy_ratio) or max(DCGM_FI_DEV_GPU_UTIL) / 100")
    used = seen.by("pool", "max by (pool) (capwatch_utilisation_ratio)")
    if gpu and used:
        told = ", ".join(f"{pool} {percent(value)}" for pool, value in sorted(used.items()))
        yield f"now: GPU busy {percent(gpu[0][1])}, utilisation of pools: {told}"


@check
def alert_on_gpu_busy(seen: Seen, shipped: frozenset[str]) -> Iterator[Finding]:
    """Rules of one's own that page for it."""
    for rule in own(seen, shipped):
        found = busy(one.name for one in selectors(rule.query))
        if rule.kind == "alerting" and found:
            yield Finding(
                "warning", "alert-on-gpu-busy", f"alert {rule.name} looks at GPU busy",
                [f"it reads {', '.join(found)}"],
                "A busy GPU is no harm and no limit: it pages when all is well and is silent while requests wait.",
                "alert on goodput, waits and headroom, as the shipped rules do",
            )  # fmt: skip


@check
def average_of_percentiles(seen: Seen, shipped: frozenset[str]) -> Iterator[Finding]:
    """Rules of one's own that average quantiles."""
    for rule in own(seen, shipped):
        quantiles = [
            str(one) for one in selectors(rule.query) if any(label == "quantile" for label, _, _ in one.matchers)
        ]
        if quantiles and re.search(r"\bavg\b", rule.query):
            yield Finding(
                "warning", "average-of-percentiles", f"rule {rule.name} averages percentiles", quantiles,
                "The mean of percentiles is no percentile of anything; one slow replica vanishes in it.",
                "take the percentile of summed buckets: histogram_quantile(q, sum by (le) (rate(…_bucket[5m])))",
            )  # fmt: skip


@check
def no_cap_on_output(seen: Seen, _: frozenset[str]) -> Iterator[Finding]:
    """Routes on which requests ask for no cap, where the log tells caps."""
    uncapped, every = (
        f"sum by (route) (increase({name}[1h]))"
        for name in ("capwatch_uncapped_requests_total", "capwatch_route_duration_seconds_count")
    )
    shares = seen.by("route", f"{uncapped} / ({every} > 0)")
    longest = seen.by(
        "route",
        "histogram_quantile(0.99, sum by (route, le) (rate(capwatch_route_output_tokens_bucket[1h])))",
    )
    for route, share in sorted(shares.items()):
        if share > UNCAPPED:
            tail = f"; 99 % of its answers have up to {longest[route]:,.0f} tokens" if route in longest else ""
            yield Finding(
                "warning", "no-cap-on-output", f"requests on {route} have no cap on their output",
                [f"{percent(share)} of the last hour's requests ask for none{tail}"],
                "One answer that does not end holds a slot and KV cache for minutes; admission cannot tell its cost.",
                "set max_tokens at the gateway: `capwatch render limits` says which",
            )  # fmt: skip


@check
def batch_beside_interactive(seen: Seen, _: frozenset[str]) -> Iterator[Finding]:
    """Pools in which work without a target, or called batch, takes a share beside routes that are judged."""
    judged = seen.by(
        "route",
        "sum by (route) (increase(capwatch_goodput_requests_total[1h]) > 0)"
        " or sum by (route) (increase(capwatch_goodput_missed_total[1h]) > 0)",
    )
    without = seen.by(
        "route", 'sum by (route) (increase(capwatch_goodput_unclassified_total{reason="no_slo"}[1h]) > 0)'
    )
    for label in ("route", "class"):
        name = (
            "capwatch_cost_replica_seconds_total" if label == "route" else "capwatch_class_cost_replica_seconds_total"
        )
        costs = seen.ask(f"sum by (pool, {label}) (increase({name}[1h]))")
        for pool in sorted({labels.get("pool", "") for labels, _ in costs}):
            cost = {labels.get(label, ""): value for labels, value in costs if labels.get("pool", "") == pool}
            whole = sum(cost.values())
            batch = [
                one
                for one in cost
                if BATCH.search(one) or (label == "route" and one in without and one not in judged and judged)
            ]
            share = sum(cost[one] for one in batch) / whole if whole > 0 else 0.0
            if BATCH_SHARE <= share < 1:
                yield Finding(
                    "warning", "batch-beside-interactive", f"pool {pool} serves batch and interactive work",
                    [f"{percent(share)} of its cost in the last hour is {label} {', '.join(sorted(batch))}"],
                    "Long work without hurry fills the slots that short requests with a target wait for.",
                    "a pool of its own for it, or priorities at the gateway, or hours with room",
                )  # fmt: skip
                break


@check
def no_headroom(seen: Seen, _: frozenset[str]) -> Iterator[Finding]:
    """Pools that are planned too full: for what they have, or for the wait budget."""
    spare = seen.by("pool", 'min by (pool) (capwatch_headroom_replicas{failure="none"})')
    used = seen.by("pool", "max by (pool) (capwatch_utilisation_ratio)")
    there = seen.by("pool", "max by (pool) (capwatch_replicas)")
    needed = seen.by("pool", 'max by (pool) (capwatch_replicas_needed{promise="base"})')
    cost = seen.by("pool", 'max by (pool) (capwatch_cost_per_request_replica_seconds{window="current"})')
    usable = seen.by("pool", 'max by (pool) (capwatch_usable_rps{routing="pooled"})')
    for pool, value in sorted(spare.items()):
        if value < 0:
            yield Finding(
                "warning", "headroom-negative", f"pool {pool} has fewer replicas than its load needs",
                [f"{number(there.get(pool))} there, {number(needed.get(pool))} needed at the target utilisation"],
                "At the target it would keep its promise; beyond it waits grow fast.",
                "cut the work, tighten admission, then add replicas; rules/README.md#capwatchheadroomnegative",
            )  # fmt: skip
    for pool in sorted(used.keys() & there.keys() & needed.keys()):
        least = used[pool] * there[pool] / needed[pool] if needed[pool] > 1 else 0.0
        allowed = usable[pool] * cost[pool] / there[pool] if pool in usable and pool in cost and there[pool] else None
        if least > min(MOST_TARGET, allowed if allowed is not None else MOST_TARGET):
            limit = (
                "" if allowed is None else f"; the wait budget allows {percent(allowed)} even with one queue for all"
            )
            yield Finding(
                "warning", "target-without-headroom", f"pool {pool} is planned without headroom",
                [f"its target_utilisation is at least {percent(least)}{limit}"],
                f"It takes a burst of no more than {1 / least:.2f} times the load before requests wait.",
                "target_utilisation: 0.70, and what a burst needs on top (`capwatch plan pooled`)",
            )  # fmt: skip


@check
def retries_without_budget(seen: Seen, _: frozenset[str]) -> Iterator[Finding]:
    """The worst hour of the last day, where enough requests were there to say so."""
    floor = "sum without (outcome) (increase(capwatch_departures_total[5m])) >= 100"
    most = seen.by("pool", f"max by (pool) (max_over_time((capwatch_retry_amplification_ratio and ({floor}))[1d:5m]))")
    now = seen.by("pool", "max by (pool) (capwatch_retry_amplification_ratio)")
    for pool, value in sorted(most.items()):
        if value > RETRY_BUDGET:
            yield Finding(
                "warning", "retries-without-budget", f"clients of pool {pool} retry without a budget",
                [f"up to {value:.2f} attempts for each request in the last day, {now.get(pool, 1.0):.2f} now"],
                "A retry budget of a tenth allows 1.1. Without one, failures make load, and load makes failures.",
                "a retry budget and jitter in the clients, and a refusal that says when to come again (Retry-After)",
            )  # fmt: skip


@check
def calibration_stale(seen: Seen, _: frozenset[str]) -> Iterator[Finding]:
    """Rates that were measured too long ago, are off, or are for another engine or traffic."""
    ages = seen.by("pool", "max by (pool) (capwatch_calibration_age_seconds)")
    errors = seen.by("pool", "max by (pool) (abs(capwatch_calibration_error_ratio))")
    changed = seen.ask("max by (pool, reason) (capwatch_calibration_stale) == 1")
    for pool, age in sorted(ages.items()):
        told = [f"measured {age / 86400:.0f} days ago"] if age > CALIBRATION_S else []
        if errors.get(pool, 0.0) > CALIBRATION_ERROR:
            told.append(f"the busy time that it predicts is off by {percent(errors[pool])}")
        told += [f"another {labels['reason']} than then" for labels, _ in changed if labels.get("pool") == pool]
        if told:
            yield Finding(
                "warning", "calibration-stale", f"the token rates of pool {pool} are no longer known", told,
                "Cost, utilisation, headroom and replicas needed rest on these two numbers.",
                "`capwatch calibrate`; until then read costs as comparisons",
            )  # fmt: skip


@check
def one_tenant_unlimited(seen: Seen, _: frozenset[str]) -> Iterator[Finding]:
    """A tenant that takes most of a pool, while nothing says what anybody may take."""
    if seen.ask("count(capwatch_budget_oversubscription_ratio)"):
        return
    for pool, share in sorted(seen.by("pool", 'max by (pool) (capwatch_tenant_share_ratio{rank="1"})').items()):
        others = seen.ask(f'capwatch_tenant_share_ratio{{rank="2",pool="{pool}"}} > 0')
        if share > LARGEST_TENANT and others:
            yield Finding(
                "note", "tenant-without-budget", f"one tenant takes most of pool {pool}, and no tenant has a budget",
                [f"{percent(share)} of the cost of the last hour"],
                "What one tenant adds, all others wait for.",
                "`budgets:` in replica-seconds shows what a limit would refuse; `capwatch render limits` has numbers",
            )  # fmt: skip
