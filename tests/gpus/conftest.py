"""The stub library in this process: found under its name since it is loaded already."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from .stub import Stub, compiled


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, loaded; without its file it says that there is no driver, so it harms no other test."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    path = compiled(tmp_path_factory.mktemp("nvml"))
    ctypes.CDLL(str(path))
    return path


@pytest.fixture
def stub(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """Two cards that tell the usual."""
    found = Stub(tmp_path / "nvml.txt")
    monkeypatch.setenv("NVML_STUB", str(found.path))
    found.card(0)
    found.card(1)
    return found
