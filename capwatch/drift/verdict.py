"""Composition or queueing: do requests cost more, do they wait longer, or both?"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.drift.reference import Reference, cell
from capwatch.drift.ticks import Ticks

LONGER: Final = 0.25
"""Relative rise of a class's mean wait that counts …"""
LONGER_S: Final = 0.05
"""… if it is also that many seconds."""
LEAST: Final = 30
"""Requests with a known wait without which a class says nothing."""


def verdict(ticks: Ticks, reference: Reference, change: float, minimum_effect: float) -> str | None:
    """The verdict on a window, or None where no waits are told.

    Queueing: the mean wait is longer than in history at the same hours, by both thresholds, in classes that hold at
    least half of the requests. Composition: the cost per request has changed by at least the minimum effect.
    """
    layout = reference.layout
    classes, places = len(layout.classes) + 1, layout.class_places(ticks)
    waited, wait = (np.bincount(places, ticks[name], classes) for name in ("waited", "wait"))
    usual_wait = reference.wait[cell(ticks.tick), places]
    told = np.isfinite(usual_wait)
    usual = np.bincount(places[told], (usual_wait * ticks["waited"])[told], classes)
    judged = (waited >= LEAST) & (np.bincount(places[told], ticks["waited"][told], classes) > 0)
    if not judged.any():
        return None
    now, then = (np.divide(part, waited, out=np.zeros(classes), where=judged) for part in (wait, usual))
    longer = judged & (now >= (1 + LONGER) * then) & (now - then >= LONGER_S)
    queueing = waited[longer].sum() >= waited.sum() / 2
    composition = abs(change) >= minimum_effect
    if queueing:
        return "both" if composition else "queueing"
    return "composition" if composition else "unknown"
