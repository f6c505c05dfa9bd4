"""What the present load needs and what the replicas there can bear, by the formulas of `capwatch.capacity`."""

from __future__ import annotations

from collections.abc import Mapping

from capwatch.capacity import sizing, slots
from capwatch.capacity.work import capacity, utilisation
from capwatch.config.schema import Pool
from capwatch.load.pools import Load
from capwatch.load.waiting import servers


def used(load: Load) -> float | None:
    """λ c̄/n, the share of the replicas' time that the work takes."""
    replicas, cost = load.replicas, load.mean_cost
    if replicas is None or load.demand is None:
        return None
    return utilisation(load.work["charged"] / load.length, cost or 0.0, replicas)


def needed(load: Load) -> tuple[float, ...] | None:
    """Replicas for each of `m.PROMISES`: base, burst, zonal; the last only where zones are configured."""
    if load.demand is None:
        return None
    pool = load.pool
    found = sizing.promises(load.demand, 1, pool.target_utilisation, pool.burst, zones(pool) or 1)
    return found.base, found.burst, found.zonal if zones(pool) else float("nan")


def headroom(load: Load) -> tuple[float, ...] | None:
    """Replicas to spare after each of `m.FAILURES`: none, a replica, the largest zone."""
    if load.replicas is None or load.demand is None:
        return None
    required = sizing.needed(load.demand, 1, load.pool.target_utilisation)
    zone = largest_zone(load.pool, load.replicas)
    spare = [sizing.headroom(load.replicas, required, lost) for lost in (0, 1)]
    return *spare, float("nan") if zone is None else sizing.headroom(load.replicas, required, zone)


def zones(pool: Pool) -> int | None:
    """Zones of a pool, where they are configured."""
    return len(pool.zone_sizes) if pool.zone_sizes else pool.zones


def largest_zone(pool: Pool, replicas: int) -> int | None:
    """Replicas of the largest zone, where zones are configured."""
    if pool.zone_sizes:
        return max(pool.zone_sizes)
    return -(-replicas // pool.zones) if pool.zones else None


def hpa(load: Load) -> float | None:
    """What the autoscaler's formula asks for, from requests in the engines."""
    target, inside, replicas = load.pool.inflight_target, load.inside, load.replicas
    if target is None or inside is None or replicas is None:
        return None
    return sizing.hpa(replicas, inside / replicas, target)


def usable(load: Load) -> tuple[float, ...] | None:
    """Requests/s that keep the late share: each replica behind a queue of its own, all behind one."""
    found, replicas = servers(load), load.replicas
    if found is None or replicas is None:
        return None
    each, service, rate = found
    demand = slots.Demand(rate, each, service, load.pool.wait_budget, load.pool.late_share, load.stretch)
    return replicas * slots.usable_rate(demand), slots.usable_rate(demand, replicas)


def allowed(load: Load) -> tuple[float, ...] | None:
    """Utilisation at which the late share is just kept, by routing as `usable` has it."""
    found, rates, replicas = servers(load), usable(load), load.replicas
    if found is None or rates is None or replicas is None:
        return None
    each, service, _ = found
    return tuple(utilisation(rate, service, each * replicas) for rate in rates)


def stages(load: Load) -> Mapping[str, float]:
    """User requests/s that each configured stage sustains, and the model by what its replicas can do at the target."""
    found = {name: stage.capacity_rps for name, stage in load.pool.stages.items()}
    if "model" not in found and load.replicas is not None and load.mean_cost:
        found["model"] = capacity(load.replicas, load.mean_cost) * load.pool.target_utilisation
    return found
