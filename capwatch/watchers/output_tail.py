"""Output-tail growth: the longest answers have become longer. They hold seats and KV memory, and hold up all others.

The tail is told by its sums: Σ tokens² / Σ tokens, the length of the answer that an output token is in on average. It
moves with the longest answers, while the mean of all hardly does.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.minutes.table import Sums, ratio
from capwatch.minutes.watcher import Compared
from capwatch.record import Floats

GROWN: Final = 2.0
"""Times the hour before: squares move more than the 99th percentile, for which the alert has 1.5."""
FEWEST: Final = 1000
"""Answers in ten minutes: of fewer a single long one is a good part of all tokens."""


def tail(sums: Sums) -> Floats:
    """Tokens of the answer that an output token is in, the mean over tokens."""
    return ratio(sums["output2"], sums["output"])


WATCHER = Compared(
    name="output_tail",
    title="Output tail",
    value=tail,
    seen=lambda sums: sums["answers"],
    changed=lambda now, hour, before, after: after > GROWN * before,  # noqa: ARG005
    adds=lambda now, hour: np.asarray(now.rate("output2") - hour.rate("output2")),
    words=lambda value: f"{value:.0f} tokens",
    minutes=10,
    fewest=FEWEST,
)
