"""A token bucket charged in replica-seconds: which takes it would let through.

It is full at the first take; level = min(burst, level + seconds since × rate), and a take is let through when so much
is there. Whether the budgets of all tenants add up to more than the fleet (no idle capacity is stranded) or less
(nobody eats another's wait) is a choice; capwatch shows the ratio and rejects nothing.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

from capwatch.capacity.budget import takes
from capwatch.console.answer import Answer, number
from capwatch.console.options import NUMBER_FROM_0, POSITIVE, Option, parts
from capwatch.errors import UsageError

EXAMPLE = "capwatch plan budget --rate 2 --burst 6 --take 0:4.75 --take 0:4.75 --take 2:4.75"
FORM = "SECONDS:AMOUNT"


def _take(text: str) -> tuple[float, ...]:
    return parts(text, ":", NUMBER_FROM_0, NUMBER_FROM_0, form=FORM)


OPTIONS = (
    Option("--rate", POSITIVE, "N", "replica-seconds that flow in per second"),
    Option("--burst", POSITIVE, "N", "replica-seconds that the bucket holds"),
    Option("--take", _take, FORM, "a request: when it comes, and its replica-seconds; in order", many=True),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """The decisions, and what is left."""
    asked = arguments.take
    for (before, _), (at, _) in pairwise(asked):
        if at < before:
            raise UsageError(f"--take: {number(at)} s comes after {number(before)} s; give takes in the order of time")
    steps = []
    for i, (at, amount) in enumerate(asked):
        (*_, through), bucket = takes(arguments.rate, arguments.burst, asked[: i + 1])
        said = "let through" if through else "rejected"
        steps.append(f"at {number(at)} s, {number(amount)} asked: {said}, {number(bucket.level)} left")
    decisions, bucket = takes(arguments.rate, arguments.burst, asked)
    return Answer({"decisions": decisions, "level": bucket.level}, steps)
