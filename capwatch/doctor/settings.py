"""Known mistakes in capwatch's own configuration, held against what the server shows of it."""

from __future__ import annotations

from collections.abc import Iterator

from capwatch.config.schema import Config, Pool
from capwatch.config.units import show_duration
from capwatch.console.answer import number, percent
from capwatch.doctor.finding import Finding
from capwatch.doctor.seen import Seen


def findings(seen: Seen, config: Config) -> Iterator[Finding]:
    """All of it, pool by pool."""
    there = seen.by("pool", "count by (pool) (capwatch_arrivals_total)")
    cold = seen.by("pool", 'max by (pool) (capwatch_cold_start_seconds{phase="ready"})')
    fleet = seen.by("pool", "max by (pool) (capwatch_replicas)")
    for pool in config.pools:
        if there and pool.name not in there:
            yield Finding(
                "warning", "pool-unseen", f"pool {pool.name} of the configuration has no series",
                [f"pools on the server: {', '.join(sorted(there))}"],
                "The capwatch that is scraped runs with another configuration.", "reload it, or give the other file",
            )  # fmt: skip
        yield from _rates(pool)
        yield from _starting(pool, cold.get(pool.name))
        for tenant, budget in config.budgets.items():
            if fleet.get(pool.name) and budget.rate >= fleet[pool.name]:
                yield Finding(
                    "warning", "budget-over-fleet", f"the budget of {tenant} is all of pool {pool.name}",
                    [f"{number(budget.rate)} replica-seconds/s, {number(fleet[pool.name])} replicas"],
                    "It limits nothing: this tenant alone may fill the pool.", "a budget below the fleet",
                )  # fmt: skip
    if not config.slo:
        yield Finding(
            "warning", "no-slo", "there is no SLO", ["`slo` is empty"],
            "Without targets there is no goodput, and a fleet has no capacity but throughput.",
            "slo: [{match: {}, ttft: 1.5s, tpot: 60ms}] with your own numbers",
        )  # fmt: skip


def _rates(pool: Pool) -> Iterator[Finding]:
    if pool.assumed:
        yield Finding(
            "warning", "rates-assumed", f"the token rates of pool {pool.name} are assumed",
            [f"{pool.prefill_tokens_per_second:g} and {pool.decode_tokens_per_second:g} tokens/s, the defaults"],
            "Cost, utilisation and replicas needed are then comparisons only.", "`capwatch calibrate`",
        )  # fmt: skip
    if pool.target_utilisation > 0.9:
        yield Finding(
            "warning", "target-without-headroom", f"pool {pool.name} is planned without headroom",
            [f"target_utilisation {percent(pool.target_utilisation)}"],
            f"It takes a burst of no more than {1 / pool.target_utilisation:.2f} times the load before requests wait.",
            "0.70; up to 0.90 where hundreds of slots share one queue (`capwatch plan pooled`)",
        )  # fmt: skip


def _starting(pool: Pool, measured: float | None) -> Iterator[Finding]:
    """Cold start against the window of scaling down, and against what engines showed."""
    cold = measured if measured is not None else pool.cold_start
    if pool.scale_down_window is not None and cold is not None and pool.scale_down_window < cold:
        yield Finding(
            "warning", "window-under-cold-start", f"pool {pool.name} scales down faster than a replica starts",
            [f"scale_down_window {show_duration(pool.scale_down_window)}, cold start {show_duration(round(cold))}"],
            "Replicas are taken away that the next rise waits for.",
            "a window no shorter than the cold start; texts say 300 to 900 s",
        )  # fmt: skip
    if measured is not None and pool.cold_start is not None and measured > 1.2 * pool.cold_start:
        yield Finding(
            "warning", "cold-start-longer", f"replicas of pool {pool.name} start slower than configured",
            [f"cold_start {show_duration(pool.cold_start)}, the newest start took {show_duration(round(measured))}"],
            "Bursts until a new replica serves are longer than planned.", "set `cold_start` to what was measured",
        )  # fmt: skip
