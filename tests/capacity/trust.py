"""How far the wait formulas can be trusted: `python -m tests.capacity.trust` prints the table of docs/capacity.md.

3,600,000 requests a row by events, renewal arrivals, service 12.25 s; the first tenth is left out.
A quarter of a minute on one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from capwatch.capacity.queueing import (
    erlang_c,
    hayward_late_share,
    hayward_mean_wait,
    late_share,
    mean_wait,
    peakedness,
    variability,
)
from tests.capacity.premises import spread_like, waits

ROWS: Final = (
    (32, 0.8, 1, 1), (32, 0.8, 4, 1), (32, 0.7, 4, 2), (544, 0.9, 4, 1), (32, 0.8, 1, 4), (32, 0.8, 1, 0.25),
    (12, 0.8, 1, 0.25),
)  # fmt: skip
"""Servers, utilisation, Ca², Cs²."""
SERVICE: Final = 12.25
BUDGET: Final = 0.5
REQUESTS: Final = 3_600_000


def row(servers: int, rho: float, ca2: float, cs2: float, requests: int = REQUESTS) -> list[tuple[float, float, float]]:
    """P(wait > 0), mean wait, late share: simulated, by F15, F18 and F19, by Hayward."""
    generator = np.random.default_rng([servers, round(100 * ca2), round(100 * cs2)])
    rate = rho * servers / SERVICE
    gaps, services = spread_like(generator, 1 / rate, ca2, requests), spread_like(generator, SERVICE, cs2, requests)
    found = waits(gaps, services, servers)[requests // 10 :]
    stretch, peak = variability(ca2, cs2), peakedness(ca2)
    return [
        (float((found > 0).mean()), float(found.mean()), float((found > BUDGET).mean())),
        (
            erlang_c(servers, rho * servers),
            mean_wait(servers, rate, SERVICE, stretch),
            late_share(servers, rate, SERVICE, BUDGET, stretch),
        ),
        (
            hayward_late_share(servers, rate, SERVICE, 0.0, peak),
            hayward_mean_wait(servers, rate, SERVICE, peak),
            hayward_late_share(servers, rate, SERVICE, BUDGET, peak),
        ),
    ]


def table() -> Iterator[str]:
    """The table of the page."""
    yield "| c | ρ | Ca² | Cs² | simulated | F15, F18, F19 | Hayward |"
    yield "|---|---|---|---|---|---|---|"
    for servers, rho, ca2, cs2 in ROWS:
        cells = " | ".join(" / ".join(f"{one:.3g}" for one in cell) for cell in row(servers, rho, ca2, cs2))
        yield f"| {servers} | {rho} | {ca2} | {cs2} | {cells} |"


if __name__ == "__main__":
    for line in table():
        print(line)
