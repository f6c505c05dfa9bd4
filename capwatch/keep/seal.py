"""Seals: what decoders remember of lines, unreadable in a state without the key that lies beside it.

An open record is a piece of somebody's log line, perhaps with a prompt in it, so a copy of the state's file must not
tell it. The key stream is SHAKE-256 of key and nonce (a sponge as a stream cipher, Bertoni et al. 2011); that the bytes
are whole is the state's own checksum to say.
"""

from __future__ import annotations

import secrets
from hashlib import shake_256
from typing import Any, Final

import numpy as np

from capwatch.keep.codec import DamagedError, pack, unpack

_NONCE: Final = 16
"""Bytes; drawn anew for each seal, so that no key stream is used twice."""


def seal(value: object, key: bytes) -> bytes:
    """Plain builtins as bytes that only ``key`` opens.

    >>> opened(seal(["a part", 1], b"key"), b"key")
    ['a part', 1]
    """
    nonce = secrets.token_bytes(_NONCE)
    return nonce + _mixed(pack(value), key, nonce)


def opened(sealed: object, key: bytes) -> Any:  # what was sealed is known to the caller
    """What was sealed; what is no seal is given back as it is.

    Raises:
        DamagedError: it was sealed with another key.
    """
    if not isinstance(sealed, bytes):
        return sealed
    if len(sealed) < _NONCE:
        raise DamagedError("no seal")
    return unpack(_mixed(sealed[_NONCE:], key, sealed[:_NONCE]))


def _mixed(data: bytes, key: bytes, nonce: bytes) -> bytes:
    stream = np.frombuffer(shake_256(key + nonce).digest(len(data)), np.uint8)
    return (np.frombuffer(data, np.uint8) ^ stream).tobytes()
