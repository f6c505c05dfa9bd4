"""Which file is which: inodes used again, files that begin alike, one file under two names, very many files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import LONG
from .cases import SEEDS
from .daemon import Daemon, until
from .ledger import LINE_BYTES, Ledger, Samples, accounted
from .scenario import DOCUMENT, source
from .writer import line, truth

FEW = 256
"""Descriptors, fewer than there are files."""
MANY = 5000 if LONG else 400
TURNS = 6 if LONG else 3


def lines(first: int, last: int) -> bytes:
    """The lines first … last − 1."""
    return b"".join(line(number, time.time()) for number in range(first, last))


class Followed:
    """A daemon on `log` and its rotated names, and how many bytes there were."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.daemon = Daemon(folder, DOCUMENT | {"sources": [source("gateway", self.log)]})
        self.bytes = 0
        self.lines = 0
        self.ledger = Ledger(self.daemon.page, lambda: self.bytes, line_bytes=None)

    def write(self, path: Path, count: int, banner: bytes = b"") -> None:
        """Append the next lines, after a banner where the file is new."""
        data = (b"" if path.exists() else banner) + lines(self.lines, self.lines + count)
        self.lines += count
        self.bytes += len(data)
        with path.open("ab") as file:
            file.write(data)

    def read(self) -> Samples:
        """Wait until all that was written is durable; the page."""
        until(lambda: accounted(self.daemon.samples()) - self._lag() == self.bytes, "all bytes are read")
        return self.daemon.samples()

    def _lag(self) -> float:
        return self.daemon.samples().total("source_lag_bytes")


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    """One that has read a hundred lines."""
    found = Followed(tmp_path)
    found.write(found.log, 100)
    found.daemon.start()
    found.ledger.start()
    found.read()
    yield found
    found.ledger.stop()
    found.daemon.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_inode_used_again_while_it_was_down(followed: Followed, seed: int) -> None:
    """A new file with the inode of one that was read and deleted is read whole, and is no truncation under its name."""
    for turn in range(TURNS):
        old = followed.log.with_name(f"log.{turn + 1}")
        followed.log.rename(old)
        followed.write(followed.log, 50)
        followed.read()
        (followed.daemon.kill if seed % 2 else followed.daemon.stop)()
        inode = old.stat().st_ino
        old.unlink()
        fresh = _with_inode(followed, inode)
        followed.daemon.start()
        last = followed.read()
        assert last.tenants() == truth(followed.lines), turn
        fresh.unlink()
    assert last.total("source_truncations_total") == 0
    assert followed.ledger.breaches == []


def _with_inode(followed: Followed, inode: int) -> Path:
    """A file with new lines that has got this inode, or any where the file system never gives one back at once."""
    spare = []
    for number in range(200):
        path = followed.log.with_name(f"log.new{number}")
        path.touch()
        if path.stat().st_ino == inode:
            break
        spare.append(path)
    for one in spare[:-1] if len(spare) == 200 else spare:
        one.unlink()
    path = path if path.exists() else spare[-1]
    with path.open("ab") as file:
        data = lines(followed.lines, followed.lines + 50)
        followed.lines, followed.bytes = followed.lines + 50, followed.bytes + len(data)
        file.write(data)
    return path


@pytest.mark.parametrize("seed", SEEDS)
def test_files_that_begin_alike(followed: Followed, seed: int) -> None:
    """Each new file begins with the same 5,000 bytes; they count in each of them, over rotations and restarts."""
    banner = b"".join(line(10**5 + number, 1.7e9, "u") for number in range(22))
    for turn in range(TURNS):
        followed.log.rename(followed.log.with_name(f"log.2026030{turn + 1}"))
        if turn % 3 == seed % 3:
            followed.daemon.kill()
        followed.write(followed.log, 40, banner)
        if turn % 3 == seed % 3:
            followed.daemon.start()
        followed.write(followed.log, 40)
        last = followed.read()
    assert last.tenants() == truth(followed.lines)
    assert last.total("requests_total") == followed.lines + TURNS * 22
    # one that a kill met between the old name and the new file is not known to have been one
    assert 0 < last.total("source_rotations_total") <= TURNS
    assert followed.ledger.breaches == []


