"""Sums by key, slots of them that are complete, and whoever follows those as they close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from capwatch.record import Bools, Floats, Ints
from capwatch.sketch import Cells

NO_KEYS: Ints = np.empty(0, np.int64)


@dataclass(slots=True)
class Sums:
    """The rows of one table: ``keys`` ascending, ``values[len(keys), columns]``."""

    columns: int
    keys: Ints = field(default_factory=lambda: NO_KEYS)
    values: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.empty((0, self.columns))

    def add(self, keys: Ints, values: Floats) -> None:
        """Add increments, keys ascending and unique. Arrays read earlier stay as they were."""
        if not len(self.keys):
            self.keys, self.values = keys.copy(), values.copy()  # they may be parts of larger arrays
            return
        place = np.searchsorted(self.keys, keys)
        known = np.zeros(len(keys), np.bool_)
        inside = place < len(self.keys)
        known[inside] = self.keys[place[inside]] == keys[inside]
        summed = self.values.copy()
        summed[place[known]] += values[known]
        if known.all():
            self.values = summed
            return
        fresh = ~known
        self.keys = np.insert(self.keys, place[fresh], keys[fresh])
        self.values = np.insert(summed, place[fresh], values[fresh], axis=0)

    def put(self, keys: Ints, values: Floats) -> None:
        """Replace rows, keys ascending and unique; a row of NaN goes."""
        fresh = keys[~np.isin(keys, self.keys)]
        self.add(fresh, np.zeros((len(fresh), self.columns)))
        self.values = self.values.copy()
        self.values[np.searchsorted(self.keys, keys)] = values
        self.keep(np.logical_not(np.isnan(self.values)).max(axis=1, initial=False))

    def keep(self, rows: Bools) -> None:
        """Let the other rows go."""
        self.keys, self.values = self.keys[rows], self.values[rows]


@dataclass(frozen=True, slots=True)
class Closed:
    """A slot of a table that is complete: its sums, and the cells of the sketch that rolls up with it."""

    table: str
    slot: int
    sums: Sums
    cells: Cells


class Follower(Protocol):
    """Looks at the slots of a table as they close, in order, and remembers what it likes. Plain values, by part."""

    name: str
    """Its own."""
    table: str
    """The table that it follows."""

    def close(self, slot: int, sums: Sums) -> None:
        """Take a slot that has closed; one without any row never does."""

    def save(self) -> Mapping[str, Any]:
        """Everything by part, so that what did not change is equal to what it was."""

    def load(self, parts: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
