"""`kill -9` at any point, again and again: nothing is lost, nothing counted twice, and nothing shown is taken back."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from capwatch.keep.past import KINDS, Past
from capwatch.load.tables import SECONDS
from capwatch.meters.rollup import OUTCOME_COLUMNS

from . import LONG
from .cases import SEEDS, cases
from .daemon import Daemon
from .launcher import POINTS
from .ledger import Ledger, accounted
from .scenario import DOCUMENT, Scenario, check, source
from .scenarios import KILL
from .scraping import judged, needs_prometheus, scraping, tenants, wait_for
from .writer import Writer

RATE = 2000 if LONG else 1000
EVENT_S = 0.05 if LONG else 0.5
"""Of event time from line to line, so that seconds close while the test runs: the history gets them 26 minutes late."""
READY_S = 2.0 if LONG else 15.0
"""From start to ready. The bound of the long form is what is promised; two cores shared with others may not keep it."""


@cases(KILL)
def test_every_line_counts_once(tmp_path: Path, scenario: Scenario, seed: int) -> None:
    """Exact on the page and over the resets that a Prometheus would have seen, of which there are none."""
    check(scenario, tmp_path, seed)


@dataclass
class Run:
    """One daemon through many deaths."""

    daemon: Daemon
    starts: list[float] = field(default_factory=list)
    """Seconds from each start to ready."""

    def start(self) -> None:
        """Start the daemon, and note how long that took."""
        self.starts.append(self.daemon.start())

    def die(self, point: str) -> None:
        """Killed at a point of a commit, or at no special moment."""
        if point:
            self.daemon.kill_at(point)
        else:
            self.daemon.kill()
        self.start()


def deaths(random: Random) -> list[str]:
    """Twenty deaths, one in each step of a commit; five in the short form."""
    found = [*POINTS, *[""] * 11] if LONG else [*random.sample(POINTS, 4), ""]
    random.shuffle(found)
    return found


@needs_prometheus
@pytest.mark.parametrize("seed", SEEDS)
def test_totals_are_exact_over_kills_as_prometheus_sees_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """Killed in every step of commit, checkpoint and outbox: exact on the page, in Prometheus and in the history."""
    random = Random(20260303 + seed)
    path = tmp_path / "requests.jsonl"
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)]}, breakable=True)
    begun = time.time() - 6 * 3600
    writer = Writer(path, RATE, clock=lambda sequence: begun + sequence * EVENT_S)
    ledger = Ledger(daemon.page, lambda: writer.bytes)
    run = Run(daemon)
    try:
        run.start()
        writer.start()
        ledger.start()
        with scraping(tmp_path / "prometheus", daemon.address) as server:
            for point in deaths(random):
                time.sleep(random.uniform(0.0, 1.2))
                run.die(point)
            writer.stop()
            daemon.wait_for_lines({"gateway": writer.lines})
            ledger.stop()
            wait_for(server, "sum(capwatch_requests_total)", writer.lines)
            _, fallen = judged(server, '{__name__=~"capwatch_.*_total"}')
            counted = judged(server, '{__name__=~"capwatch_(requests|tokens)_total"}')[0]
        last = daemon.samples()
        daemon.stop()
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
    kept = finished(tmp_path / "state")
    assert len(kept) > 3
    assert kept == {second: writer.finished[second] for second in kept}
    for name, columns in (("rollup", OUTCOME_COLUMNS), ("cover", ("requests",))):
        for at, requests in by_five_minutes(tmp_path / "state", name, columns).items():
            assert requests == sum(writer.finished.get(at + second, 0) for second in range(300)), (name, at)


def finished(state: Path) -> dict[int, float]:
    """By second, how many requests finished in it, as the history has it."""
    with closing(Past(str(state))) as past:
        at, values = past.seconds("default", 0, 1 << 40)
    counts = values[:, SECONDS.column("departures")]
    return {second: count for second, count in zip(at.tolist(), counts.tolist(), strict=True) if count}


def by_five_minutes(state: Path, name: str, columns: tuple[str, ...]) -> dict[int, float]:
    """By their begin, how many requests the slots of a table of the history have."""
    places = [KINDS[name].table.column(column) for column in columns]
    with closing(Past(str(state))) as past:
        return {slot.at: float(slot.values[:, places].sum()) for slot in past.slots(name, 0, 1 << 40, 300)}
