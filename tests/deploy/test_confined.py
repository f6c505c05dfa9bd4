"""The daemon where it may do next to nothing: a user without rights, everything read-only but its state directory."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import COMMAND
from tests.end_to_end.faults.daemon import ROOT, Daemon

NOBODY = 65532
RIGHTLESS = (
    *("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"),
    *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
)
READ_ONLY = (
    "mount --bind '{0}' '{0}' && mount -o remount,bind,ro / && mount -o bind,ro /dev/shm /dev/shm && exec \"$@\""
)
LINE = b'{"finished_at": 1772529300, "tenant": "acme", "outcome": "ok"}\n'


class Confined(Daemon):
    """A daemon in mounts of its own, without capabilities."""

    def launch(self, *words: str) -> None:
        """Start it with these flags, without waiting; the standard error is all it has beside its state."""
        state = str(self.folder / "state")
        mounts = ("unshare", "--mount", "--propagation", "private", "sh", "-c", READ_ONLY.format(state), "sh")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*mounts, *RIGHTLESS, *COMMAND, "run", "--config.file", str(self.config), *words],
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
                stderr=log,
                umask=0,
            )


def can_confine() -> str:
    """Why not, or nothing."""
    if os.geteuid() != 0:
        return "only root can take its own rights away and mount"
    probe = ["unshare", "--mount", "sh", "-c", "mount -o remount,bind,ro /"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        return "this machine lets nobody mount"
    probe = [*RIGHTLESS, sys.executable, "-c", "import numpy, capwatch.cli"]
    if subprocess.run(probe, capture_output=True, cwd=ROOT, check=False).returncode:
        return "a user without rights cannot read this Python"
    return ""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that anybody may look into, with a state directory that is the daemon's own."""
    reason = can_confine()
    if reason:
        pytest.skip(reason)
    found = Path(tempfile.mkdtemp(prefix="confined-"))
    found.chmod(0o755)
    (found / "state").mkdir(0o700)
    os.chown(found / "state", NOBODY, NOBODY)
    yield found
    shutil.rmtree(found)


@pytest.fixture
def daemon(folder: Path) -> Iterator[Daemon]:
    """A confined daemon that has read a line, with one more file that it may not read."""
    (folder / "log").write_bytes(LINE)
    (folder / "log").chmod(0o644)
    source: dict[str, Any] = {"name": "log", "path": str(folder / "log"), "format": "jsonl", "start": "beginning"}
    found = Confined(folder, {"sources": [source]})
    found.start()
    found.wait_for_lines({"log": 1})
    yield found
    found.close()


def test_it_works_without_rights_on_a_read_only_disk(daemon: Daemon) -> None:
    """It reads, commits, rotates and ends in order, and the next start goes on where it was."""
    with (daemon.folder / "log").open("ab") as file:
        file.write(LINE)
    daemon.wait_for_lines({"log": 2})
    assert daemon.stop()[0] == 0
    daemon.start()
    with (daemon.folder / "log").open("ab") as file:
        file.write(LINE)
    daemon.wait_for_lines({"log": 3})
    assert daemon.samples().total("requests_total") == 3
    assert [line for line in daemon.log.read_text().splitlines() if "level=error" in line] == []


def test_it_has_no_rights(daemon: Daemon) -> None:
    """The process that reads is another user's, has no capability and can gain none."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert told["Uid"].split() == [str(NOBODY)] * 4
    assert {told[one] for one in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
    assert told["NoNewPrivs"] == "1"


def test_nobody_else_can_read_what_it_keeps(daemon: Daemon) -> None:
    """Whatever the umask it was started with: files 0600 and the folder 0700, the socket among them."""
    state = daemon.folder / "state"
    deadline = time.monotonic() + 20
    while not (state / "capwatch.sock").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()}
    assert set(modes) >= {"capwatch.db", "capwatch.lock", "capwatch.sock", "history.db", "label.key"}
    assert (stat.S_IMODE(state.stat().st_mode), modes) == (0o700, dict.fromkeys(modes, 0o600))
