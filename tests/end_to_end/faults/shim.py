"""The daemon's world in a test's hands: its clock, its disk and inotify, by a library between it and libc."""

from __future__ import annotations

import functools
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("shim.c")
_CONTROL = struct.Struct("ddqqqq")
"""As `struct control` in `shim.c`."""
_HEAD = struct.Struct("dqqc95s96s")

needs_shim = pytest.mark.skipif(not shutil.which("cc"), reason="cc is not installed (Debian package gcc)")


@functools.cache
def library() -> Path:
    """The compiled shim."""
    folder = Path(tempfile.mkdtemp(prefix="shim-"))
    found = folder / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", found, SOURCE, "-ldl"], check=True)
    return found


class Shim:
    """What one daemon meets. Change the attributes through `set` while it runs."""

    def __init__(self, folder: Path, state: Path | None = None, *, journal: bool = False) -> None:
        """Control in ``folder``; delays, errors and the journal are about files under ``state``."""
        self._control = folder / "control"
        self._control.write_bytes(bytes(_CONTROL.size))
        self.journal = folder / "journal"
        self.env = {"LD_PRELOAD": str(library()), "SHIM_CONTROL": str(self._control)}
        if state is not None:
            self.env["SHIM_FOLDER"] = str(state)
        if journal:
            self.env["SHIM_JOURNAL"] = str(self.journal)
        with self._control.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _CONTROL.size)

    def set(
        self,
        *,
        clock_offset: float = 0.0,
        fsync_delay: float = 0.0,
        fsync_errno: int = 0,
        write_errno: int = 0,
        no_inotify: bool = False,
        kill_after: int = 0,
    ) -> None:
        """From now on it is so, and everything that is not named is as it is without a shim.

        Args:
            clock_offset: s, added to the wall clock.
            fsync_delay: s, before each fsync of a file of the state.
            fsync_errno: what such an fsync fails with instead of being done.
            write_errno: the same for writes to such files; what was open before stays open.
            no_inotify: whether there is no inotify instance to be had.
            kill_after: changes of files of the state, counted from the process's start, after which it dies.
        """
        self._map[:] = _CONTROL.pack(clock_offset, fsync_delay, fsync_errno, write_errno, no_inotify, kill_after)


@dataclass(frozen=True)
class Change:
    """One change of a file under the state directory, or an fsync of one."""

    at: float
    """s, monotonic."""
    what: str
    """`w`rite, `t`runcate, `r`ename, `u`nlink, `s`ync."""
    name: str
    other: str
    """The new name of a rename."""
    place: int
    data: bytes


def changes(journal: Path) -> Iterator[Change]:
    """Everything that a process did to its state, in order."""
    with journal.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            at, place, length, what, name, other = _HEAD.unpack(head)
            data = file.read(length) if what == b"w" else b""
            old, new = (os.fsdecode(text.rstrip(b"\0")) for text in (name, other))
            yield Change(at, what.decode(), old, new, place, data)
