"""The bytes of a state: the same value again to the last bit, or `DamagedError`."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn
from xxhash import xxh3_64_digest

from capwatch.keep.codec import DamagedError, pack, unpack

SHAPES = hn.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=9)
INTS = hn.arrays(np.int64, SHAPES)
FLOATS = hn.arrays(np.float64, SHAPES, elements=st.floats(width=64))
ROUNDED = hn.arrays(np.float64, SHAPES, elements=st.integers(0, 1 << 40).map(lambda k: k / 2**30))
ASCENDING = hn.arrays(np.int64, st.integers(0, 30)).map(np.sort)
SCALARS = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats() | st.text() | st.binary()
VALUES = st.recursive(
    SCALARS | INTS | FLOATS | ASCENDING,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.dictionaries(st.integers(-(1 << 60), 1 << 60), inner, max_size=4)
    ),
    max_leaves=12,
)
SAMPLE = {"a": [1, "two", b"three", None], 5: np.arange(40) ** 3, "c": np.array([[0.5, math.nan], [1e300, -0.0]])}


def spelled(value: object) -> object:
    """A value such that two are equal when every bit and every type of them is."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return ("dict", [(key, spelled(one)) for key, one in value.items()])
    if isinstance(value, list):
        return ("list", [spelled(one) for one in value])
    return (type(value).__name__, np.float64(value).tobytes() if isinstance(value, float) else value)


def raises_damage(data: object) -> bool:
    """Whether these bytes are refused, and in no other way."""
    with pytest.raises(DamagedError):
        unpack(data)
    return True


@given(VALUES)
def test_a_value_comes_back_to_the_last_bit(value: Any) -> None:
    """Builtins nested in any way, with int64 and float64 arrays among them."""
    assert spelled(unpack(pack(value))) == spelled(value)


@settings(max_examples=300)
@given(INTS | FLOATS | ROUNDED | ASCENDING)
def test_an_array_comes_back_to_the_last_bit(value: Any) -> None:
    """Empty, negative, huge, NaN, infinite, −0.0, denormal, of one and two dimensions."""
    assert spelled(unpack(pack(value))) == spelled(value)


@pytest.mark.parametrize(
    "numbers",
    [
        [-(1 << 63), (1 << 63) - 1],
        [(1 << 63) - 1, -(1 << 63)],
        [-(1 << 63)] * 3,
        [0, 1 << 62, -(1 << 62), 7],
    ],
)
def test_differences_may_leave_the_range(numbers: list[int]) -> None:
    """Differences of neighbours that do not fit into 64 bits wrap, and wrap back."""
    assert unpack(pack(np.array(numbers))).tolist() == numbers


@pytest.mark.parametrize("value", [2.0**53, 2.0**53 + 2, 2.0**63, 2.0**64, 5e-324, 2.0**-31, 1.7e308, math.inf])
def test_floats_at_the_border_of_whole_numbers(value: float) -> None:
    """A float that no shorter form holds stays as it is."""
    assert unpack(pack(np.array([value, 1.0]))).tolist() == [value, 1.0]


@given(hn.arrays(st.sampled_from([np.int8, np.uint8, np.int16, np.uint32, np.float32, np.float16]), SHAPES))
def test_narrow_arrays_come_back_wide(value: Any) -> None:
    """An array of narrower numbers comes back as int64 or float64 of the same values."""
    wide = value.astype(np.float64 if value.dtype.kind == "f" else np.int64)
    assert spelled(unpack(pack(value))) == spelled(wide)


@given(INTS | FLOATS)
def test_an_array_in_any_order_of_memory(value: Any) -> None:
    """A view backwards, or by columns, packs as the values that it shows."""
    assert spelled(unpack(pack(value[::-1].T))) == spelled(np.ascontiguousarray(value[::-1].T))


def test_what_comes_back_may_be_changed() -> None:
    """Arrays that were unpacked are the reader's own."""
    value = unpack(pack([np.arange(3), np.array([0.1, 0.2]), np.array([1.0, 2.0])]))
    assert [np.add(one, 1, out=one).tolist() for one in value] == [[1, 2, 3], [1.1, 1.2], [2.0, 3.0]]


def test_numbers_of_numpy_are_numbers() -> None:
    """A scalar of numpy comes back as the number it is."""
    assert spelled(unpack(pack([np.int64(-5), np.float64(0.5), np.uint8(3)]))) == spelled([-5, 0.5, 3])


@pytest.mark.parametrize(
    "value", [np.zeros(2, np.bool_), np.zeros(2, np.uint64), np.zeros((1, 1, 1)), np.array("x"), object(), 1j]
)
def test_anything_else_is_refused(value: object) -> None:
    """What would not come back as it was is a mistake of the caller."""
    with pytest.raises(TypeError):
        pack(value)


@pytest.mark.parametrize(("count", "size"), [(0, 60), (1000, 600)])
def test_small_numbers_take_few_bytes(count: int, size: int) -> None:
    """Whole floats and ascending keys do not take eight bytes each."""
    rng = np.random.default_rng(5)
    assert len(pack([np.arange(count) * 7, rng.integers(0, 9, count).astype(np.float64)])) < size


def test_every_flipped_bit_is_found() -> None:
    """Whichever bit of a value's bytes is another, they are refused."""
    data = pack(SAMPLE)
    flipped = [data[: k // 8] + bytes([data[k // 8] ^ 1 << k % 8]) + data[k // 8 + 1 :] for k in range(8 * len(data))]
    assert all(map(raises_damage, flipped))


def test_every_cut_is_found() -> None:
    """However much of the end is missing, the bytes are refused."""
    data = pack(SAMPLE)
    assert all(raises_damage(data[:length]) for length in range(len(data)))


@given(st.binary() | st.text() | st.none() | st.integers())
def test_foreign_content_is_refused(data: object) -> None:
    """Whatever else stands where bytes of ours should be, it is refused and nothing else is raised."""
    assert raises_damage(data)


@given(st.binary())
def test_a_right_checksum_over_foreign_bytes_is_not_enough(body: bytes) -> None:
    """Bytes that carry their checksum and are no value of ours are refused."""
    assert raises_damage(xxh3_64_digest(body) + body)


@pytest.mark.parametrize("code", [1, 2])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"f\1" + bytes(8),
        b"i\1" + bytes(4) + b"\1\0\0\0" + bytes(10),
        b"i\1\4\0\0\0\1\0\0\0",
        b"i\1\4\0\0\0\1\0\0\0\0\7" + bytes(8),
    ],
)
def test_an_array_that_was_never_packed_is_refused(code: int, data: bytes) -> None:
    """A checksum vouches for the bytes, not for what they say: no column, no width, a cut head, too few numbers."""
    assert raises_damage(pack(msgspec.msgpack.Ext(code, data)))
