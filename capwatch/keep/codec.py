"""Bytes of a state: msgpack with compact number arrays, compressed, with a checksum. No pickle: nothing executes."""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import numpy as np
import zstandard
from numpy.typing import NDArray
from xxhash import xxh3_64_digest

LEVEL: Final = 3
"""zstd's default: 1 ms for a commit of 1,000 requests; higher levels save a tenth for several times the work."""
_ARRAY: Final = 1
_KINDS: Final = "iDfF"
"""Integers as they are; ascending integers by their differences; floats; floats that are whole numbers."""
_WIDTHS: Final = (np.uint8, np.uint16, np.uint32, np.int64)
_HEAD: Final = struct.Struct("<BBBqII")
"""kind, width, dimensions, offset, and up to two sizes."""


class Damaged(Exception):
    """Bytes that are not what was written."""


def pack(value: object) -> bytes:
    """Plain builtins, structs and int64 or float64 arrays of one or two dimensions, as compressed bytes.

    >>> unpack(pack({"a": np.array([3.0, 5.0])}))["a"].tolist()
    [3.0, 5.0]
    """
    body = zstandard.ZstdCompressor(level=LEVEL).compress(_ENCODER.encode(value))
    return xxh3_64_digest(body) + body


def unpack(data: bytes) -> Any:  # what was packed is known to the caller
    """What `pack` was given; tuples come back as lists.

    Raises:
        Damaged: the bytes are not those that were written.
    """
    if xxh3_64_digest(data[8:]) != data[:8]:
        raise Damaged("checksum does not match")
    try:
        return _DECODER.decode(zstandard.ZstdDecompressor().decompress(data[8:]))
    except (zstandard.ZstdError, msgspec.DecodeError, ValueError) as error:
        raise Damaged(str(error)) from None


def _encode(value: object) -> msgspec.msgpack.Ext:
    if isinstance(value, np.integer | np.floating):
        value = np.asarray(value)[None]
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a state holds no {type(value).__name__}")
    kind, numbers, offset = _plain(value)
    width = 0
    if kind != "f":
        most = int(numbers.max(initial=0))
        low = int(numbers.min(initial=0)) < 0
        width = 3 if low or most >= 1 << 32 else 2 if most >= 1 << 16 else 1 if most >= 1 << 8 else 0
        numbers = numbers.astype(_WIDTHS[width])
    sizes = (*value.shape, 0)[:2]
    head = _HEAD.pack(_KINDS.index(kind), width, value.ndim, offset, *sizes)
    return msgspec.msgpack.Ext(_ARRAY, head + np.ascontiguousarray(numbers).tobytes())


def _plain(value: NDArray[Any]) -> tuple[str, NDArray[Any], int]:
    if value.dtype.kind == "f":
        whole = bool(np.all((value >= 0) & (value < 2**53) & (value == np.floor(value))))
        return ("F", value.astype(np.int64), 0) if whole else ("f", value.astype(np.float64), 0)
    value = value.astype(np.int64)
    if value.ndim == 1 and len(value) > 1:
        steps = np.diff(value)
        if (steps >= 0).all():
            return "D", np.concatenate([[0], steps]), int(value[0])
    return "i", value, 0


def _decode(code: int, data: memoryview) -> NDArray[Any]:
    if code != _ARRAY:
        raise ValueError("unknown extension")
    kind, width, dimensions, offset, *sizes = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if _KINDS[kind] == "f":
        numbers: NDArray[Any] = np.frombuffer(body, np.float64).copy()
    else:
        numbers = np.frombuffer(body, _WIDTHS[width]).astype(np.int64)
    if _KINDS[kind] == "D":
        numbers = np.cumsum(numbers) + offset
    elif _KINDS[kind] == "F":
        numbers = numbers.astype(np.float64)
    return numbers.reshape(sizes[:dimensions])


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encode)
_DECODER: Final = msgspec.msgpack.Decoder(ext_hook=_decode, strict=False)