def test_one_file_under_two_names(followed: Followed, tmp_path: Path) -> None:
    """A hard link and a symbolic link under the globs are the same file: its lines count once."""
    os.link(followed.log, tmp_path / "log.hard")
    (tmp_path / "log.soft").symlink_to(followed.log)
    followed.write(followed.log, 100)
    assert followed.read().tenants() == truth(200)
    followed.daemon.kill()
    followed.daemon.start()
    followed.write(followed.log, 100)
    time.sleep(1.5)  # a scan that would find a second file
    assert followed.read().tenants() == truth(300)


def test_a_file_that_may_not_be_read_at_first(tmp_path: Path) -> None:
    """It is not up while it cannot be read, and read whole afterwards."""
    found = Followed(tmp_path)
    if os.geteuid() == 0:  # who may read what it likes, unless that right is taken from it
        rights = "-dac_override,-dac_read_search"
        found.daemon.under = ("setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}")
    found.write(found.log, 100)
    found.log.chmod(0)
    try:
        found.daemon.launch()
        until(lambda: (found.daemon.page() or "").count("source_up") > 0, "it answers")
        assert found.daemon.samples().total("source_up") == 0
        found.log.chmod(0o644)
        until(lambda: found.daemon.samples().total("source_up") == 1, "it is up")
        assert found.read().tenants() == truth(100)
    finally:
        found.daemon.close()


def test_a_folder_that_comes_late(tmp_path: Path) -> None:
    """Files of a folder that was not there at the start are read from their beginning, whatever `start` says."""
    path = tmp_path / "later" / "log"
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path, start="end")]})
    try:
        daemon.start()
        assert daemon.samples().total("source_up") == 0
        path.parent.mkdir()
        path.write_bytes(lines(0, 100))
        daemon.wait_for_lines({"gateway": 100})
        found = daemon.samples()
        assert (found.total("source_up"), found.tenants()) == (1, truth(100))
    finally:
        daemon.close()


@pytest.mark.parametrize("start", ["end", "beginning"])
def test_where_the_first_start_ever_begins(tmp_path: Path, start: str) -> None:
    """With `end` what was there is passed over, and counted as such; what comes is read, over restarts too."""
    path = tmp_path / "log"
    path.write_bytes(lines(0, 300))
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path, start=start)]})
    try:
        daemon.start()
        daemon.kill()
        with path.open("ab") as file:
            file.write(lines(300, 400))
        daemon.start()
        wanted = 100 if start == "end" else 400
        daemon.wait_for_lines({"gateway": wanted})
        found = daemon.samples()
        skipped = 300 * LINE_BYTES if start == "end" else 0
        assert found.total("source_bytes_skipped_total") == skipped
        assert found.tenants() == truth(400, without=range(300) if start == "end" else ())
        assert accounted(found) == 400 * LINE_BYTES
    finally:
        daemon.close()


def test_more_files_than_descriptors(tmp_path: Path) -> None:
    """Hundreds of files, each read to the end, renamed and written on, with 256 descriptors and a kill."""
    logs = [tmp_path / "logs" / f"{number}.log" for number in range(MANY)]
    logs[0].parent.mkdir()
    one = source("gateway", tmp_path) | {"path": [f"{tmp_path}/logs/*.log", f"{tmp_path}/logs/*.log.*"]}
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [one]})
    daemon.under = ("prlimit", f"--nofile={FEW}:{FEW}")
    written = 0

    def write() -> None:
        nonlocal written
        for path in logs:
            with path.open("ab") as file:
                file.write(line(written, time.time()))
            written += 1

    try:
        write()
        daemon.start()
        write()
        daemon.wait_for_lines({"gateway": written})
        for path in logs[::2]:
            path.rename(f"{path}.1")
        write()
        daemon.wait_for_lines({"gateway": written})
        daemon.kill()
        write()
        daemon.start()
        daemon.wait_for_lines({"gateway": written})
        found = daemon.samples()
        opened = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    finally:
        daemon.close()
    assert found.tenants() == truth(written)
    assert accounted(found) == written * LINE_BYTES
    assert opened < FEW
