"""One authority, with pairs for a server and a client, for all tests of this folder."""

from __future__ import annotations

import shutil

import pytest

from tests.web.door.authority import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """It signs what the tests need."""
    for name in ("curl", "openssl"):
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
    made = Authority(tmp_path_factory.mktemp("authority"))
    made.server()
    made.pair("client", "DNS:prometheus")
    return made
