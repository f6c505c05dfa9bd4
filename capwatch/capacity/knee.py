"""The knee: what waits do as the rate rises, for a whole curve of rates at once."""

from __future__ import annotations

import numpy as np

from capwatch.capacity.queueing import SETTLED
from capwatch.record import Floats


def erlang_c(servers: int, loads: Floats) -> Floats:
    """P(wait > 0) in M/M/c for many loads: the recursion of `queueing.erlang_b` on arrays (F15; Erlang 1917).

    Args:
        servers: c ≥ 1.
        loads: float64[n], offered loads ≥ 0 in erlangs, in any order.

    >>> erlang_c(12, np.array([0.0, 10.8, 12.0])).round(7).tolist()
    [0.0, 0.6400429, 1.0]
    """
    load = np.clip(loads, 1e-300, servers)
    k = np.floor(np.maximum(load - SETTLED * np.sqrt(load), 0.0))
    blocking = 1.0 - k / load
    while (going := (k < servers) & (blocking > 0.0)).any():  # each load from where its own recursion may start
        k = k + 1.0
        carried = load * blocking
        blocking = np.where(going, carried / (k + carried), blocking)
    return np.where(loads >= servers, 1.0, blocking / (1.0 - load / servers * (1.0 - blocking)))


def late_shares(servers: int, rates: Floats, service: float, wait: float, stretch: float = 1.0) -> Floats:
    """P(wait > t) at many rates, as `queueing.late_share` has it (F17, F19, F29).

    Args:
        servers: c ≥ 1.
        rates: float64[n], arrivals/s.
        service: mean seconds of service.
        wait: t, seconds.
        stretch: f of `queueing.variability`, > 0.

    >>> late_shares(32, np.array([1.5, 1.7, 2.0, 2.3, 2.5]), 12.25, 0.5).round(4).tolist()
    [0.0015, 0.0097, 0.0759, 0.3273, 0.6943]
    """
    spare = np.maximum(servers / service - rates, 0.0)
    return erlang_c(servers, rates * service) * np.exp(-spare * wait / stretch)
