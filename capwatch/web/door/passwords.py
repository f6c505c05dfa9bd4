"""Who a client is, by user and password (RFC 7617), against bcrypt hashes.

Promises: a client that has been recognised once is recognised again without any work, whatever others do. Work for the
others is done one at a time, for a bounded number that wait. A user who does not exist takes as long as one who does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from threading import BoundedSemaphore, Lock
from typing import Final

import bcrypt

MOST_BYTES: Final = 72
"""Bytes of a password that bcrypt looks at; the rest makes no difference, in any of its implementations."""
MOST_KNOWN: Final = 1000
"""Recognised pairs that are remembered, 32 bytes each; more than there are users of an exporter."""
MOST_WAITING: Final = 8
"""Clients whose passwords are being checked; at the usual cost of 10 the last one waits half a second."""


class BusyError(Exception):
    """Too many passwords are being checked already."""


def credentials(header: str | None) -> tuple[str, bytes] | None:
    """User and password of an Authorization header; None where it has none.

    >>> credentials("Basic YWxpY2U6YTpi"), credentials("Bearer x")
    (('alice', b'a:b'), None)
    """
    scheme, _, coded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(coded.strip(" "), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return (user.decode(errors="surrogateescape"), password) if colon else None


class Passwords:
    """Remembers whom it has recognised. Called from many threads at once."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._known: dict[bytes, None] = {}  # the longest unused first
        self._lock = Lock()
        self._places = BoundedSemaphore(MOST_WAITING)
        self._work = Lock()

    def fit(self, users: Mapping[str, str], user: str, password: bytes) -> bool:
        """Whether this is the password of this user.

        Args:
            users: hashes by user, at least one.
            user: who it claims to be.
            password: as it was sent.

        Raises:
            BusyError: it cannot be said now.
        """
        hashed = (users[user] if user in users else self._stand_in(users, user)).encode()
        pair = self._digest(user.encode(errors="surrogateescape"), hashed, password)
        if self._is_known(pair):
            return True
        if not self._places.acquire(blocking=False):
            raise BusyError
        try:
            with self._work:
                fits = bcrypt.checkpw(password[:MOST_BYTES], hashed) and user in users
        finally:
            self._places.release()
        if fits:
            self._remember(pair)
        return fits

    def _stand_in(self, users: Mapping[str, str], user: str) -> str:
        """A hash for one who does not exist, always the same for one name: hashes of other costs take other times."""
        drawn = int.from_bytes(self._digest(user.encode(errors="surrogateescape")))
        return list(users.values())[drawn % len(users)]

    def _digest(self, *parts: bytes) -> bytes:
        """Stands for texts that must not lie in memory for long; each has its length before it."""
        told = b"".join(len(part).to_bytes(8) + part for part in parts)
        return hmac.digest(self._secret, told, hashlib.sha256)

    def _is_known(self, pair: bytes) -> bool:
        with self._lock:
            if pair not in self._known:
                return False
            self._known[pair] = self._known.pop(pair)
            return True

    def _remember(self, pair: bytes) -> None:
        with self._lock:
            self._known[pair] = None
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
