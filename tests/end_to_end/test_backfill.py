"""Backfill against the truth: what Prometheus says of a replayed log at a time is what was true then."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.truth import truth
from tests.truth.rows import Bools, Floats, Rows, labels
from tests.truth.traffic import RECORD, Traffic

from .command import printed
from .logs import EXACT, SETUPS, YESTERDAY
from .prometheus import Prometheus, prometheus

STEP = 15
TIMES = [YESTERDAY + after for after in (60, 300, 435, 600, 750, 897)]  # the last one lies between two steps
FAMILIES = (
    "capwatch_requests,capwatch_tokens_total,capwatch_cost_replica_seconds,capwatch_goodput_requests,"
    "capwatch_goodput_missed,capwatch_phase_seconds,capwatch_duration_seconds,capwatch_lines_read,"
    "capwatch_route_ttft_seconds"
)
SLICE = 30.0

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)


@dataclass(frozen=True)
class Backfill:
    """Traffic in two files, replayed with one sample of each series every 15 s."""

    log: Traffic
    seen_at: Floats
    """When each row is known: the newest event of its file so far."""
    ahead: Bools
    openmetrics: Path

    def until(self, at: float) -> Rows:
        """The rows known at a time."""
        return self.log.rows.take(self.seen_at <= at)

    def recent(self, at: float) -> Rows:
        """Those of them in the window."""
        finished = self.log.rows.finished_at
        inside = (finished // SLICE >= at // SLICE - 10) & ~self.ahead
        return self.log.rows.take(inside & (self.seen_at <= at))


@pytest.fixture(scope="module")
def backfill(tmp_path_factory: pytest.TempPathFactory) -> Backfill:
    """Two files that overlap in time, each in its own order: every other request is in the second."""
    folder = tmp_path_factory.mktemp("backfill")
    log = SETUPS["roomy"].write(folder)
    for number in (0, 1):
        lines = [line.text + b"\n" for line in log.lines if max(line.row, 0) % 2 == number]
        (folder / f"{number}.jsonl").write_bytes(b"".join(lines))
    words = ("--openmetrics-out", "out.om", "--step", f"{STEP}s", "--families", FAMILIES, "1.jsonl", "0.jsonl")
    printed("replay", "--config.file", "capwatch.yml", *words, cwd=folder)
    _, ahead = truth.lateness(log.rows)
    seen_at = np.where(ahead, 0.0, log.rows.finished_at)
    for number in (0, 1):
        seen_at[number::2] = np.maximum.accumulate(seen_at[number::2])
    return Backfill(log, seen_at, ahead, folder / "out.om")


@pytest.fixture(scope="module")
def server(backfill: Backfill, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus over the blocks that promtool makes of it."""
    folder = tmp_path_factory.mktemp("blocks")
    made = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", backfill.openmetrics, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")
    with prometheus(folder) as running:
        yield running


@needs_prometheus
@pytest.mark.parametrize("at", TIMES, ids=lambda at: f"{at - YESTERDAY:.0f}s")
def test_totals_are_those_of_the_time(backfill: Backfill, server: Prometheus, at: float) -> None:
    """Requests by outcome, tokens by kind, cost and good requests are what was finished by then."""
    rows, options = backfill.until(at // STEP * STEP), backfill.log.options
    outcomes = Counter((outcome,) for outcome in rows.outcome)
    assert server.query("sum by (outcome) (capwatch_requests_total)", at) == outcomes
    kinds = Counter[tuple[str]]()
    for (_, _, _, kind), tokens in truth.tokens(rows).items():
        kinds[kind,] += tokens
    assert server.query("sum by (kind) (capwatch_tokens_total)", at) == kinds
    cost = sum(truth.cost(rows, options.pools).values())
    assert server.query("sum(capwatch_cost_replica_seconds_total)", at) == pytest.approx({(): cost}, rel=EXACT)
    good = sum(n for (_, _, verdict, _), n in truth.goodput(rows, options.slos).items() if verdict == "good")
    assert server.query("sum(capwatch_goodput_requests_total)", at) == {(): good}


@needs_prometheus
@pytest.mark.parametrize("at", TIMES, ids=lambda at: f"{at - YESTERDAY:.0f}s")
def test_percentiles_are_those_of_the_window(backfill: Backfill, server: Prometheus, at: float) -> None:
    """The p95 of a pair is that of the five minutes before, within 0.8 %."""
    rows = backfill.recent(at // STEP * STEP)
    pair = Counter(zip(labels(rows.tenant), labels(rows.route), strict=True)).most_common(1)[0][0]
    mine = (rows.tenant == pair[0]) & (rows.route == pair[1]) & ~np.isnan(rows.duration_s)
    exact = truth.order_statistic(rows.duration_s[mine].tolist(), "0.95")
    quoted = pair[0].replace("\\", "\\\\").replace('"', '\\"')
    chosen = f'tenant="{quoted}",route="{pair[1]}",quantile="0.95"'
    got = server.query(f"max(capwatch_duration_seconds{{{chosen}}})", at)
    assert got == pytest.approx({(): exact}, rel=0.008)


@needs_prometheus
def test_counters_never_fall(backfill: Backfill, server: Prometheus) -> None:
    """Law 3 over time: no counter, sum, count or bucket resets."""
    growing = [name for name in server.names() if name.endswith(("_total", "_sum", "_count", "_bucket"))]
    end = float(backfill.log.rows.finished_at[~backfill.ahead].max())
    assert len(growing) >= 10
    assert {name: server.query(f"max(resets({name}[30m]))", end) for name in growing} == dict.fromkeys(
        growing, {(): 0.0}
    )


def test_the_end_is_the_whole(backfill: Backfill) -> None:
    """The file has a last sample at the newest event, with everything in it."""
    ends = [line.rsplit(" ", 2) for line in backfill.openmetrics.read_text().splitlines() if not line.startswith("#")]
    newest = float(backfill.log.rows.finished_at[~backfill.ahead].max())
    assert max(float(at) for _, _, at in ends) == pytest.approx(newest, abs=0.001)
    last = [float(value) for name, value, at in ends if name.startswith("capwatch_requests_total") and float(at) > newest - 0.001]
    assert sum(last) == len(backfill.log.rows)


def test_the_file_is_openmetrics(backfill: Backfill) -> None:
    """prometheus_client's strict parser reads it, and the first and last values of a counter are those in the file.

    Histograms are left out: that parser takes a second moment of one for a duplicate.
    """
    parts = backfill.openmetrics.read_text().split("# HELP ")
    text = "# HELP ".join(part for part in parts if not part.startswith("capwatch_route_"))
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert sorted(families) == sorted(
        name.removesuffix("_total") for name in FAMILIES.split(",") if "capwatch_route_" not in name
    )
    samples = families["capwatch_lines_read"].samples
    stamps = [float(sample.timestamp) for sample in samples]
    assert stamps == sorted(set(stamps))
    assert samples[-1].value == len(backfill.log.lines)
    assert RECORD == "record"
