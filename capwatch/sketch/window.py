"""The last five minutes: a ring of 30-second slices of counts or of sums, whose clock the caller turns.

A slice number is floor(event time / SLICE). The window is the current slice and the ten before it; slices ahead of the
clock wait until it reaches them.
"""

from collections.abc import Mapping

import numpy as np

from capwatch.sketch.cells import Cells, gather
from capwatch.sketch.grid import Floats, Ints

SLICE = 30  # seconds; the window then covers between 5 and 5½ minutes
SLICES = 11  # the current one, which is still filling, and ten full ones: five minutes are always covered


class Window:
    """Counts by cell over the window. The merged counts are kept running, and follow the clock when they are read.

    >>> window = Window(current=100)
    >>> window.add(100, np.array([5]), np.array([2])), window.add(89, np.array([5]), np.array([1]))
    (True, False)
    >>> len(window.running())
    1
    >>> window.advance(111)
    >>> len(window.running())
    0
    """

    def __init__(self, current: int = 0, slices: Mapping[int, tuple[Ints, Ints]] | None = None) -> None:
        """A window at slice `current`, with what `slices()` gave when it was saved; None means empty."""
        self.current = current
        self._slices: dict[int, Cells] = {}
        self._running = Cells()
        self._since = current
        """The slice up to which `_running` has followed the clock; what `_gone` held is still in it."""
        self._gone: list[Cells] = []
        for number, (keys, counts) in (slices or {}).items():
            self.add(number, keys, counts)

    def add(self, number: int, keys: Ints, counts: Ints) -> bool:
        """Add counts to a slice, keys as in `Cells.add`.

        False, and nothing is added, where the window has passed that slice.
        """
        if number <= self.current - SLICES:
            return False
        self._slices.setdefault(number, Cells()).add(keys, counts)
        if number <= self._since:
            self._running.add(keys, counts)
        return True

    def advance(self, current: int) -> None:
        """Turn the clock to slice `current`: what is then too old goes, what was ahead comes in. Never turns back."""
        self.current = max(current, self.current)
        for number in sorted(self._slices):
            if number <= self.current - SLICES:
                gone = self._slices.pop(number)
                if number <= self._since:
                    self._gone.append(gone)
        if len(self._gone) >= SLICES:  # cheaper to merge what is left than to take away so much
            self._gone, self._running, self._since = [], Cells(), -(1 << 60)

    def running(self) -> Cells:
        """The counts of the whole window, as a copy of its own (cheap, see `Cells`)."""
        for gone in self._gone:
            self._running.subtract(*gone.arrays())
        for number, cells in self._slices.items():
            if self._since < number <= self.current:
                self._running.merge(cells)
        self._gone, self._since = [], self.current
        return self._running.copy()

    def slices(self) -> dict[int, tuple[Ints, Ints]]:
        """What to save: (keys, counts) by slice number, those ahead of the clock too."""
        return {number: cells.arrays() for number, cells in sorted(self._slices.items())}


class SumWindow:
    """Sums by key over the same window, several columns a key. Merged anew when read: floats taken away leave dust.

    >>> window = SumWindow(columns=2, current=100)
    >>> window.add(100, np.array([5, 5]), np.array([[0.5, 1.0], [0.25, 1.0]]))
    True
    >>> [column.tolist() for column in window.total()]
    [[5], [[0.75, 2.0]]]
    """

    def __init__(self, columns: int, current: int = 0, slices: Mapping[int, tuple[Ints, Floats]] | None = None) -> None:
        """A window at slice `current`, with what `slices()` gave when it was saved; None means empty."""
        self.current = current
        self._slices: dict[int, tuple[Ints, Floats]] = {}
        self._empty = (np.empty(0, np.int64), np.empty((0, columns)))
        for number, (keys, values) in (slices or {}).items():
            self.add(number, keys, values)

    def add(self, number: int, keys: Ints, values: Floats) -> bool:
        """Add values[n, columns] to keys[n] >= 0 of a slice; keys in any order, repeats allowed.

        False, and nothing is added, where the window has passed that slice.
        """
        if number <= self.current - SLICES:
            return False
        self._slices[number] = self._sum([self._slices.get(number, self._empty), (keys, values)])
        return True

    def advance(self, current: int) -> None:
        """Turn the clock to slice `current`: what is then too old goes. Never turns back."""
        self.current = max(current, self.current)
        self._slices = {n: kept for n, kept in self._slices.items() if n > self.current - SLICES}

    def total(self) -> tuple[Ints, Floats]:
        """(keys[m] ascending, sums[m, columns]) of the whole window; the same to the last bit after a restore."""
        reached = [self._slices[number] for number in sorted(self._slices) if number <= self.current]
        return self._sum([self._empty, *reached])

    def slices(self) -> dict[int, tuple[Ints, Floats]]:
        """What to save: (keys, sums) by slice number, those ahead of the clock too."""
        return dict(sorted(self._slices.items()))

    @staticmethod
    def _sum(parts: list[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
        return gather(np.concatenate([keys for keys, _ in parts]), np.concatenate([values for _, values in parts]))
