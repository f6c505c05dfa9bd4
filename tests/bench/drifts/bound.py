"""What no detector can beat that knows only the cost: the best mean delay for a known shift at a given run length.

Page's CUSUM with the log-likelihood ratio is optimal (Moustakides 1986). With KL nats a request in favour of the drift,
a level h gives a run length of (e^h − h − 1)/KL requests and a delay of (h − 1 + e^−h)/KL (Brownian form).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from .traffic import DAY, DECODE, EPOCH, PREFILL, WEEK, Drift, Floats, Site

BIN: Final = 1 / 14
"""Of log cost."""
RUN: Final = 4 * WEEK
"""s between false alarms."""


def requests_to_alarm(site: Site, drift: Drift, seed: int) -> float | None:
    """Requests from the onset to the alarm of the optimal detector; None for a drift that comes slowly."""
    if drift.ramp:
        return None
    usual, changed = (_log_costs(site, one, [seed, 9, number]) for number, one in enumerate((Drift(), drift)))
    if site.background.name == "azure":  # the same real values repeat: a histogram would see more than there is
        information = (changed.mean() - usual.mean()) ** 2 / (2 * usual.var())
    else:
        information = _divergence(usual, changed)
    return delay(information, RUN * site.background.rate * 0.9)


def delay(information: float, run: float) -> float:
    """Mean requests to the alarm, from nats a request and mean requests between false alarms."""
    low, high = 0.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.expm1(middle) - middle < run * information else (low, middle)
    return float((low - 1 + np.exp(-low)) / information)


def _log_costs(site: Site, drift: Drift, seed: list[int]) -> Floats:
    rows = site.rows(EPOCH, EPOCH + DAY, drift, EPOCH, np.random.default_rng(seed))
    return np.log(rows.computed / PREFILL + rows.output / DECODE)


def _divergence(usual: Floats, changed: Floats) -> float:
    """KL of the second to the first, from histograms, in nats."""
    edges = np.arange(min(usual.min(), changed.min()), max(usual.max(), changed.max()) + BIN, BIN)
    p, q = (np.histogram(one, edges)[0] + 0.5 for one in (usual, changed))
    p, q = p / p.sum(), q / q.sum()
    return float((q * np.log(q / p)).sum())
