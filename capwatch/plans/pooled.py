"""Replicas by slots and a wait budget: one queue for all, against a queue for each.

The late share is P(wait > budget) in M/M/c with c = replicas × slots, C·exp(−(cμ − λ)t/f); f = (ca2 + cs2)/2
stretches the tail where arrivals or work vary more than at random. naive serves the mean; isolated gives each replica
its own queue; pooled is one queue. burst covers what the rate gains while new replicas start; total adds it and the
spare. Where --ca2 exceeds 1.5, Hayward's approximation for bursty arrivals is printed too, and a warning if it misses
the target: it is much closer to simulation there.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

import numpy as np

from capwatch.capacity import slots
from capwatch.capacity.knee import late_shares
from capwatch.capacity.queueing import hayward_late_share, peakedness, variability
from capwatch.capacity.rounding import whole
from capwatch.console.answer import Answer, bars, number, percent
from capwatch.console.options import (
    COUNT_FROM_0,
    CV2,
    DURATION_ABOVE_0,
    DURATION_FROM_0,
    RATE_ABOVE_0,
    SHARE_BETWEEN,
    Option,
    capped,
    together,
)
from capwatch.errors import UsageError

EXAMPLE = (
    "capwatch plan pooled --peak 40 --slots 32 --service 12.25s --wait 0.5s --late 1% --ramp 0.5/min --lag 8min "
    "--spare 1"
)
OPTIONS = (
    Option("--peak", RATE_ABOVE_0, "RATE", "requests/s at the peak"),
    Option("--slots", capped(1e6), "N", "requests a replica serves at once and still meets its time per token"),
    Option("--service", DURATION_ABOVE_0, "TIME", "mean time in a slot, seconds: prefill + output * time per token"),
    Option("--wait", DURATION_FROM_0, "TIME", "wait budget, seconds: at most the TTFT target less prefill"),
    Option("--late", SHARE_BETWEEN, "SHARE", "of the requests that may wait longer"),
    Option("--ca2", CV2, "CV2", "squared coefficient of variation of gaps between arrivals; measure it", "1"),
    Option("--cs2", CV2, "CV2", "squared coefficient of variation of service times; measure it", "1"),
    Option("--ramp", RATE_ABOVE_0, "RATE", "fastest growth of the rate, such as 0.5/min", optional=True),
    Option("--lag", DURATION_FROM_0, "TIME", "until a new replica helps, seconds", optional=True),
    Option("--spare", COUNT_FROM_0, "N", "replicas to lose; the largest zone, if replicas share zones", "0"),
)
BURSTY: Final = 1.5
"""Ca² from which the stretched tail is too low to be trusted alone."""
MOST_LOAD: Final = 1e9
"""Erlangs. The recursion takes the root of it in steps."""
MOST_DRAWN: Final = 300_000
"""Servers up to which the knee is drawn; it takes a second there."""
UTILISATIONS: Final = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)


def plan(arguments: argparse.Namespace) -> Answer:
    """The three sizes, and what comes on top."""
    if arguments.peak * arguments.service > MOST_LOAD:
        raise UsageError(f"--peak: {number(arguments.peak)}/s of such length keep more than {MOST_LOAD:g} slots busy")
    ramps = together(arguments, ("--ramp", "--lag"), "--ramp and --lag go together")
    stretch = variability(arguments.ca2, arguments.cs2)
    demand = slots.Demand(arguments.peak, arguments.slots, arguments.service, arguments.wait, arguments.late, stretch)
    usable, pooled = slots.usable_rate(demand), slots.pooled(demand)
    burst = slots.burst_adder(demand.rate, pooled, arguments.ramp, arguments.lag) if ramps else 0
    result = {
        "slot_qps": slots.slot_rate(demand.slots, demand.service),
        "isolated_qps": usable,
        "naive": slots.naive(demand),
        "naive_late_share": demand.late_at(slots.naive(demand)),
        "isolated": whole(demand.rate / usable),
        "pooled": pooled,
        "pooled_utilisation": slots.floor(demand.rate, demand.slots, demand.service) / pooled,
        "pooled_late_share": demand.late_at(pooled),
        "burst": burst,
        "spare": arguments.spare,
        "total": pooled + burst + arguments.spare,
    }
    steps = _steps(demand, result)
    if ramps:
        gained, each = number(arguments.ramp * arguments.lag), number(demand.rate / pooled)
        steps.append(f"burst    = ceil(ramp * lag/(peak/pooled)) = ceil({gained}/{each}) = {burst}")
    steps.append(f"total    = pooled + burst + spare = {pooled} + {burst} + {arguments.spare} = {result['total']}")
    warnings = []
    if arguments.ca2 > BURSTY:
        peak = peakedness(arguments.ca2)
        result["hayward_late_share"] = late = _hayward(demand, pooled, peak)
        result["hayward_pooled"] = enough = slots.hayward(demand, peak)
        steps.append(f"Hayward: {percent(late)} are late on {pooled} with z = (ca2 + 1)/2 = {number(peak)}")
        if late >= demand.late:
            warnings.append(
                f"--ca2: arrivals this bursty make {percent(late)} late on {pooled} replicas by Hayward's "
                f"approximation, over the target of {percent(demand.late)}; {enough} replicas keep it"
            )
    return Answer(result, steps, warnings, _picture(demand, pooled))


def _hayward(demand: slots.Demand, replicas: int, peak: float) -> float:
    return hayward_late_share(replicas * demand.slots, demand.rate, demand.service, demand.wait, peak)


def _steps(demand: slots.Demand, found: Mapping[str, float]) -> list[str]:
    busy, target = slots.floor(demand.rate, demand.slots, demand.service), percent(demand.late)
    usable, late = number(found["isolated_qps"]), percent(found["pooled_late_share"])
    used = percent(found["pooled_utilisation"])
    return [
        f"a replica with full slots: slots/service = {number(found['slot_qps'])}/s",
        f"busy on average: peak * service = {number(demand.rate * demand.service)} slots = {number(busy)} replicas",
        f"f = (ca2 + cs2)/2 = {number(demand.stretch)}; late share = C * exp(-(c/service - peak) * wait/f)",
        f"naive    = ceil({number(busy)}) = {found['naive']}, with {percent(found['naive_late_share'])} late",
        f"a replica by itself takes at most {usable}/s with under {target} late",
        f"isolated = ceil(peak/{usable}) = {found['isolated']}",
        f"pooled   = {found['pooled']}: the fewest behind one queue, {late} late at {used} utilisation",
    ]


def _picture(demand: slots.Demand, pooled: int) -> list[str]:
    """The knee: late share against utilisation, of one replica and of all."""
    if pooled * demand.slots > MOST_DRAWN or not demand.stretch:
        return []
    one, shared = (_curve(demand, replicas) for replicas in (1, pooled))
    rows = [
        (f"{100 * rho:.0f} %", alone, f"{percent(alone):>9}  {percent(together):>9}")
        for rho, alone, together in zip(UTILISATIONS, one, shared, strict=True)
    ]
    head = f"late share by utilisation: one replica by itself (bars), and {pooled} behind one queue (last column)"
    return [head, *bars(rows)]


def _curve(demand: slots.Demand, replicas: int) -> list[float]:
    servers = replicas * demand.slots
    rates = np.array(UTILISATIONS) * slots.slot_rate(servers, demand.service)
    return [float(late) for late in late_shares(servers, rates, demand.service, demand.wait, demand.stretch)]
