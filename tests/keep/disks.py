"""Disks that are small or cannot be written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str = "1m") -> Iterator[Path]:
    """A file system of its own in memory; skips the test where this user may not mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root and the right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def make_read_only(folder: Path) -> None:
    """Nothing can be written on a small disk any more."""
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)


def fill(folder: Path) -> Path:
    """Take all the space that is left; the file that takes it."""
    filler = folder / "filler"
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 16, 1 << 12, 1):
            while _fits(descriptor, size):
                pass
    finally:
        os.close(descriptor)
    return filler


def _fits(descriptor: int, size: int) -> bool:
    try:
        return os.write(descriptor, bytes(size)) == size
    except OSError:
        return False
