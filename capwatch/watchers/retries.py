"""Retry amplification: clients send the same work again, which makes a slow service slower.

Attempts over unique requests, as `capwatch_retry_amplification_ratio`; the tenants behind it are those that send again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.minutes.table import Sums, ratio
from capwatch.minutes.watcher import Compared
from capwatch.record import Floats

MOST: Final = 1.2
"""One request in five is sent again: as the alert on the gauge has it."""
GROWN: Final = 1.1
"""Times the hour before: who always sends again is no news."""


def amplification(sums: Sums) -> Floats:
    """Attempts / unique requests; 1 without retries."""
    unique = sums["requests"] - sums["resent"]
    return ratio(unique + sums["retries"], unique)


WATCHER = Compared(
    name="retries",
    title="Attempts per request",
    value=amplification,
    seen=lambda sums: sums["requests"],
    changed=lambda now, hour, before, after: after > max(MOST, GROWN * before),  # noqa: ARG005
    adds=lambda now, hour: np.asarray(now.rate("retries") - hour.rate("retries")),
    words=lambda value: f"{value:.2f}",
)
