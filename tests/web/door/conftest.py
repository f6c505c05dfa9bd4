"""One authority for all tests of the door: keys take time."""

from __future__ import annotations

import shutil

import pytest

from .authority import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority with a server's pair."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    made = Authority(tmp_path_factory.mktemp("authority"))
    made.server()
    return made
