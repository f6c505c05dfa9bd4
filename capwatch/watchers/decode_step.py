"""Decode step slowing at unchanged load: each output token takes longer, though no more work arrives.

A throttled card, another engine version, a neighbour on the host: nothing that the requests did. Where more work
arrives batches grow and steps slow by themselves, which is for the drift detector and the load.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.minutes.table import Sums, ratio
from capwatch.minutes.watcher import Compared
from capwatch.record import Floats

SLOWER: Final = 1.3
"""Times the hour before, as the alert on the median has it …"""
SAME: Final = 1.1
"""… while work arrives at most that many times as fast."""


def step(sums: Sums) -> Floats:
    """Mean seconds of an output token after the first."""
    return ratio(sums["decode_s"], sums["decode_tokens"])


WATCHER = Compared(
    name="decode_step",
    title="Time per output token",
    value=step,
    seen=lambda sums: sums["timed"],
    changed=lambda now, hour, before, after: (
        after > SLOWER * before and bool(now.rate("cost") <= SAME * hour.rate("cost"))
    ),
    adds=lambda now, hour: now["decode_s"] - np.nan_to_num(step(hour)) * now["decode_tokens"],
    words=lambda value: f"{1000 * value:.0f} ms",
)
