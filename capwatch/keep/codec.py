"""Bytes of a state: msgpack with compact number arrays, compressed, with a checksum. No pickle: nothing executes.

Exact: `unpack` gives back what `pack` was given to the last bit (NaN and −0.0 too), or it raises `DamagedError`.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import numpy as np
import zstandard
from numpy.typing import NDArray
from xxhash import xxh3_64_digest

LEVEL: Final = 3
"""zstd's default: 1 ms for a commit of 1,000 requests; level 9 saves 4 % for three times the work."""
_ARRAY: Final = 1
_SHAPE: Final = struct.Struct("<cBII")
"""`i` or `f`, dimensions, rows, columns."""
_COLUMN: Final = struct.Struct("<BBq")
"""Kind, bytes a number, and what the kind adds to every number (`FIXED`: the bits behind the point)."""
_PLAIN, _STEPS, _FLOAT, _FIXED = range(4)
"""Integers; integers by their differences; floats; floats ≥ 0 that are whole multiples of 2^-bits, as integers."""
_FINENESS: Final = (0, 20, 30)
"""Bits behind the point that are tried: counts, and seconds where they were rounded to about 1 µs or 1 ns."""
_EXACT: Final = 2.0**53
"""Every integer below is a float."""


class DamagedError(Exception):
    """Bytes that are not what was written."""


def pack(value: object) -> bytes:
    """Builtins, structs, dataclasses and arrays of integers or floats, of one or two dimensions, as compressed bytes.

    Raises:
        TypeError: something else is among them.

    >>> unpack(pack({"a": np.array([3.0, 5.0])}))["a"].tolist()
    [3.0, 5.0]
    """
    body = zstandard.ZstdCompressor(level=LEVEL).compress(_ENCODER.encode(value))
    return xxh3_64_digest(body) + body


def unpack(data: object) -> Any:  # what was packed is known to the caller
    """What `pack` was given, as plain builtins and int64 or float64 arrays; tuples come back as lists.

    Raises:
        DamagedError: these are not bytes that `pack` has made.
    """
    if not isinstance(data, bytes) or xxh3_64_digest(data[8:]) != data[:8]:
        raise DamagedError("a checksum does not match")
    try:
        return _DECODER.decode(zstandard.ZstdDecompressor().decompress(data[8:]))
    except (zstandard.ZstdError, msgspec.MsgspecError, struct.error, ValueError, LookupError, ArithmeticError) as error:
        raise DamagedError(str(error)) from None


def _encode(value: object) -> object:
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    if not isinstance(value, np.ndarray) or value.ndim not in (1, 2) or value.dtype.kind not in "iuf":
        raise TypeError(f"a state holds no {type(value).__name__} like {value!r:.60}")
    wide = value.astype(np.float64 if value.dtype.kind == "f" else np.int64, casting="safe")
    shape = _SHAPE.pack(wide.dtype.kind.encode(), value.ndim, *(*value.shape, 1)[:2])
    columns = np.ascontiguousarray(wide.T if wide.ndim == 2 else wide[None])
    return msgspec.msgpack.Ext(_ARRAY, b"".join([shape, *map(_column, columns)]))


def _column(column: NDArray[Any]) -> bytes:
    """One column: the narrowest numbers that hold it, first all their lowest bytes, then the next, as zstd likes it.

    Floats stay as they are, since zstd finds the repeated ones better whole.
    """
    kind, added, numbers = _floats(column) if column.dtype.kind == "f" else _integers(column)
    if kind == _FLOAT:
        return _COLUMN.pack(kind, 8, added) + column.tobytes()
    width = _width(int(numbers.max(initial=0)))
    return _COLUMN.pack(kind, width, added) + numbers.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes()


def _integers(column: NDArray[np.int64]) -> tuple[int, int, NDArray[np.uint64]]:
    """Kind, what to add, and numbers ≥ 0; differences wrap around, and so does adding them up."""
    if len(column) > 1:
        steps = column[1:] - column[:-1]
        if steps.min() >= 0:
            return _STEPS, int(column[0]), np.concatenate([[0], steps]).view(np.uint64)
    least = int(column.min()) if len(column) else 0
    return _PLAIN, least, (column - least).view(np.uint64)


def _floats(column: NDArray[np.float64]) -> tuple[int, int, NDArray[np.uint64]]:
    if not np.signbit(column).any() and column.max(initial=0.0) < _EXACT:  # a NaN is not below
        for bits in _FINENESS:
            scaled = column * 2.0**bits
            if scaled.max(initial=0.0) < _EXACT and np.array_equal(scaled, np.floor(scaled)):
                return _FIXED, bits, scaled.astype(np.uint64)
    return _FLOAT, 0, column.view(np.uint64)


def _width(most: int) -> int:
    """Bytes for numbers up to ``most``."""
    return max((most.bit_length() + 7) // 8, 1)


def _decode(code: int, data: memoryview) -> NDArray[Any]:
    if code != _ARRAY:
        raise ValueError("unknown extension")
    sort, dimensions, rows, count = _SHAPE.unpack_from(data)
    columns = []
    at = _SHAPE.size
    for _ in range(count):
        kind, width, added = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        part = np.frombuffer(data, np.uint8, rows * width, at)
        at += rows * width
        columns.append(part.view(np.float64).copy() if kind == _FLOAT else _restored(kind, added, part, width))
    if dimensions == 1:
        return columns[0]
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0), np.float64 if sort == b"f" else np.int64)


def _restored(kind: int, added: int, planes: NDArray[np.uint8], width: int) -> NDArray[Any]:
    whole = np.zeros((len(planes) // width, 8), np.uint8)
    whole[:, :width] = planes.reshape(width, -1).T
    numbers = whole.view(np.uint64)[:, 0]
    if kind == _FIXED:
        return numbers.astype(np.float64) * 2.0**-added
    if kind == _STEPS:
        numbers = np.cumsum(numbers)
    return numbers.view(np.int64) + np.int64(added)


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encode)
_DECODER: Final = msgspec.msgpack.Decoder(ext_hook=_decode)
