"""Waking up by inotify, and without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capwatch.tail.wake import NOTHING, Touched, Wake

from .reader import append


@pytest.fixture
def wake() -> Iterator[Wake]:
    """A wake-up call of its own."""
    made = Wake()
    yield made
    made.close()


def test_a_write_wakes(tmp_path: Path, wake: Wake) -> None:
    """It names the file."""
    append(tmp_path / "log", b"a\n")
    wake.watch([str(tmp_path)])
    append(tmp_path / "log", b"b\n")
    assert wake.wait(5) == Touched(written=frozenset({str(tmp_path / "log")}))


def test_a_rename_wakes(tmp_path: Path, wake: Wake) -> None:
    """It names both ends."""
    append(tmp_path / "log", b"a\n")
    wake.watch([str(tmp_path)])
    (tmp_path / "log").rename(tmp_path / "log.1")
    assert wake.wait(5) == Touched(renamed=frozenset({str(tmp_path / "log"), str(tmp_path / "log.1")}))


def test_nothing_wakes(tmp_path: Path, wake: Wake) -> None:
    """When the time is over nothing was touched."""
    wake.watch([str(tmp_path)])
    assert not wake.wait(0)
    assert wake.wait(0) is NOTHING


def test_directories_no_longer_wanted(tmp_path: Path, wake: Wake) -> None:
    """Only the directories of the last call wake; missing ones are left out."""
    wake.watch([str(tmp_path), str(tmp_path / "missing")])
    wake.watch([str(tmp_path / "missing")])
    append(tmp_path / "log", b"a\n")
    assert not wake.wait(0)


def test_a_directory_that_goes_and_comes(tmp_path: Path, wake: Wake) -> None:
    """Its watch ends with it; watched again it wakes again."""
    (tmp_path / "logs").mkdir()
    wake.watch([str(tmp_path / "logs")])
    (tmp_path / "logs").rmdir()
    wake.wait(0)
    (tmp_path / "logs").mkdir()
    wake.watch([str(tmp_path / "logs")])
    append(tmp_path / "logs/log", b"a\n")
    assert wake.wait(5)


def test_without_inotify(tmp_path: Path, wake: Wake) -> None:
    """It only sleeps."""
    wake.close()
    wake.watch([str(tmp_path)])
    append(tmp_path / "log", b"a\n")
    assert wake.wait(0) is NOTHING
