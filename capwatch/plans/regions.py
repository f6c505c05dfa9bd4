"""The price of regions: replicas for each with its spares, against one pool for all.

Each region is ceil(peak × share/(replica-rps × target)) + spare. Shares are computed as given, with a warning where
they do not add up to 1 (a region added on top of 100 % is a common way to write it).
"""

from __future__ import annotations

import argparse
import math

from capwatch.capacity.regions import regions
from capwatch.config.kinds import SHARE
from capwatch.console.answer import Answer, number
from capwatch.console.options import (
    COUNT_FROM_0,
    MIX_TOLERANCE,
    RATE_ABOVE_0,
    UTILISATION,
    Option,
    bounded,
    by_name,
    named,
)

EXAMPLE = (
    "capwatch plan regions --peak 20 --replica-rps 1 --target 0.7 --region eu=0.30 --region us=0.70 --region ap=0.03 "
    "--spare 1"
)
OPTIONS = (
    Option("--peak", RATE_ABOVE_0, "RATE", "requests/s of all regions at the peak"),
    Option("--replica-rps", RATE_ABOVE_0, "RATE", "requests/s of a replica, fully busy"),
    Option("--target", UTILISATION, "SHARE", "utilisation to plan for"),
    Option(
        "--region",
        named(bounded(SHARE, at_least=0), "NAME=SHARE"),
        "NAME=SHARE",
        "a region and its share of the peak",
        many=True,
    ),
    Option("--spare", COUNT_FROM_0, "N", "replicas that each region has on top"),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """Replicas of one pool, and of regions."""
    shares = by_name("--region", arguments.region)
    peak, replica, target, spare = arguments.peak, arguments.replica_rps, arguments.target, arguments.spare
    found = regions(peak, replica, target, shares, spare)
    total = math.fsum(shares.values())
    warnings = []
    if abs(total - 1) > MIX_TOLERANCE:
        warnings.append(f"--region: the shares add up to {total:.9g}, not 1; each is computed as given")
    steps = [f"one pool: ceil(peak/(replica-rps * target)) = ceil({number(peak / replica / target)}) = {found.pooled}"]
    for name, share in shares.items():
        need, size = peak * share / replica, found.regions[name]
        used = f", {100 * need / size:.0f} % busy" if size else ""
        steps.append(f"{name}: ceil({number(need)}/{number(target)}) + {spare} = {size}{used}")
    steps.append(f"all regions: {found.total}, {found.total - found.pooled:+} against one pool")
    return Answer({"pooled": found.pooled, "regions": dict(found.regions), "total": found.total}, steps, warnings)
