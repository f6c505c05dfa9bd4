"""`kill -9` at any point, again and again: nothing is lost, nothing counted twice, and nothing shown is taken back."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from . import LONG
from .daemon import Daemon, until
from .ledger import Ledger, accounted
from .scraping import judged, needs_prometheus, scraping, tenants, wait_for
from .writer import ROTATIONS, Writer, cri

RATE = 2000 if LONG else 1000
READY_S = 2.0 if LONG else 15.0
"""From start to ready. The bound of the long form is what is promised; two cores shared with others may not keep it."""
POINTS = tuple(f"{work} {moment}" for work in ("append", "checkpoint") for moment in ("before", "within", "after"))
TURNING = ("rename", "chain", "copytruncate")
"""Rotations that lose nothing while nobody reads."""
SMALL = ("ttft_seconds", "tpot_seconds", "duration_seconds", "prompt_tokens", "output_tokens")
DOCUMENT: dict[str, Any] = {
    "limits": {"tenants": 4000, "tenant_routes": 12_000},
    # Thousands of tenants are there for the truth alone; their quantiles would only cost the time of this test.
    "metrics": {"disable": [f"capwatch_{one}" for one in SMALL]},
}


def source(name: str, path: Path, **more: str) -> dict[str, Any]:
    """A source that reads a writer's files from their beginning, rotated names included."""
    return {"name": name, "path": [str(path), f"{path}.*"], "format": "jsonl", "start": "beginning", **more}


@dataclass
class Run:
    """One daemon through many deaths."""

    daemon: Daemon
    writer: Writer
    starts: list[float] = field(default_factory=list)
    """Seconds from each start to ready."""
    rotations: int = 0

    def start(self) -> None:
        """Start the daemon, and note how long that took."""
        self.starts.append(self.daemon.start())

    def die_inside_a_commit(self, point: str) -> None:
        """Killed at a point of a commit."""
        self.daemon.kill_at(point)
        self.start()

    def die_inside_a_rotation(self, name: str, step: int, *, at_once: bool) -> None:
        """Killed after a step of a rotation; started again at once, or when the rotation is over."""
        self.rotations += 1
        for number, _ in enumerate(ROTATIONS[name](self.writer, self.rotations)):
            if number == step:
                self.daemon.kill()
                if at_once:
                    self.start()
        if not at_once:
            self.start()

    def die(self) -> None:
        """Killed at no special moment."""
        self.daemon.kill()
        self.start()


def deaths(random: Random) -> list[tuple[str, ...]]:
    """Twenty deaths, six inside a commit and six inside a rotation; six in the short form."""
    commits = [("die_inside_a_commit", point) for point in POINTS]
    turns = [("die_inside_a_rotation", name, step) for name in TURNING for step in ("0", "1")]
    if not LONG:
        commits, turns = random.sample(commits, 3), random.sample(turns, 2)
    found = [*commits, *turns, *([("die",)] * (8 if LONG else 1))]
    random.shuffle(found)
    return found


@needs_prometheus
def test_totals_are_exact_over_kills_as_prometheus_sees_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After any number of kills the totals are exact on the page and in Prometheus, which saw no counter fall."""
    random = Random(20260303)
    path = tmp_path / "requests.jsonl"
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)]}, breakable=True)
    writer = Writer(path, RATE)
    ledger = Ledger(daemon.page, lambda: writer.bytes)
    run = Run(daemon, writer)
    try:
        run.start()
        writer.start()
        ledger.start()
        with scraping(tmp_path / "prometheus", daemon.address) as server:
            for death, *words in deaths(random):
                time.sleep(random.uniform(0.0, 1.2))
                if death == "die_inside_a_rotation":
                    run.die_inside_a_rotation(words[0], int(words[1]), at_once=random.random() < 0.5)
                else:
                    getattr(run, death)(*words)
            writer.stop()
            daemon.wait_for_lines({"gateway": writer.lines})
            ledger.stop()
            wait_for(server, "sum(capwatch_requests_total)", writer.lines)
            _, fallen = judged(server, '{__name__=~"capwatch_.*_total"}')
            counted = judged(server, '{__name__=~"capwatch_(requests|tokens)_total"}')[0]
        last = daemon.samples()
    finally:
        daemon.close()
    with capsys.disabled():
        print(f" {len(run.starts) - 1} kills, ready after {max(run.starts):.2f} s at most", end="")
    assert ledger.breaches == []
    assert last.tenants() == writer.truth()
    assert fallen == []
    assert tenants(counted) == writer.truth()
    assert accounted(last) == writer.bytes
    assert max(run.starts) < READY_S


def test_parts_of_a_line_are_joined_over_a_kill(tmp_path: Path) -> None:
    """A container runtime's parts of a line count once when a kill falls between them: the open line is committed."""
    random = Random(9)
    path = tmp_path / "0.log"
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("pod", path, wrapper="cri")]}, breakable=True)
    writer = Writer(path, RATE, wrap=cri)
    ledger = Ledger(daemon.page, lambda: writer.bytes, line_bytes=None)
    run = Run(daemon, writer)
    try:
        run.start()
        writer.start()
        ledger.start()
        for point in POINTS if LONG else ("append within", "append after"):
            time.sleep(random.uniform(0.0, 0.5))
            run.die_inside_a_commit(point)
        run.die_inside_a_rotation("rename", 0, at_once=True)
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
