"""What is fetched when the package is built: only what was pinned, and never a reason for a build to fail by itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "deploy" / "package" / "backend.py"
NPM = """#!/bin/sh
for last; do :; done
echo "not the archive that was pinned" > "$last/uplot.tgz"
"""


@pytest.fixture
def backend() -> ModuleType:
    """The build backend, as pip loads it."""
    spec = importlib.util.spec_from_file_location("backend", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CAPWATCH_PLOTS", raising=False)
    return folder


def test_another_archive_is_not_taken(
    backend: ModuleType, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What has another checksum than the pinned one is never unpacked; the build goes on and says so."""
    (path / "npm").write_text(NPM)
    (path / "npm").chmod(0o755)
    (tmp_path / "assets").mkdir()
    backend.provide(tmp_path / "assets")
    assert list((tmp_path / "assets").iterdir()) == []
    assert f"uplot@{backend.VERSION}: its SHA-512 is " in capsys.readouterr().err


def test_without_npm_a_build_goes_on_unless_plots_are_required(
    backend: ModuleType, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without npm has a page without plots; a release is rather not built."""
    backend.provide(tmp_path)
    monkeypatch.setenv("CAPWATCH_PLOTS", "required")
    with pytest.raises(backend.UnavailableError, match="npm, which fetches uPlot, is not on PATH"):
        backend.provide(tmp_path)


def test_what_is_there_is_not_fetched_again(backend: ModuleType, path: Path, tmp_path: Path) -> None:
    """An sdist has the library, so that a build from it needs neither npm nor network."""
    (tmp_path / backend.STAMP).write_text(f"{backend.VERSION}\n")
    backend.provide(tmp_path)
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == [backend.STAMP]
