"""What the ledger keeps: tables of sums and sketches of values, whose keys pack the ids of their labels into one int.

Ids of texts come from `capwatch.ledger.names`; ids of enumerated labels are positions in a tuple.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from capwatch.record import Ints


class Axis(NamedTuple):
    """One label of a table: its name, how many ids it can have, and its values where they are enumerated."""

    name: str
    bits: int
    values: tuple[str, ...] = ()


# Ids are never used twice, so the widths bound how many names a ledger can ever give; past that a name is `other`.
TENANT = Axis("tenant", 20)
ROUTE = Axis("route", 16)
MODEL = Axis("model", 12)
POOL = Axis("pool", 12)
CLASS = Axis("class", 12)
SOURCE = Axis("source", 14)
BOUND = Axis("bound", 14)
ENGINE = Axis("engine", 20)
GPU = Axis("gpu", 12)
UUID = Axis("uuid", 16)
GPU_NAME = Axis("name", 10)
DRIVER = Axis("driver", 12)
XID = Axis("xid", 12)
_TEXTS = (TENANT, ROUTE, MODEL, POOL, CLASS, SOURCE, BOUND, ENGINE, GPU, UUID, GPU_NAME, DRIVER, XID)
WIDTHS = {axis.name: axis.bits for axis in _TEXTS}


@dataclass(frozen=True)
class Keys:
    """Packs ids, one per axis, into int64 keys that sort by the first axis first; 62 bits at most.

    >>> keys = Keys((TENANT, ROUTE))
    >>> [ids.tolist() for ids in keys.unpack(keys.pack(np.array([3]), np.array([5])))]
    [[3], [5]]
    """

    axes: tuple[Axis, ...]

    @property
    def bits(self) -> int:
        """The width of a key."""
        return sum(axis.bits for axis in self.axes)

    def pack(self, *ids: Ints | int) -> Ints:
        """The keys of these ids, broadcast against each other."""
        key: Ints = np.zeros((), np.int64)
        for axis, one in zip(self.axes, ids, strict=True):
            key = key << axis.bits | one
        return key

    def unpack(self, keys: Ints) -> tuple[Ints, ...]:
        """The ids behind keys, one array per axis."""
        ids: list[Ints] = []
        for axis in reversed(self.axes):
            ids.append(keys & ((1 << axis.bits) - 1))
            keys = keys >> axis.bits
        return tuple(reversed(ids))

    def ids(self, keys: Ints, axis: Axis) -> Ints:
        """The ids of one axis behind keys."""
        return self.unpack(keys)[self.axes.index(axis)]


@dataclass(frozen=True)
class Table(Keys):
    """Sums by key, several columns a key. Increments are never negative, so nothing shown ever falls."""

    name: str
    columns: tuple[str, ...]
    slot_s: float = 0.0
    """0: sums for life. Otherwise sums by slot of event time of this length, kept for ``slots`` of them."""
    slots: int = 0
    closes: bool = False
    """Whether a slot that ends is kept for the history, with the sketch that rolls up with the table."""
    level: bool = False
    """True for values that replace each other instead of adding up; NaN takes a value away."""
    retires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Column of the table `RETIRED` → the columns here whose sum goes there when a tenant-route pair retires."""

    def oldest(self, clock: float) -> int:
        """The first slot that is kept at this event time (s, epoch)."""
        return math.floor(clock / self.slot_s) - self.slots + 1

    def column(self, name: str) -> int:
        """The position of a column."""
        return self.columns.index(name)


@dataclass(frozen=True)
class Sketch(Keys):
    """Values by series on the sketch's grid, for life, over the last five minutes, or both."""

    name: str
    lasting: bool
    recent: bool
    native: bool = False
    """Whether it lasts only for the sake of native histograms, which a replay never shows."""
    rolls_up: str = ""
    """The table by slots that its values are kept with, in the same slots."""


RETIRED = Table((), "retired", ("requests", "tokens", "cost"))
"""What was counted under names that are gone (contract, section 5)."""
