"""In flight rising at a flat rate: by Little's law requests stay longer, so the work of each or the wait has grown.

The number in flight is the rate at which residence is gathered (`capwatch_inflight_littles_law`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.minutes.watcher import Compared

RISEN: Final = 1.5
"""Times the hour before, as the alert has it …"""
FLAT: Final = 1.1
"""… while arrivals are at most that many times as many."""

WATCHER = Compared(
    name="in_flight",
    title="Requests in flight",
    value=lambda sums: np.asarray(sums.rate("residence")),
    seen=lambda sums: np.where(sums["residence"] > 0, sums["requests"], 0.0),
    changed=lambda now, hour, before, after: (
        after > RISEN * before and bool(now.rate("came") < FLAT * hour.rate("came"))
    ),
    adds=lambda now, hour: np.asarray(now.rate("residence") - hour.rate("residence")),
    words=lambda value: f"{value:.1f}",
)
