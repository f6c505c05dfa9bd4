"""Each seeded log is replayed once for all tests that look at its page."""

from __future__ import annotations

import pytest

from .logs import SETUPS, Replayed, replayed


@pytest.fixture(scope="session", params=SETUPS)
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """A log that was replayed."""
    return replayed(SETUPS[request.param], tmp_path_factory.mktemp(request.param))
