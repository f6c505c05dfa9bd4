"""A stretch of ticks beside what the reference expects of it, as dense arrays: what evidence is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.drift.reference import LEVELS, Reference, cell
from capwatch.drift.ticks import HOUR, Ticks, added
from capwatch.record import Floats, Ints

SILENT: Final = 40.0
"""Requests expected of a slot since its last one, from which on it counts as gone and has no share."""
MOST: Final = 6 * HOUR
"""Ticks that are laid out at once."""
GAP: Final = HOUR // 6
"""Ticks without a request after which sums count half."""
NEEDED: Final = ("n", "prompt", "computed", "output", "cost", "root_cost", *LEVELS)


@dataclass(frozen=True, slots=True)
class Frame:
    """T ticks without a gap. S slots, K classes, R routes."""

    tick: Ints
    sums: dict[str, Floats]
    """float64[T, S, K] of `NEEDED`."""
    route: Floats
    """float64[T, R]: requests."""
    route_cost: Floats
    """float64[T, R]: replica-seconds."""
    share: Floats
    """float64[T, S]: expected shares of the slots."""
    joint: Floats
    """float64[T, S, K]: expected shares of slot and class together."""
    cell: Ints
    n: Floats
    """float64[T]: requests."""
    cost: Floats
    """float64[T]: replica-seconds."""
    expected: Floats
    """float64[T]: replica-seconds that the reference expects of a request."""
    usual: Floats
    """float64[T]: requests that the reference expects."""

    def __len__(self) -> int:
        return len(self.tick)


def dense(ticks: Ticks, reference: Reference, first: int, count: int, silence: Floats) -> Frame:
    """Lay out ``count`` ticks from ``first`` on.

    Args:
        ticks: all cells of these ticks.
        silence: float64[S]: requests expected of each slot since its last one; brought forward in place.
    """
    layout = reference.layout
    slots, classes, routes = len(layout.owners), len(layout.classes) + 1, len(layout.routes) + 2
    row = ticks.tick - first
    place = (row * slots + layout.slots(ticks)) * classes + layout.class_places(ticks)
    sums = {name: added(place, ticks[name], count, slots, classes) for name in NEEDED}
    road = row * routes + layout.route_places(ticks)
    by_route = [added(road, ticks[name], count, routes) for name in ("n", "cost")]
    tick = np.arange(first, first + count)
    here = cell(tick)
    rates = reference.rates(tick, np.ones((count, slots), np.bool_))
    rates = np.where(_silent(sums["n"].sum(axis=2), rates, silence), 0.0, rates)
    total = rates.sum(axis=1, keepdims=True)
    share = np.where(total > 0, rates / np.where(total > 0, total, 1.0), reference.share)
    joint = share[:, :, None] * reference.klass[here]
    expected = (joint * reference.level["cost"]).sum(axis=(1, 2)) * reference.factor[here]
    n, cost = sums["n"].sum(axis=(1, 2)), sums["cost"].sum(axis=(1, 2))
    return Frame(
        tick=tick,
        sums=sums,
        route=by_route[0],
        route_cost=by_route[1],
        share=share,
        joint=joint,
        cell=here,
        n=n,
        cost=cost,
        expected=expected,
        usual=total[:, 0],
    )


def _silent(counts: Floats, rates: Floats, silence: Floats) -> Floats:
    """Which slots are gone in which ticks; a slot is back with its first request."""
    waiting = np.where(counts > 0, 0.0, rates)
    total = silence + waiting.cumsum(axis=0)
    # What had been summed up to the last tick with a request does not count.
    since = total - np.maximum.accumulate(np.where(counts > 0, total, 0.0), axis=0)
    silence[:] = since[-1]
    return np.asarray(since - waiting > SILENT)


def split(first: int, last: int, slots: int) -> Sequence[tuple[int, int]]:
    """(first, count) of pieces whose dense arrays stay small, aligned so that the same ticks give the same pieces."""
    size = max(1, min(MOST, 200_000 // max(1, slots)))
    return [(begin, min(size, last - begin)) for begin in range(first, last, size)]


def gaps(n: Floats, idle: int) -> list[int]:
    """Rows before which sums count half: each first tick of a gap's eleventh minute; ``idle``: ticks of it before."""
    rows = np.arange(len(n))
    last = np.maximum.accumulate(np.where(n > 0, rows, -1 - idle))
    return [int(row) for row in np.flatnonzero((rows - last == GAP) & (n == 0))]
