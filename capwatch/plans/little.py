"""Requests in flight, by phase: Little's law, rate × visits × seconds.

A phase is the time of one visit and, behind `@`, the visits of one request. Means only: no percentile goes in. It
holds while as many requests arrive as end, and says nothing about the capacity of a GPU.
"""

from __future__ import annotations

import argparse

from capwatch.capacity.little import by_phase, residence
from capwatch.console.answer import Answer, number
from capwatch.console.options import RATE_ABOVE_0, Option, by_name, named, visit

EXAMPLE = (
    "capwatch plan little --rate 20 --phase gateway=0.1s --phase retrieval=0.4s --phase tool=2s@0.15 --phase model=4.2s"
)
FORM = "NAME=TIME[@VISITS]"
OPTIONS = (
    Option("--rate", RATE_ABOVE_0, "RATE", "requests/s"),
    Option("--phase", named(visit, FORM), FORM, "a phase and its mean time", many=True),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """In flight by phase, in all, and the residence."""
    phases = by_name("--phase", arguments.phase)
    found = by_phase(arguments.rate, phases)
    stays = residence(list(phases.values()))
    wide = max(map(len, phases))
    total = sum(found.values())
    rate = number(arguments.rate)
    steps = [
        f"{name:{wide}}  {rate}/s * {number(one.visits)} * {number(one.seconds)} s = {number(found[name])}"
        for name, one in phases.items()
    ]
    steps.append(f"residence = sum of visits * seconds = {number(stays)} s; rate * residence = {number(total)}")
    return Answer({"inflight": found, "total": total, "residence_s": stays}, steps)
