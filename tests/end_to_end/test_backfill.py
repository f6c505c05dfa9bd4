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

from capwatch.cli import main
from capwatch.replay.backfill import OpenMetricsFile
from tests.truth import truth
from tests.truth.rows import Bools, Floats, Rows, labels
from tests.truth.traffic import Traffic

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
    resets = {name: server.query(f"max(resets({name}[30m]))", end) for name in growing}
    assert {name: found for name, found in resets.items() if found != {(): 0.0}} == {}


def samples(text: str, name: str) -> list[tuple[float, float]]:
    """(time, value) of the samples whose series begins with this name, in the order of the file."""
    lines = [line.rsplit(" ", 2) for line in text.splitlines() if line.startswith(name)]
    return [(float(at), float(value)) for _, value, at in lines]


def test_the_end_is_the_whole(backfill: Backfill) -> None:
    """The file has a last sample at the newest event, with everything in it."""
    found = samples(backfill.openmetrics.read_text(), "capwatch_requests_total")
    newest = float(backfill.log.rows.finished_at[~backfill.ahead].max())
    assert max(at for at, _ in found) == pytest.approx(newest, abs=0.001)
    assert sum(value for at, value in found if at > newest - 0.002) == len(backfill.log.rows)


def test_what_happens_at_the_very_time_counts(tmp_path: Path) -> None:
    """Logs of whole seconds: a sample holds what finished at its time, and no time comes twice."""
    (tmp_path / "capwatch.yml").write_text("sources: [{name: gateway, path: access.jsonl, format: jsonl}]\n")
    ends = (5, 15, 15, 16, 45, 60)
    lines = (f'{{"finished_at": {YESTERDAY + end:.0f}, "tenant": "acme"}}\n' for end in ends)
    (tmp_path / "access.jsonl").write_text("".join(lines))
    words = ("--openmetrics-out", "out.om", "--families", "capwatch_requests")
    printed("replay", "--config.file", "capwatch.yml", *words, cwd=tmp_path)
    found = samples((tmp_path / "out.om").read_text(), "capwatch_requests_total")
    assert [(at - YESTERDAY, value) for at, value in found] == [(15, 3), (30, 4), (45, 5), (60, 6)]


def test_what_is_held_in_memory_does_not_matter(backfill: Backfill, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is the same, whether each sample goes to its family's file at once or all at the end."""
    folder = backfill.openmetrics.parent
    monkeypatch.chdir(folder)
    monkeypatch.setattr(OpenMetricsFile, "HELD", 1)
    words = ("--openmetrics-out", "again.om", "--step", f"{STEP}s", "--families", FAMILIES, "1.jsonl", "0.jsonl")
    assert main(["replay", "--config.file", "capwatch.yml", *words]) == 0
    assert (folder / "again.om").read_bytes() == backfill.openmetrics.read_bytes()


PARSED = ("capwatch_goodput_requests", "capwatch_phase_seconds", "capwatch_lines_read", "capwatch_duration_seconds")


def test_the_file_is_openmetrics(backfill: Backfill) -> None:
    """prometheus_client's strict parser reads it: families and series stand together, their times run forward.

    Histograms are left out, since that parser takes all but the first sample of a second moment for a duplicate.
    """
    parts = backfill.openmetrics.read_text().removesuffix("# EOF\n").split("# HELP ")
    text = "# HELP ".join(["", *(part for part in parts if part.split(" ")[0] in PARSED)]) + "# EOF\n"
    families = {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    assert sorted(families) == sorted(PARSED)
    read = [(float(sample.timestamp), sample.value) for sample in families["capwatch_lines_read"].samples]
    assert read == sorted(set(read))
    assert read[-1][1] == len(backfill.log.lines)


def test_the_file_ends_as_the_format_wants(backfill: Backfill) -> None:
    """The last line is # EOF, and the file is there as a whole."""
    assert backfill.openmetrics.read_text().endswith("\n# EOF\n")
