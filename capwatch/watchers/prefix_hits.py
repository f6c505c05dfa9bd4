"""Prefix-hit cliff: the cached share of prompt tokens halves, so the same prompts cost more prefill.

A template changed its first words, requests lost their replica, or the cache is too small for a new tenant's prefixes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.minutes.table import Sums, ratio
from capwatch.minutes.watcher import Compared
from capwatch.record import Floats

LEFT: Final = 0.5
"""Times the hit ratio of the hour before."""
LEAST: Final = 0.05
"""A smaller hit ratio is no loss."""


def hits(sums: Sums) -> Floats:
    """Cached / prompt tokens, where both are told."""
    return ratio(sums["cached"], sums["prompt"])


def lost(now: Sums, hour: Sums) -> Floats:
    """Tokens that a tenant would have had from the cache by its own ratio of the hour before."""
    return np.nan_to_num(hits(hour)) * now["prompt"] - now["cached"]


WATCHER = Compared(
    name="prefix_hits",
    title="Prefix hit ratio",
    value=hits,
    seen=lambda sums: np.where(sums["prompt"] > 0, sums["requests"], 0.0),
    changed=lambda now, hour, before, after: before > LEAST and after < LEFT * before,  # noqa: ARG005
    adds=lost,
    words=lambda value: f"{100 * value:.0f} %",
)
