"""The targets of the fuzzer run without it, on nothing and on a few bytes of everything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=20, deadline=None)
@given(data=st.binary(max_size=80))
def test_a_target_takes_any_bytes(name: str, data: bytes) -> None:
    """What atheris does for hours begins without an error."""
    TARGETS[name](data)
