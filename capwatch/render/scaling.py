"""What an autoscaler of a pool is told: the signal, its target per replica, bounds and windows, each with its origin.

The signal is the work that arrives (replica-seconds per second), or the requests inside the engines; divided by the
target it gives the replicas of the base promise (F37, F40). A GPU's busy time is none.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.capacity import sizing
from capwatch.capacity.rounding import whole
from capwatch.console.options import POSITIVE, one_value
from capwatch.errors import UsageError
from capwatch.observed.columns import selector
from capwatch.render.observed import STEP_S, Observed
from capwatch.render.page import MARK, named, number, short, text

SERIES: Final = {"work": "pool:capwatch_cost_replica_seconds:rate5m", "inflight": "capwatch_inflight_measured"}
"""Of each signal; two instances of capwatch may tell the same requests in flight, which count once."""
DAY_S: Final = 86400
DEFAULT_WINDOW_S: Final = 300
MOST_WINDOW_S: Final = 3600
"""Kubernetes' own default and limit of `stabilizationWindowSeconds`."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The numbers of an autoscaler.

    Attributes:
        query: PromQL of the signal, one series.
        target: of it, for each replica.
        target_why, least_why, most_why: where the numbers come from.
        least, most: replicas.
    """

    query: str
    target: float
    target_why: str
    least: int
    least_why: str
    most: int
    most_why: str


def describe(parser: argparse.ArgumentParser) -> None:
    """Options that autoscalers share."""
    parser.add_argument(
        "--signal", metavar="NAME", default="work", help=f"{' or '.join(SERIES)} (work: replica-seconds per second)"
    )
    parser.add_argument("--target", metavar="N", help="of the signal for each replica (from the pool's settings)")
    parser.add_argument("--workload", metavar="NAME", help="the Deployment of the replicas (the pool's name)")
    parser.add_argument("--namespace", metavar="NAME", help="of the workload")


def scaling(seen: Observed, arguments: argparse.Namespace) -> Scaling:
    """The numbers for a pool.

    Raises:
        UsageError: there is no such signal, or nothing tells its target.
    """
    if arguments.signal not in SERIES:
        raise UsageError(f"--signal: no signal {arguments.signal!r}; one of {', '.join(SERIES)}")
    share = float(seen.setting("target_utilisation"))
    given = None if arguments.target is None else one_value("--target", POSITIVE, arguments.target)
    if arguments.signal == "work":
        query = f"sum({selector(SERIES['work'], pool=seen.pool)})"
        target, why = share, seen.origin("target_utilisation")
    else:
        query = f"sum(max by (phase) ({selector(SERIES['inflight'], pool=seen.pool)}))"
        target, why = _inflight(seen, share, given)
    if given is not None:
        target, why = given, "--target"
    return Scaling(query, target, why, *_least(seen, share), *_most(seen, share))


def _inflight(seen: Observed, share: float, given: float | None) -> tuple[float, str]:
    """Requests in the engines for each replica."""
    configured, slots = seen.setting("inflight_target"), seen.setting("slots")
    if configured is not None:
        return float(configured), "pools[].inflight_target"
    if slots is not None:
        return share * slots, f"target_utilisation {short(share)} of {slots} slots (pools[].slots)"
    work = float(np.nanmean(seen.demand))
    if seen.inside is not None:
        each = seen.inside / work
        return (
            share * each,
            f"target_utilisation {short(share)} of {short(each)} in prefill and decode per busy replica",
        )
    if given is None:
        raise UsageError("--target: nothing tells requests in flight; set pools[].inflight_target, or give --target N")
    return given, "--target"


def _least(seen: Observed, share: float) -> tuple[int, str]:
    """What the quietest hour needs, if the window has a day; else what the mean needs."""
    steps = int(3600 / STEP_S)
    hours = np.array([np.nanmean(seen.demand[at : at + steps]) for at in range(0, len(seen.demand), steps)])
    day = seen.until - seen.since >= DAY_S
    work = float(hours.min() if day else np.nanmean(seen.demand))
    what = "the quietest hour" if day else "the mean of a window shorter than a day"
    zones = _zones(seen)
    least = max(1, zones, sizing.needed(work, 1, share))
    why = f"{what}: {short(work)} replica-seconds/s / {short(share)}"
    return least, why + (f", one in each of {zones} zones at least" if zones > 1 else "")


def _most(seen: Observed, share: float) -> tuple[int, str]:
    """The dearest promise for the busiest five minutes."""
    peak, burst, zones = float(np.nanmax(seen.demand)), float(seen.setting("burst")), _zones(seen)
    promised = sizing.promises(peak, 1, share, burst, max(zones, 1))
    why = f"busiest 5 min {short(peak)} replica-seconds/s x burst {short(burst)} / {short(share)}"
    if zones > 1:
        return promised.zonal, f"{why}, after the loss of one of {zones} zones"
    return promised.burst, why


def _zones(seen: Observed) -> int:
    sizes = seen.setting("zone_sizes")
    return len(sizes) if sizes else int(seen.setting("zones") or 1)


def behaviour(seen: Observed, indent: int) -> Iterator[str]:
    """`behavior` of an autoscaler: up at once, down no sooner than a replica starts."""
    pad = " " * indent
    window, cold = seen.setting("scale_down_window"), seen.setting("cold_start")
    yield f"{pad}behavior:"
    yield f"{pad}  scaleUp:"
    yield number("stabilizationWindowSeconds", 0, "at once: nobody waits for a window", indent + 4)
    yield f"{pad}  scaleDown:"
    told = [(value, name) for value, name in ((window, "scale_down_window"), (cold, "cold_start")) if value is not None]
    if not told:
        why = f"{MARK}: no pools[].scale_down_window or cold_start; Kubernetes' default"
        yield number("stabilizationWindowSeconds", DEFAULT_WINDOW_S, why, indent + 4)
        return
    value, name = max(told)
    why = f"pools[].{name}" + (
        ": the window was shorter than a start" if len(told) > 1 and name == "cold_start" else ""
    )
    if value > MOST_WINDOW_S:
        value, why = MOST_WINDOW_S, f"Kubernetes' limit; {why} is {short(value)} s"
    yield number("stabilizationWindowSeconds", math.ceil(value), why, indent + 4)


def head(seen: Observed, what: str) -> Iterator[str]:
    """The comment above a manifest."""
    yield f"# {what} for pool {text(seen.pool)}, written by capwatch."
    yield f"# {seen.told}"
    yield "# Replicas = ceil(signal / target), the base promise. GPU busy is no signal: it is near 1 at any batch size."


def workload(seen: Observed, arguments: argparse.Namespace) -> Iterator[str]:
    """Metadata and target of a manifest.

    Raises:
        UsageError: no letter or digit of the pool's name can be in a name of Kubernetes, and no workload is given.
    """
    called = arguments.workload or named(seen.pool)
    if not called:
        raise UsageError(f"--workload: nothing of {seen.pool!r} can be a name in Kubernetes; give --workload NAME")
    yield "metadata:"
    yield f"  name: {named('capwatch', seen.pool)}"
    if arguments.namespace is not None:
        yield f"  namespace: {text(arguments.namespace)}"
    yield "spec:"
    yield "  scaleTargetRef:"
    yield from ("    apiVersion: apps/v1", "    kind: Deployment")
    name = f"    name: {text(called)}"
    yield name if arguments.workload else name.ljust(43) + f" # {MARK}: the workload's name; give --workload"


def replicas(found: Scaling, least: str, most: str) -> Iterator[str]:
    """The bounds, under the names that a manifest has for them."""
    yield number(least, found.least, found.least_why, 2)
    yield number(most, found.most, found.most_why, 2)


def whole_replicas(seen: Observed) -> int | None:
    """Replicas that were there last."""
    return None if seen.replicas is None else whole(seen.replicas)
