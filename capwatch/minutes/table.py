"""Sums of a minute for each tenant of a pool."""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.ledger import POOL, TENANT, Table
from capwatch.record import Floats

MINUTE_S: Final = 60
COLUMNS: Final = (
    *("requests", "resent", "retries", "charged", "cost", "prompt", "cached", "answers", "output", "output2"),
    *("told_caps", "uncapped", "residence", "timed", "decode_s", "decode_tokens", "came", "came_cost"),
)
"""Of the requests that finished in the minute, response-cache hits apart: how many, those of them that only try again,
retries; those that tell tokens and their cost; prompt and cached tokens where both are told; those that tell an output,
output tokens and their squares; those whose log tells caps, and those of them without one; seconds that they stayed;
those that tell the pace of their output, seconds of it and tokens after the first. Then what arrived in the minute."""
MINUTES: Final = Table((POOL, TENANT), "minutes", COLUMNS, slot_s=MINUTE_S, slots=2, closes=True)
"""A minute closes one minute after its end; what comes later is left out."""
_PLACE: Final = {name: place for place, name in enumerate(COLUMNS)}


class Sums:
    """Sums of one window, or of several: a column is float64[...], whatever shape the windows have."""

    def __init__(self, values: Floats, minutes: int) -> None:
        """float64[..., columns], and how long each window is."""
        self.values = values
        self.minutes = minutes

    def __getitem__(self, name: str) -> Floats:
        """One of `COLUMNS`."""
        column: Floats = self.values[..., _PLACE[name]]
        return column

    def rate(self, name: str) -> Floats:
        """Of a column, by second."""
        return self[name] / (self.minutes * MINUTE_S)


def ratio(above: Floats, below: Floats) -> Floats:
    """A quotient, NaN where nothing is known."""
    found: Floats = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)
    return found
