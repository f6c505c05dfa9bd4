"""A daemon that dies again and again, soon after each start, at any change that it makes to its state."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from . import LONG
from .cases import SEEDS
from .daemon import Daemon
from .ledger import Ledger, accounted
from .scenario import DOCUMENT, source
from .shim import Shim, needs_shim
from .writer import Writer

TIMES = 50 if LONG else 12
RATE = 500.0
START_S = 1.0 if LONG else 15.0
"""From start to ready."""
DELTAS = 60
"""What a start may have to read again: without a checkpoint it would be all of them since the first of these lives."""
FIRST = 60
"""A start and the first commit make fewer changes to the files than this."""


def test_killed_as_soon_as_it_is_ready(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty times: exact, each start quick, and what it has to read is no more for it."""
    path, state = tmp_path / "log", tmp_path / "state"
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)]})
    writer = Writer(path, RATE)
    ledger = Ledger(daemon.page, lambda: writer.bytes)
    starts = []
    try:
        daemon.start()
        writer.start()
        ledger.start()
        for number in range(TIMES):
            daemon.kill()
            if number % 10 == 5:
                path.rename(f"{path}.2026{number:04d}")
                writer.reopen()
            starts.append(daemon.start())
        writer.stop()
        daemon.wait_for_lines({"gateway": writer.lines})
        ledger.stop()
        last = daemon.samples()
    finally:
        daemon.close()
    with capsys.disabled():
        print(f" {TIMES} starts of at most {max(starts):.2f} s", end="")
    assert ledger.breaches == []
    assert last.tenants() == writer.truth()
    assert accounted(last) == writer.bytes
    assert sorted(starts)[TIMES // 2] < START_S
    with closing(sqlite3.connect(state / "capwatch.db")) as database:
        assert database.execute("SELECT count(*) FROM delta").fetchone()[0] < DELTAS


@needs_shim
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_at_any_change_to_its_files(tmp_path: Path, seed: int) -> None:
    """From the very first start on, dead after 1, 2, 3 … writes, cuts, renames or fsyncs of state and history."""
    random = Random(seed)
    path, state = tmp_path / "log", tmp_path / "state"
    shim = Shim(tmp_path, state)
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)]})
    daemon.env |= shim.env
    writer = Writer(path, RATE, seed=seed)
    ledger = Ledger(daemon.page, lambda: writer.bytes)
    moments = range(1, FIRST + 1) if LONG else sorted(random.sample(range(1, FIRST + 1), 5))
    try:
        ledger.start()
        writer.start()
        for moment in moments:
            shim.set(kill_after=moment)
            daemon.launch()
            assert daemon.process.wait(30) == -signal.SIGKILL
            time.sleep(random.uniform(0.0, 0.1))
        shim.set()
        daemon.start()
        writer.stop()
        daemon.wait_for_lines({"gateway": writer.lines})
        ledger.stop()
        last = daemon.samples()
    finally:
        daemon.close()
    assert ledger.breaches == []
    assert last.tenants() == writer.truth()
    assert accounted(last) == writer.bytes
    assert last.total("state_resets_total") == 0
    assert "level=error" not in daemon.log.read_text()
