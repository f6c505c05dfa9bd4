"""Durations of Go and Rust programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect.duration import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1m4s", 64.0),
        ("2h0m1s", 7201.0),
        ("4.81s", 4.81),
        ("812.3ms", 0.8123),
        ("210.4µs", 0.0002104),
        ("61.204μs", 0.000061204),
        ("450ns", 4.5e-7),
        ("62.5s", 62.5),
        ("0s", 0.0),
        ("1.84290123", None),
        ("-1s", None),
        ("", None),
        ("5 s", None),
        ("5sx", None),
    ],
)
def test_a_printed_duration(text: str, seconds: float | None) -> None:
    """Units put together, both letters for micro, and nothing that is no duration."""
    assert duration(text) == (None if seconds is None else pytest.approx(seconds))


@given(st.integers(0, 10**12))
def test_nanoseconds_are_kept(nanoseconds: int) -> None:
    """Rust prints all nine decimals: none is lost."""
    assert duration(f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09}s") == pytest.approx(nanoseconds / 1e9, abs=1e-9)
