"""A history that is read piece by piece: weeks of ticks are too many to be in memory at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol

import numpy as np

from capwatch.drift.layout import MINUTE, Layout
from capwatch.drift.ticks import HOUR, Ticks
from capwatch.record import Ints

PIECE: Final = 6 * HOUR
"""Ticks that are read at once."""
BLOCK: Final = HOUR // 2
"""Ticks of a half hour: nothing that is learnt is finer, but for what runs by the clock."""


class History(Protocol):
    """Where ticks come from when they are wanted; `Ticks` themselves are one."""

    def between(self, first: int, last: int) -> Ticks:
        """The cells of ticks first ≤ tick < last."""


def pieces(history: History, first: int, last: int) -> Iterator[Ticks]:
    """All ticks of a span, some whole hours at a time."""
    begin = first
    while begin < last:
        end = min(last, (begin // PIECE + 1) * PIECE)
        yield history.between(begin, end)
        begin = end


def coarse(history: History, first: int, last: int, layout: Layout) -> Ticks:
    """The same sums by half hours: what `capwatch.drift.reference.learn` makes of them is what it makes of the ticks.

    A cell goes to a tick of its half hour that lies in the same slot; those of slots that run by the clock stay.
    """
    place = _places(layout)
    parts = []
    for piece in pieces(history, first, last):
        slot = layout.slots(piece)
        moved = piece.tick // BLOCK * BLOCK + place[slot, piece.tick // BLOCK % 2]
        tick = np.where(layout.clocked[slot], piece.tick, moved)
        parts.append(Ticks.merge([replace(piece, tick=tick)]))
    return Ticks.join(parts)


def _places(layout: Layout) -> Ints:
    """int[S, 2]: by slot and half of the hour, a tick of the half hour, counted from its begin, that is the slot's."""
    free = np.ones((len(layout.owners), 60), np.bool_)
    for slot, minute in layout.minutes:
        free[slot, minute] = False
    by_half = free.reshape(len(free), 2, 30)
    last = 29 - by_half[:, :, ::-1].argmax(axis=2)
    return np.asarray(last * MINUTE + MINUTE - 1)
