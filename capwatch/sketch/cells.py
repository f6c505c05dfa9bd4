"""A sparse table of counts: how many values of which series fell into which bucket."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from capwatch.sketch.grid import ZERO, Ints

CELL_BITS = 12  # ZERO..HIGHEST are 4096 buckets
_BUCKET_MASK = (1 << CELL_BITS) - 1
_YOUNG_SHARE = 4  # fold when the young tier exceeds a quarter of the table: a young cell pays for moving four old ones
_YOUNG_LEAST = 4096  # below this many cells a fold costs about as much as the call itself

_NOTHING: Ints = np.empty(0, np.int64)
_NOTHING.flags.writeable = False

_Amount = TypeVar("_Amount", np.int64, np.float64)


def pack(series: Ints, bucket: Ints) -> Ints:
    """The cell keys of (series, bucket): series in 0..2^50-1 above, bucket in ZERO..HIGHEST in the low 12 bits.

    Keys sort by series, then by value. The ranges are not checked.

    >>> pack(np.array([0, 1]), np.array([ZERO, 0])).tolist()
    [0, 6144]
    """
    return series << CELL_BITS | (bucket - ZERO)


def series_of(keys: Ints) -> Ints:
    """The series of each cell key.

    >>> series_of(pack(np.array([7]), np.array([-5]))).tolist()
    [7]
    """
    return keys >> CELL_BITS


def bucket_of(keys: Ints) -> Ints:
    """The bucket of each cell key.

    >>> bucket_of(pack(np.array([7]), np.array([-5]))).tolist()
    [-5]
    """
    return (keys & _BUCKET_MASK) + ZERO


def count(keys: Ints) -> tuple[Ints, Ints]:
    """How often each key occurs: (keys sorted and unique, counts >= 1).

    >>> [column.tolist() for column in count(np.array([5, 3, 5]))]
    [[3, 5], [1, 2]]
    """
    ordered = np.sort(keys)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(keys)])
    return ordered[starts], np.diff(starts, append=len(keys))


def gather(keys: Ints, amounts: npt.NDArray[_Amount]) -> tuple[Ints, npt.NDArray[_Amount]]:
    """Sum the amounts (one row per key) of equal keys: (keys sorted and unique, sums); keys >= 0 in any order.

    Equal keys stay in the order given, so that the same input always gives the same float.

    >>> [column.tolist() for column in gather(np.array([5, 3, 5]), np.array([1.0, 2.0, 4.0]))]
    [[3, 5], [2.0, 5.0]]
    """
    order = np.argsort(keys, kind="stable")  # merges sorted runs, which is what the callers have
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(keys)])
    return ordered[starts], np.add.reduceat(amounts[order], starts, axis=0)


class Cells:
    """Counts >= 1 by cell key. Additive: the merge of parts is the whole, and what was added can be subtracted.

    What is added waits in a young tier until that is worth folding into the sorted table, or until something is read.
    The folded arrays are never changed in place: `copy` is cheap, and a copy may be read by another thread.

    >>> cells = Cells(np.array([9, 4, 9]), np.array([1, 1, 2]))
    >>> cells.add(np.array([4]), np.array([5]))
    >>> [column.tolist() for column in cells.arrays()]
    [[4, 9], [6, 3]]
    """

    def __init__(self, keys: Ints = _NOTHING, counts: Ints = _NOTHING) -> None:
        self._keys, self._counts = _NOTHING, _NOTHING
        self._young: list[tuple[Ints, Ints]] = []
        self._pending = 0  # cells in the young tier
        self.add(keys, counts)

    def add(self, keys: Ints, counts: Ints) -> None:
        """Add counts to cells; keys in any order, repeats allowed.

        Raises ValueError for a count below 1 and where there is not one count per key.
        """
        if keys.shape != counts.shape:
            raise ValueError(f"{keys.shape} keys do not go with {counts.shape} counts")
        if np.any(counts < 1):
            raise ValueError("a cell's count is at least 1")
        self._young.append((keys.copy(), counts.copy()))  # the caller may reuse its arrays
        self._pending += len(keys)
        if self._pending > max(_YOUNG_LEAST, len(self._keys) // _YOUNG_SHARE):
            self._fold()

    def subtract(self, keys: Ints, counts: Ints) -> None:
        """Take counts away again; cells that reach 0 vanish. Keys in any order, repeats allowed.

        Raises ValueError, and changes nothing, where that is more than the table holds.
        """
        gone, amounts = gather(keys, counts)
        held, left = self.arrays()
        left = left.copy()
        place = np.searchsorted(held, gone)
        if len(gone) and (place[-1] == len(held) or np.any(held[place] != gone) or np.any(left[place] < amounts)):
            raise ValueError("more is subtracted from a cell than it holds")
        left[place] -= amounts
        self._keep(held, left, left > 0)

    def merge(self, other: "Cells") -> None:
        """Add all of the other table; the other stays as it is."""
        self.add(*other.arrays())

    def drop(self, series: Ints) -> None:
        """Remove all cells of these series; unknown ones are no error."""
        keys, counts = self.arrays()
        self._keep(keys, counts, ~np.isin(series_of(keys), series))

    def arrays(self) -> tuple[Ints, Ints]:
        """(keys sorted and unique, counts >= 1), read-only; later changes do not touch them."""
        self._fold()
        return self._keys, self._counts

    def copy(self) -> "Cells":
        """An independent table that shares what is already folded."""
        twin = Cells()
        twin._keys, twin._counts = self._keys, self._counts
        twin._young, twin._pending = self._young.copy(), self._pending
        return twin

    def __len__(self) -> int:
        """The number of cells that are not 0."""
        return len(self.arrays()[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cells):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self.arrays(), other.arrays(), strict=True))

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _fold(self) -> None:
        if not self._young:
            return
        keys = np.concatenate([self._keys, *(young for young, _ in self._young)])
        counts = np.concatenate([self._counts, *(young for _, young in self._young)])
        self._young, self._pending = [], 0
        self._settle(*gather(keys, counts))

    def _keep(self, keys: Ints, counts: Ints, kept: npt.NDArray[np.bool_]) -> None:
        self._settle(keys[kept], counts[kept])

    def _settle(self, keys: Ints, counts: Ints) -> None:
        keys.flags.writeable = counts.flags.writeable = False
        self._keys, self._counts = keys, counts
