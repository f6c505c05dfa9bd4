"""Lines that a container runtime or journald has wrapped: parts are joined per stream, over rotations and kills."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from . import LONG
from .cases import SEEDS, cases
from .daemon import Daemon, until
from .launcher import POINTS
from .ledger import Ledger, accounted
from .lines import STAMP, cri
from .scenario import DOCUMENT, Scenario, check, source
from .scenarios import WRAPPERS
from .writer import Writer

DANGLING_S = 60.0
"""A line whose end does not come is given up after so long (`capwatch.dialect.parts`)."""


@cases(WRAPPERS)
def test_parts_are_joined_over_rotations_and_kills(tmp_path: Path, scenario: Scenario, seed: int) -> None:
    """Exact, though the parts of a line lie on both sides of a rotation or of a kill."""
    check(scenario, tmp_path, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_open_parts_are_part_of_every_commit(tmp_path: Path, seed: int) -> None:
    """Killed inside every step of a commit, a line that was half read counts once."""
    random = Random(seed)
    path = tmp_path / "0.log"
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("pod", path, wrapper="cri")]}, breakable=True)
    writer = Writer(path, 1000.0, wrap=cri)
    ledger = Ledger(daemon.page, lambda: writer.bytes, line_bytes=None)
    points = [point for point in POINTS if not point.startswith("keep")]
    try:
        daemon.start()
        writer.start()
        ledger.start()
        for point in points if LONG else random.sample(points, 2):
            time.sleep(random.uniform(0.0, 0.5))
            daemon.kill_at(point)
            daemon.start()
        writer.stop()
        until(lambda: daemon.samples().total("lines_counted_total") >= writer.lines, "all is read")
        ledger.stop()
        last = daemon.samples()
    finally:
        daemon.close()
    assert ledger.breaches == []
    assert last.tenants() == writer.truth()
    assert last.total("lines_dropped_total") == 0
    assert accounted(last) == writer.bytes


@pytest.mark.long
def test_a_part_whose_end_never_comes_is_dropped(tmp_path: Path) -> None:
    """It is given up after a minute as `partial`, and what follows it in another stream is not held up meanwhile."""
    path = tmp_path / "0.log"
    path.write_bytes(b'%b stdout P {"tenant":\n' % STAMP)
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("pod", path, wrapper="cri")]})
    try:
        daemon.start()
        assert daemon.samples().total("lines_read_total") == 0
        daemon.kill()
        daemon.start()
        until(
            lambda: daemon.samples().total("lines_dropped_total", reason="partial") == 1,
            "it is given up",
            DANGLING_S + 15,
        )
        assert daemon.samples().total("lines_read_total") == 1
    finally:
        daemon.close()
