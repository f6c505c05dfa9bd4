"""Owned against rented: the price of a million tokens of one's own, and the utilisation from which that is cheaper.

The hour is fully loaded: accelerator, host, storage, egress, people. capwatch knows no prices; they are yours.
"""

from __future__ import annotations

import argparse

from capwatch.capacity.crossover import break_even, owned_per_million
from capwatch.console.answer import Answer, number
from capwatch.console.options import POSITIVE, Option

EXAMPLE = "capwatch plan crossover --replica-hour-usd 12 --tokens-per-second 784 --price-per-million-usd 8"
OPTIONS = (
    Option("--replica-hour-usd", POSITIVE, "USD", "one replica for one hour"),
    Option("--tokens-per-second", POSITIVE, "N", "that it makes when busy"),
    Option("--price-per-million-usd", POSITIVE, "USD", "a million of such tokens, rented"),
)


def plan(arguments: argparse.Namespace) -> Answer:
    """Price and break-even."""
    owned = owned_per_million(arguments.replica_hour_usd, arguments.tokens_per_second)
    even = break_even(owned, arguments.price_per_million_usd)
    steps = [
        f"owned, always busy: USD/h/(tokens/s * 3600) * 1e6 = {number(owned)} USD per million",
        f"break-even utilisation = owned/rented = {number(even)}"
        + (": renting is always cheaper" if even > 1 else ": owning is cheaper above it"),
    ]
    return Answer({"owned_usd_per_million": owned, "breakeven_utilisation": even}, steps)
