"""Lengths of prompts and answers: a lognormal by the method of moments, and whether it fits."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

MISFIT: Final = 0.2
"""A fitted p99 that is off by more than this share says that the lengths are not lognormal."""


def sigma(mean: float, median: float) -> float | None:
    """σ = √(2 ln(m/q₅₀)), the standard deviation of the logarithm; None where the mean is not above the median.

    >>> round(sigma(1500, 1100), 3), round(sigma(100, 70), 3), sigma(90, 100)
    (0.788, 0.845, None)
    """
    return math.sqrt(2 * math.log(mean / median)) if mean >= median > 0 else None


def quantile(median: float, spread: float, q: float) -> float:
    """The q quantile: q₅₀·e^(zσ) with the normal quantile z, 0 < q < 1.

    >>> [round(quantile(1100, 0.7876, q)) for q in (0.5, 0.95, 0.99)]
    [1100, 4018, 6873]
    """
    return median * math.exp(NormalDist().inv_cdf(q) * spread)


def misfit(fitted: float, measured: float) -> float | None:
    """Fitted over measured p99, less 1; None where nothing was measured. Beyond ±`MISFIT` no lognormal.

    >>> round(misfit(6873, 5000), 3)
    0.375
    """
    return fitted / measured - 1 if measured else None
