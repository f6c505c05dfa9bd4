"""Uncapped output: more requests than before ask for no cap on their output, so that one answer may hold a seat long.

Where the log tells caps; a site without any caps has nothing that changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.minutes.table import Sums, ratio
from capwatch.minutes.watcher import Compared
from capwatch.record import Floats

MORE: Final = 0.1
"""Of all requests, and twice as many as before."""
TIMES: Final = 2.0


def without(sums: Sums) -> Floats:
    """Share of requests without a cap."""
    return ratio(sums["uncapped"], sums["told_caps"])


WATCHER = Compared(
    name="output_caps",
    title="Requests without an output cap",
    value=without,
    seen=lambda sums: sums["told_caps"],
    changed=lambda now, hour, before, after: after >= before + MORE and after >= TIMES * before,  # noqa: ARG005
    adds=lambda now, hour: np.asarray(now.rate("uncapped") - hour.rate("uncapped")),
    words=lambda value: f"{100 * value:.0f} %",
)
