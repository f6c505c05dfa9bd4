"""A disk that is full, read-only, slow or failing under the state: scraping goes on, and nothing is claimed."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.keep.disks import fill, small_disk

from . import LONG
from .cases import SEEDS
from .daemon import Daemon, until
from .ledger import Ledger, accounted
from .scenario import DOCUMENT, source
from .shim import Shim, needs_shim
from .writer import Writer

RATE = 1000.0
TROUBLE_S = 3.0 if LONG else 1.5
"""How long a disk is in trouble: several tries of a commit."""


class Troubled:
    """A daemon, a writer that never stops, and a ledger that sees every page."""

    def __init__(self, folder: Path, state: Path, shim: Shim | None = None) -> None:
        path = folder / "log"
        document = DOCUMENT | {"sources": [source("gateway", path)], "state_dir": str(state)}
        self.daemon = Daemon(folder, document)
        self.daemon.env |= shim.env if shim else {}
        self.writer = Writer(path, RATE)
        self.ledger = Ledger(self.daemon.page, lambda: self.writer.bytes)

    @property
    def read(self) -> float:
        """Lines that are durable."""
        return self.daemon.samples().total("lines_read_total")

    @property
    def errors(self) -> float:
        """Commits that failed."""
        return self.daemon.samples().total("commit_errors_total")

    def stands_still(self) -> None:
        """For a while commits fail, and the page stays what it was."""
        before = self.errors
        until(lambda: self.errors > before, "a commit has failed")
        page = self.daemon.samples()
        time.sleep(TROUBLE_S)
        after = self.daemon.samples()
        same = ("lines_read_total", "requests_total", "commit_timestamp_seconds")
        assert [page.total(name) for name in same] == [after.total(name) for name in same]
        assert after.total("commit_errors_total") > page.total("commit_errors_total")

    def goes_on(self) -> None:
        """What is written now becomes durable."""
        wanted = self.writer.lines
        until(lambda: self.read >= wanted, "it has caught up")


@contextmanager
def troubled(folder: Path, state: Path, shim: Shim | None = None) -> Iterator[Troubled]:
    """Writes and reads; afterwards everything has to be exact, without a restart."""
    found = Troubled(folder, state, shim)
    try:
        found.daemon.start()
        found.ledger.start()
        found.writer.start()
        until(lambda: found.read > 300, "it reads")
        yield found
        found.writer.stop()
        found.daemon.wait_for_lines({"gateway": found.writer.lines})
        found.ledger.stop()
        last = found.daemon.samples()
        assert found.ledger.breaches == []
        assert last.tenants() == found.writer.truth()
        assert accounted(last) == found.writer.bytes
        assert found.daemon.stop()[0] == 0
    finally:
        found.daemon.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_full_disk(tmp_path: Path, seed: int) -> None:
    """A real one: what is shown stands still, and comes back by itself when there is space; killed meanwhile or not."""
    with small_disk(tmp_path / "disk", "2m") as disk, troubled(tmp_path, disk / "state") as found:
        filler = fill(disk)
        found.stands_still()
        assert "the disk is full" in found.daemon.log.read_text()
        filler.unlink()
        found.goes_on()
        if seed % 2 == 0:
            fill(disk)
            found.stands_still()
            found.daemon.kill()
            (disk / "filler").unlink()
            found.daemon.start()
            found.goes_on()


@needs_shim
@pytest.mark.parametrize("error", [errno.EROFS, errno.EIO] if LONG else [errno.EROFS])
def test_a_disk_that_can_no_longer_be_written(tmp_path: Path, error: int) -> None:
    """Remounted read-only by the kernel under open files, or failing: the page stands still, then goes on by itself."""
    shim = Shim(tmp_path, tmp_path / "state")
    with troubled(tmp_path, tmp_path / "state", shim) as found:
        shim.set(write_errno=error)
        found.stands_still()
        shim.set()
        found.goes_on()


@needs_shim
def test_an_fsync_that_fails_is_no_commit(tmp_path: Path) -> None:
    """While fsync returns an error nothing new is shown as durable, however well the writes themselves went."""
    shim = Shim(tmp_path, tmp_path / "state")
    with troubled(tmp_path, tmp_path / "state", shim) as found:
        shim.set(fsync_errno=errno.EIO)
        found.stands_still()
        shim.set()
        found.goes_on()


@needs_shim
def test_a_kill_while_fsync_fails_takes_nothing_back(tmp_path: Path) -> None:
    """What was shown before is there after the restart; what was written and not synced is read again, once."""
    shim = Shim(tmp_path, tmp_path / "state")
    with troubled(tmp_path, tmp_path / "state", shim) as found:
        for _ in range(3 if LONG else 1):
            shim.set(fsync_errno=errno.EIO)
            found.stands_still()
            found.daemon.kill()
            shim.set()
            found.daemon.start()
            found.goes_on()


@needs_shim
def test_a_slow_fsync_delays_only_what_is_shown(tmp_path: Path) -> None:
    """With two seconds an fsync, scrapes stay quick, and a commit brings all that was read during the one before."""
    shim = Shim(tmp_path, tmp_path / "state")
    with troubled(tmp_path, tmp_path / "state", shim) as found:
        shim.set(fsync_delay=2.0)
        slow = _slowest_scrape(found.daemon, 5.0 if LONG else 2.5)
        before, steps = found.read, []
        until(lambda: found.read > before, "one commit has ended")
        steps.append(found.read - before)
        shim.set()
        assert slow < 1.0
        assert found.errors == 0
        assert max(steps) > RATE  # more than a second's worth at once


def _slowest_scrape(daemon: Daemon, seconds: float) -> float:
    """The longest that a page took in so many seconds (s)."""
    end, slowest = time.monotonic() + seconds, 0.0
    while (begun := time.monotonic()) < end:
        assert daemon.page() is not None
        slowest = max(slowest, time.monotonic() - begun)
        time.sleep(0.05)
    return slowest


def test_a_start_on_a_full_disk_says_so(tmp_path: Path) -> None:
    """One line that names the folder and the cause, and exit code 2; with space it starts."""
    with small_disk(tmp_path / "disk") as disk:
        path = tmp_path / "log"
        path.touch()
        daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)], "state_dir": str(disk / "state")})
        try:
            daemon.start()
            daemon.stop()  # a kill would leave the log of the state, and with it space for a start
            filler = fill(disk)
            daemon.launch()
            assert daemon.process.wait(20) == 2
            told = daemon.log.read_text().splitlines()[-1]
            assert (str(disk / "state") in told, "the disk is full" in told) == (True, True), told
            filler.unlink()
            daemon.start()
        finally:
            daemon.close()
