"""How bursty arrivals are: Ca², the squared coefficient of variation of the gaps between them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from capwatch.ledger import POOL, Gathering, Totals
from capwatch.load.flight import Seconds
from capwatch.load.tables import ARRIVED, MILLISECOND, STRETCHES
from capwatch.record import Floats, Ints
from capwatch.sketch import SLICE

LOOK_S: Final = 600
"""Gaps of ten minutes, a third of them: about 1,400 at 8 requests/s, so that Ca² is known to 5-10 %."""
FEWEST: Final = 30
"""Gaps below which Ca² is not told."""
DENSE_S: Final = 0.01
"""A mean gap below it is not told well by milliseconds; counts of a second hold a hundred arrivals then."""
_SPAN: Final = 1000 * SLICE


def book(into: Gathering, pools: Ints, started: Floats) -> None:
    """Book arrivals of ``pools[n]`` at ``started[n]`` (s, epoch); NaN is passed over."""
    slots = np.floor(started / SLICE)
    kept = ~np.isnan(started) & (slots % STRETCHES == 0)
    slots, started = slots[kept].astype(np.int64), started[kept]
    milliseconds = np.floor((started - slots * SLICE) * 1000).astype(np.int64).clip(0, _SPAN - 1)
    into.add_slots(ARRIVED, slots, ARRIVED.pack(pools[kept], milliseconds), np.ones(len(slots)))


def cv2(totals: Totals, pool: int, until: float, by_second: Seconds) -> float | None:
    """Ca² of a pool over the ten minutes before ``until`` (s, epoch); None where too little came.

    From the gaps between arrivals, within stretches of 30 s. Where the log has whole seconds only, or arrivals are
    denser than its milliseconds tell, the variance-to-mean ratio of counts in 1 s, which has the same limit.
    """
    begin = until - LOOK_S
    gaps, whole = _gaps(totals, pool, begin, until)
    if len(gaps) < FEWEST:
        return None
    mean = float(gaps.mean())
    if whole or mean < DENSE_S:
        return _dispersion(by_second, begin, until)
    return float(gaps.var()) / mean**2


def _gaps(totals: Totals, pool: int, begin: float, until: float) -> tuple[Floats, bool]:
    """(gaps in s between neighbours in the same stretch, whether all arrivals are at whole seconds)."""
    found: list[Floats] = []
    whole = True
    for slot, sums in sorted(totals.slots(ARRIVED).items()):
        if slot * SLICE < begin or (slot + 1) * SLICE > until:
            continue
        mine = ARRIVED.ids(sums.keys, POOL) == pool
        at = np.repeat(ARRIVED.ids(sums.keys[mine], MILLISECOND), sums.values[mine, 0].astype(np.int64))
        whole = whole and not (at % 1000).any()
        found.append(np.diff(at) / 1000)
    return np.concatenate([np.empty(0), *found]), whole


def _dispersion(by_second: Seconds, begin: float, until: float) -> float | None:
    """Variance over mean of the arrivals in each second; seconds without any count as 0."""
    first, end = math.ceil(max(begin, by_second.first_arrival())), math.floor(until)
    counts = np.zeros(max(0, end - first))
    rows = (by_second.second >= first) & (by_second.second < end)
    np.add.at(counts, by_second.second[rows] - first, by_second.arrivals[rows])
    mean = float(counts.mean()) if len(counts) else 0.0
    return float(counts.var()) / mean if len(counts) >= FEWEST and mean else None
