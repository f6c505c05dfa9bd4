"""Replicas by work and a target utilisation: for the peak, for a burst, and for a burst without one zone.

Three promises, each dearer: base = ceil(demand/(replica × target)); burst the same for demand × burst; zonal so that
the zones that are left after one is lost carry the burst. Choose one; the others are waived knowingly.
"""

from __future__ import annotations

import argparse

from capwatch.capacity.rounding import whole
from capwatch.capacity.sizing import absorbed, promises, zone_target
from capwatch.console.answer import Answer, number
from capwatch.console.options import COUNT, FACTOR, POSITIVE, UTILISATION, Option

EXAMPLE = "capwatch plan size --demand-tps 800 --replica-tps 100 --target 0.7 --burst 1.5 --zones 3"
OPTIONS = (
    Option("--demand-tps", POSITIVE, "N", "tokens/s (or other work/s) at the expected peak"),
    Option("--replica-tps", POSITIVE, "N", "of it that one replica does, fully busy"),
    Option("--target", UTILISATION, "SHARE", "utilisation to plan for; texts say 0.55 to 0.70 and 0.90 for one queue"),
    Option("--burst", FACTOR, "FACTOR", "burst over the expected peak"),
    Option("--zones", COUNT, "N", "zones of equal size"),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """The three promises."""
    demand, replica, target = arguments.demand_tps, arguments.replica_tps, arguments.target
    burst, zones = arguments.burst, arguments.zones
    found = promises(demand, replica, target, burst, zones)
    peak, useful = demand * burst, replica * target
    steps = [
        f"base  = ceil(demand/(replica * target)) = {_quotient(demand, useful)}",
        f"burst = ceil(demand * burst/(replica * target)) = {_quotient(peak, useful)}",
    ]
    if zones > 1:
        left = zone_target(target, zones)
        steps += [
            f"a zone is planned at target * (zones - 1)/zones = {number(left)}, so that the others can carry it",
            f"need  = ceil(demand * burst/(replica * {number(left)})) = {_quotient(peak, replica * left)}",
            f"zonal = zones * ceil(need/zones) = {zones} * {found.per_zone} = {found.zonal}",
        ]
    else:
        steps.append("zonal = burst: with one zone there is none to lose")
    steps.append(f"headroom alone takes a burst of 1/target = {number(absorbed(target))} without a new replica")
    return Answer(
        {"base": found.base, "burst": found.burst, "zonal": found.zonal, "per_zone": found.per_zone},
        steps,
    )


def _quotient(demand: float, useful: float) -> str:
    return f"ceil({number(demand)}/{number(useful)}) = ceil({number(demand / useful)}) = {whole(demand / useful)}"
