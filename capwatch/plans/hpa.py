"""What a Kubernetes autoscaler wants: ceil(replicas × current/target), unless the ratio is within the tolerance.

Before its own minimum, maximum and windows. A scale-down window shorter than a cold start takes replicas away that
the next rise waits for; texts say 300 to 900 s.
"""

from __future__ import annotations

import argparse

from capwatch.capacity.sizing import hpa
from capwatch.console.answer import Answer, number
from capwatch.console.options import COUNT, NUMBER_FROM_0, PART, POSITIVE, Option

EXAMPLE = "capwatch plan hpa --replicas 12 --current 8 --target 3.5"
OPTIONS = (
    Option("--replicas", COUNT, "N", "that are there"),
    Option("--current", NUMBER_FROM_0, "N", "of the metric per replica, such as requests in flight"),
    Option("--target", POSITIVE, "N", "of it per replica"),
    Option("--tolerance", PART, "SHARE", "of the target within which nothing is done", "0.1"),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """The replicas that are wanted."""
    replicas, current, target, tolerance = (
        arguments.replicas, arguments.current, arguments.target, arguments.tolerance
    )  # fmt: skip
    desired = hpa(replicas, current, target, tolerance)
    ratio = current / target
    within = abs(ratio - 1) <= tolerance + 1e-9
    steps = [
        f"ratio = current/target = {number(ratio)}, {'within' if within else 'not within'} 1 +- {number(tolerance)}",
        f"replicas stay {desired}" if within else f"ceil({replicas} * {number(ratio)}) = {desired}",
    ]
    return Answer({"desired": desired}, steps)
