"""Tokens per minute that a rate needs of a quota: rate × tokens × 60, for prompts, for answers, and both."""

from __future__ import annotations

import argparse

from capwatch.capacity.quota import per_minute
from capwatch.console.answer import Answer, number
from capwatch.console.options import NUMBER_FROM_0, RATE_ABOVE_0, Option

EXAMPLE = "capwatch plan quota --rate 8 --prompt 1500 --output 100"
OPTIONS = (
    Option("--rate", RATE_ABOVE_0, "RATE", "requests/s"),
    Option("--prompt", NUMBER_FROM_0, "TOKENS", "mean prompt of a request"),
    Option("--output", NUMBER_FROM_0, "TOKENS", "mean answer"),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """Tokens per minute, both ways."""
    into, out = per_minute(arguments.rate, arguments.prompt), per_minute(arguments.rate, arguments.output)
    steps = [
        f"in  = rate * prompt * 60 = {number(into)} tokens/minute",
        f"out = rate * output * 60 = {number(out)} tokens/minute",
    ]
    return Answer({"tokens_per_minute": into + out, "in": into, "out": out}, steps)
