"""`replay --events-out`: the drifts that the daemon would have told, as `backtest` tells them, with deploy notes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import yaml

from tests.drifting.test_drifting import BEGIN, CHANGE, lines
from tests.end_to_end.command import COMMAND


def test_events_of_finished_logs(tmp_path: Path) -> None:
    """A line for each drift, with the note that it began after, and the tenant behind it."""
    log, events = tmp_path / "log.jsonl", tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in lines(3.6, dearer=True)))
    deploys = tmp_path / "deploys.jsonl"
    noted = [(BEGIN, "image"), (CHANGE - 120, "initech goes live"), (CHANGE + 3600, "image")]
    deploys.write_text("".join(json.dumps({"at": at, "text": text}) + "\n" for at, text in noted))
    config = tmp_path / "capwatch.yml"
    document = {"deploys": str(deploys), "sources": [{"name": "log", "path": str(log), "format": "jsonl"}]}
    config.write_text(yaml.safe_dump(document))
    command = [*COMMAND, "replay", "--config.file", str(config), "--events-out", str(events), str(log)]
    result = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert (result.returncode, result.stderr) == (0, b""), result.stderr
    (raised,) = map(json.loads, events.read_text().splitlines())
    assert (raised["event"], raised["pool"], raised["direction"]) == ("raised", "default", "up")
    assert abs(raised["started_at"] - CHANGE) < 600
    assert raised["deploy"]["text"] == "initech goes live"
    assert "tenant initech" in raised["sentence"]
