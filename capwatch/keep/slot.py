"""One slot of the history as a value: rows by names, their sums, their sketches; its bytes, and the merge of several.

The bytes tell all about themselves (names and columns are among them), so that old slots outlive names that go and
columns that come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.keep import codec
from capwatch.ledger import Closed
from capwatch.record import Floats, Ints
from capwatch.sketch import CELL_BITS, Cells, gather

FINENESS: Final = 2.0**20
"""Sums are kept to the nearest 1/2^20, about 1 µs or 1 µ-replica-second, as finely as logs tell times: a third of the
bytes of a float. Counts and tokens are exact, and so is adding up what is kept."""

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """What one slot of ``span`` seconds from ``at`` (s, epoch) holds."""

    at: int
    span: int
    names: list[Names]
    """Who each row is about, unique; the axes are the table's, for rollups tenant, route, model, pool and class."""
    values: Floats
    """float64[rows, columns]."""
    cells: Cells
    """Sketches: the series is row << bits | measure, with as many bits for the measure as the table says."""


def made(closed: Closed, names: Sequence[Names], bits: int, span: int) -> Slot:
    """What is kept of a closed slot; ``names`` has one for each of its keys, and rows of equal names become one.

    ``bits`` is the width of the measure in the series of the cells.
    """
    keys, counts = closed.cells.arrays()
    rows = np.searchsorted(closed.sums.keys, keys >> bits + CELL_BITS)
    values = np.rint(closed.sums.values * FINENESS) / FINENESS
    part = Slot(closed.slot * span, span, list(names), values, Cells(_moved(keys, rows, bits), counts))
    return merged([part], bits, part.at, span)


def merged(slots: Sequence[Slot], bits: int, at: int, span: int) -> Slot:
    """All of the slots as one, names in order. Exact: its sums are theirs, and its sketches those of all values."""
    names = sorted({name for slot in slots for name in slot.names})
    order = {name: row for row, name in enumerate(names)}
    places = [np.array([order[name] for name in slot.names], np.int64) for slot in slots]
    _, values = gather(np.concatenate(places), np.concatenate([slot.values for slot in slots]))
    cells = Cells()
    for place, slot in zip(places, slots, strict=True):
        keys, counts = slot.cells.arrays()
        cells.add(_moved(keys, place[keys >> bits + CELL_BITS], bits), counts)
    return Slot(at, span, names, values, cells)


def _moved(keys: Ints, rows: Ints, bits: int) -> Ints:
    """Cell keys with other rows."""
    shift = bits + CELL_BITS
    return rows << shift | keys & ((1 << shift) - 1)


def pack(slot: Slot, columns: Sequence[str]) -> bytes:
    """The bytes of a slot whose values have these columns."""
    texts = {text: code for code, text in enumerate(sorted({text for name in slot.names for text in name}))}
    codes = np.array([[texts[text] for text in name] for name in slot.names], np.int64)
    return codec.pack([list(columns), list(texts), codes, slot.values, *slot.cells.arrays()])


def unpack(at: int, span: int, data: object, columns: Sequence[str]) -> Slot:
    """The slot behind bytes, its values by these columns; 0 where it was written before a column was there.

    Raises:
        DamagedError: the bytes are not what was written.
    """
    told, texts, codes, kept, keys, counts = codec.unpack(data)
    values = np.zeros((len(kept), len(columns)))
    for place, column in enumerate(columns):
        if column in told:
            values[:, place] = kept[:, told.index(column)]
    return Slot(at, span, [tuple(texts[code] for code in row) for row in codes.tolist()], values, Cells(keys, counts))
