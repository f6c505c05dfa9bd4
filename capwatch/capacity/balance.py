"""Evenness: between engines, and between tenants."""

from __future__ import annotations

from capwatch.record import Floats


def imbalance(loads: Floats) -> float | None:
    """Coefficient of variation over engines: standard deviation/mean; 0 is even. None where nothing is loaded.

    >>> import numpy as np
    >>> imbalance(np.array([4.0, 4.0, 4.0])), imbalance(np.array([0.0, 8.0]))
    (0.0, 1.0)
    """
    mean = float(loads.mean()) if len(loads) else 0.0
    return float(loads.std()) / mean if mean else None


def fairness(shares: Floats) -> float | None:
    """Jain's index (Σx)²/(n Σx²): 1 where all n get the same, 1/n where one gets all (Jain, Chiu, Hawe 1984).

    None where nobody gets anything. The concentration Σ share² is 1/(n·index).

    >>> import numpy as np
    >>> fairness(np.array([3.0, 3.0])), fairness(np.array([1.0, 0.0, 0.0, 0.0]))
    (1.0, 0.25)
    """
    squares = float((shares**2).sum())
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares else None
