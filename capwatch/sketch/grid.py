"""The grid: which bucket a value falls into, where a bucket ends, and which value stands for it.

Promise: for values in (2^-32, 2^(2047/64)], about 2.3e-10 to 4.2e9, `middle(index(v))` is within 0.55 % of v, and
`index` is exact at every edge. Zero is kept apart and exact. Positive values outside that range count in the outermost
buckets.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PER_OCTAVE = 64  # the smallest power of two whose half bucket, (2^(1/64) - 1)/(2^(1/64) + 1) = 0.542 %, is below 0.55 %
SCHEMA = 6  # what a Prometheus native histogram calls 2^6 buckets per octave
LOWEST = -2047  # with ZERO below and HIGHEST above, a bucket takes exactly 12 bits of a cell's key
HIGHEST = 2047
ZERO = LOWEST - 1  # the bucket of exact zero; its place below LOWEST keeps the buckets of a series in order of value


def _constant(table: Floats) -> Floats:
    table.flags.writeable = False
    return table


# One row per bucket, ZERO first. Python's own power, so that an edge is the very number that `2.0 ** (k / 4)` prints.
_UPPER = _constant(np.array([0.0, *(2.0 ** (i / PER_OCTAVE) for i in range(LOWEST, HIGHEST + 1))]))
_LOWER = _constant(np.array([0.0, *(2.0 ** (i / PER_OCTAVE) for i in range(LOWEST - 1, HIGHEST))]))
# Zero's row is 2·0·0/(0 + 1) = 0.
_MIDDLE = _constant(2.0 * _LOWER * _UPPER / (_LOWER + _UPPER + (_UPPER == 0.0)))
_WHOLE = _constant(np.where(np.floor(_UPPER) - np.floor(_LOWER) == 1.0, np.floor(_UPPER), _MIDDLE))


def index(values: Floats) -> Ints:
    """The bucket of each value: i such that 2^((i-1)/64) < v <= 2^(i/64), exact at the edges; ZERO for 0.

    `values` must be finite and >= 0; this is not checked. Same shape out as in.

    >>> index(np.array([0.0, 1.0, 1.0001, 2.0, 2.0 ** 0.25])).tolist()
    [-2048, 0, 1, 64, 16]
    """
    inside = np.clip(values, _UPPER[1], _UPPER[-1])
    # Rounding to the nearest edge leaves two candidates, that edge's bucket and the next, and an error of the logarithm
    # can only matter half a bucket away from an edge, where both candidates lead to the same answer.
    row = np.rint(np.log2(inside) * PER_OCTAVE).astype(np.int64) - ZERO
    row += inside > _UPPER[row]
    return np.where(values == 0.0, ZERO, row + ZERO)


def upper(bucket: Ints) -> Floats:
    """The upper edge of each bucket, which belongs to it: exactly the double `2.0 ** (i / 64)`; 0 for ZERO.

    Buckets lie in ZERO..HIGHEST. `index(upper(i)) == i` for all of them.

    >>> upper(np.array([ZERO, 0, 16, 64])).tolist()
    [0.0, 1.0, 1.189207115002721, 2.0]
    """
    return _UPPER[bucket - ZERO]


def middle(bucket: Ints, integers: bool | Bools = False) -> Floats:
    """The value that stands for each bucket: the harmonic mean of its edges, 0.542 % from either; 0 for ZERO.

    Where `integers` is true (one flag, or an array that broadcasts against `bucket`) the values are known to be whole
    numbers, and a bucket that holds exactly one whole number is stood for by that number: exact for all up to 101
    and for most up to 180.

    >>> middle(index(np.array([3.0, 90.0])), integers=True).tolist()
    [3.0, 90.0]
    >>> middle(index(np.array([3.0]))).round(3).tolist()
    [3.002]
    """
    row = bucket - ZERO
    return np.where(integers, _WHOLE[row], _MIDDLE[row])
