"""Seals open with their key alone, and tell nothing without it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.keep.codec import DamagedError, unpack
from capwatch.keep.seal import opened, seal

PLAIN = st.recursive(st.none() | st.integers(-(2**60), 2**60) | st.text(), lambda inner: st.lists(inner, max_size=4))


@given(PLAIN, st.binary(max_size=40))
def test_what_is_sealed_is_opened(value: object, key: bytes) -> None:
    """Any plain value, under any key."""
    assert opened(seal(value, key), key) == value


def test_another_key_opens_nothing() -> None:
    """It is said, and nothing half right comes out."""
    with pytest.raises(DamagedError):
        opened(seal(["a", "part"], b"one key"), b"another")


def test_a_seal_tells_nothing() -> None:
    """Neither as it is nor unpacked; twice the same value gives two seals."""
    one, two = (seal(["SYNTHETIC-PROMPT"], b"key") for _ in range(2))
    assert (one == two, b"PROMPT" in one + two) == (False, False)
    with pytest.raises(DamagedError):
        unpack(one[16:])


def test_what_is_no_seal_stays_as_it_is() -> None:
    """States of earlier versions hold plain values."""
    assert opened([None, None], b"key") == [None, None]
