"""Slots: the most sequences at once with which enough requests still meet their time per output token."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.calibrate.extra import regression
from capwatch.calibrate.fit import FEWEST
from capwatch.calibrate.windows import Rows

SPREAD: Final = 1.2
"""Largest over smallest occupancy (p95 over p5) below which no line over it can be drawn."""


@dataclass(frozen=True, slots=True)
class Slots:
    """What was found.

    Attributes:
        value: sequences at once; None where even the fewest observed are too many.
        at_least: whether the target still holds at the most that were observed, so that more may be possible.
        why: what to know about it; empty where it is as it seems.
    """

    value: int | None
    at_least: bool
    why: str


def slots(found: Rows, target: float, share: float) -> Slots:
    """The occupancy up to which a share of the requests keeps the time per output token.

    The quantile of TPOT is a line over the occupancy (quantile regression; Koenker and Bassett 1978), and is asked only
    between the occupancies that were observed.

    Args:
        found: stretches of requests.
        target: TPOT, s.
        share: of the requests that has to keep it, in 0..1.
    """
    later = (found.before == 0) & (found.steps >= 1) & ~np.isnan(found.occupancy)
    if later.sum() < FEWEST:
        return Slots(None, False, f"fewer than {FEWEST} requests tell a time per output token")
    tpot, running = (found.seconds / np.maximum(found.steps, 1))[later], found.occupancy[later]
    least, most = (float(one) for one in np.quantile(running, (0.05, 0.95)))
    if most < SPREAD * least:
        kept = float(np.quantile(tpot, share)) <= target
        return Slots(
            int(most + 0.5) if kept else None, kept, "occupancy hardly varied: it was met, or not, at one only"
        )
    design = np.stack([np.ones(len(running)), running], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it has converged is of no matter at this accuracy
        base, slope = regression().QuantReg(tpot, design).fit(q=share, max_iter=2000).params.tolist()
    if base + slope * most <= target:
        return Slots(int(most), True, "the target still held at the most that ran at once")
    if slope <= 0 or base + slope * least > target:
        return Slots(None, False, "the target was missed even with the fewest that ran at once")
    return Slots(max(1, math.floor((target - base) / slope)), False, "")
