"""Small traffic for the tests: two classes, four tenants, days and nights; one seed, so that every run is the same."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from capwatch.drift.model import Model, Settings, fit
from capwatch.drift.rows import Rows
from capwatch.drift.ticks import Ticks

Floats = NDArray[np.float64]

MONDAY = 1_767_571_200  # 2026-01-05, UTC
DAY, HOUR = 86_400, 3600
SETTINGS = Settings(4000.0, 160.0)
NAMES = {
    "tenant": ["alpha", "beta", "gamma", "delta", "acme"],
    "class": ["policy", "long"],
    "route": ["/v1/chat", "/v1/sum"],
}


def name(dimension: str, code: int) -> str:
    """The name of a code."""
    return NAMES[dimension][code] if code >= 0 else "unknown"


def rows(
    begin: float,
    seconds: float,
    seed: int,
    *,
    rate: float = 3.0,
    long: float = 0.02,
    newcomer: float = 0.0,
    prompt: float = 1.0,
    output: float = 1.0,
    cached: float = 0.0,
    wait: float = np.nan,
) -> Rows:
    """Poisson requests of a stretch, ``rate`` a second at the mean of the day."""
    rng = np.random.default_rng(seed)
    at = np.sort(begin + rng.uniform(0, seconds, rng.poisson(rate * seconds)))
    at = at[rng.random(len(at)) < 0.7 + 0.3 * np.cos(2 * np.pi * (at / DAY - 0.6))]
    n = len(at)
    tenant = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    klass = (rng.random(n) < long).astype(np.int64)
    new = rng.random(n) < newcomer
    tenant[new], klass[new] = 4, 1
    computed = np.round(rng.lognormal(np.where(klass == 1, 9.0, 7.0), 0.5) * prompt)
    none = np.full(n, -1)
    return Rows(
        at=at,
        tenant=tenant,
        route=klass.copy(),
        klass=klass,
        model=none,
        group=none,
        prompt=computed + cached,
        cached=np.full(n, cached),
        output=np.round(rng.lognormal(np.where(klass == 1, 5.8, 4.3), 0.6) * output),
        failed=np.zeros(n, np.bool_),
        wait=np.full(n, wait),
    )


def ticks(requests: Rows) -> Ticks:
    """Their sums."""
    return Ticks.of(requests, SETTINGS.prefill_rate, SETTINGS.decode_rate)


@cache
def history() -> Ticks:
    """Seven days without a drift."""
    return ticks(rows(MONDAY, 7 * DAY, 1))


@cache
def model() -> Model:
    """What is learnt of them."""
    return fit(history(), SETTINGS)


LATER = MONDAY + 7 * DAY + 12 * HOUR
"""Noon after the history."""
