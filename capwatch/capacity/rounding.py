"""Ceilings of quotients that people typed in decimals."""

from __future__ import annotations

import math


def whole(quotient: float) -> int:
    """The ceiling, without rounding a whole quotient up because of binary noise.

    What exceeds a whole number by up to a billionth of itself, at most by 0.001, is noise; a chain of a dozen
    floating-point operations stays far below that up to 1e11. Raises OverflowError for an infinite quotient.

    >>> 2.1 / (0.7 * 0.1), whole(2.1 / (0.7 * 0.1))
    (30.000000000000004, 30)
    >>> whole(27.4), whole(-0.5)
    (28, 0)
    """
    return math.ceil(quotient - min(1e-9 * max(1.0, quotient), 1e-3))
