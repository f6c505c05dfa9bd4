"""Owned against rented: the price of a million tokens, and the utilisation from which owning is cheaper."""

from __future__ import annotations


def owned_per_million(per_hour: float, tokens_per_second: float) -> float:
    """Price of a million tokens on a replica that is always busy: price/h ÷ (tokens/s × 3600) × 1e6 (F56).

    Args:
        per_hour: of one replica, fully loaded: accelerator, host, storage, egress, people.
        tokens_per_second: that it then makes.

    >>> round(owned_per_million(12, 784), 4)
    4.2517
    """
    return per_hour / (tokens_per_second * 3600) * 1e6


def break_even(owned: float, rented: float) -> float:
    """Utilisation at which owned tokens cost what rented ones do (F57). Over 1: renting always wins.

    >>> round(break_even(4.2517, 8), 4), round(break_even(4.2517, 3), 3)
    (0.5315, 1.417)
    """
    return owned / rented
