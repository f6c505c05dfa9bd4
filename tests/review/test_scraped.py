"""A review of a real Prometheus agrees with that of the history behind it, and says what the server cannot tell."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from capwatch.cli import main
from capwatch.review.calendar import IsoWeek
from tests.end_to_end.command import COMMAND
from tests.end_to_end.prometheus import prometheus

from . import stories

WEEK = IsoWeek(2026, 47)
HOURS = 10
FAMILIES = (
    "capwatch_requests,capwatch_departures,capwatch_tokens,capwatch_cost_replica_seconds,capwatch_replicas,"
    "capwatch_prefill_saved_replica_seconds,capwatch_goodput_requests,capwatch_goodput_missed,capwatch_phase_seconds,"
    "capwatch_route_prompt_tokens,capwatch_route_output_tokens,capwatch_route_duration_seconds"
)

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)


@needs_prometheus
def test_the_same_review_from_both(tmp_path: Path) -> None:
    """Cost, rate and utilisation within 2 %, from backfilled blocks as from the history; hours are whole on both."""
    one = stories.story("cliff", 4, 0.2, WEEK.since + HOURS * 1800.0)
    log, config, state = tmp_path / "requests.jsonl", tmp_path / "capwatch.yml", tmp_path / "state"
    stories.write(log, [one], WEEK.since, WEEK.since + HOURS * 3600 + 900)
    stories.config(config, log, [one])
    words = ["--state-dir", str(state), "--openmetrics-out", str(tmp_path / "out.om"), "--families", FAMILIES]
    command = [*COMMAND, "replay", "--config.file", str(config), "--step", "300s", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    blocks = tmp_path / "blocks"
    made: list[str | Path] = ["promtool", "tsdb", "create-blocks-from", "openmetrics", tmp_path / "out.om", blocks]
    subprocess.run(made, capture_output=True, check=True)
    with prometheus(blocks) as server:
        asked = review(tmp_path, "--prometheus", server.url)
    kept = review(tmp_path, "--state-dir", str(state))
    mine, theirs = asked["pools"]["cliff"], kept["pools"]["cliff"]
    for key in ("cost_after", "utilisation_after", "rate_after", "replicas"):
        assert mine[key] == pytest.approx(theirs[key], rel=0.02), key
    assert mine["requests"] == pytest.approx(
        theirs["requests"] * (HOURS - 1) / HOURS, rel=0.05
    )  # no look before the first
    assert any("tick" in gap["why"] for gap in asked["missing"])
    assert any("capwatch_route_queue_seconds" in gap["what"] for gap in asked["missing"])


def test_a_server_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and the exit code of a failure."""
    words = ["--prometheus", "http://127.0.0.1:9", "--out", str(tmp_path / "review.html")]
    assert main(["review", "--week", str(WEEK), *words]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def review(folder: Path, *source: str) -> dict[str, Any]:
    """The document that the command writes."""
    out = folder / "review.html"
    assert main(["review", "--week", str(WEEK), *source, "--out", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
    return found
