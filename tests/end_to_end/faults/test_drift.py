"""A drift in the daemon: told on the page, by the API and in the log; kept over a kill; gone when it is accepted."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

from tests.drifting.test_drifting import lines
from tests.end_to_end.command import COMMAND

from .daemon import Daemon, until


def test_a_drift_survives_a_kill_and_ends_when_accepted(tmp_path: Path) -> None:
    """The same sentence before and after; an acknowledgement is durable when it returns, and a second one refused."""
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines(3.6, dearer=True)))
    daemon = Daemon(
        tmp_path,
        {
            "sources": [{"name": "gateway", "path": str(log), "format": "jsonl", "start": "beginning"}],
            "pools": [{"name": "chat", "match": {"model": "chat-*"}, "replicas": 12}],
        },
    )
    with closing(daemon):
        _told_kept_and_accepted(daemon)


def _told_kept_and_accepted(daemon: Daemon) -> None:
    daemon.start()
    until(lambda: _drifts(daemon)["active"] != [], "the drift is told")
    (before,) = _drifts(daemon)["active"]
    assert "tenant initech" in before["sentence"]
    assert before["sentence"] in daemon.log.read_text()
    daemon.kill()
    daemon.start()
    until(lambda: _drifts(daemon)["active"] != [], "the drift is told again")
    assert _drifts(daemon)["active"] == [before]
    acknowledge = [*COMMAND, "acknowledge", "--pool", "chat", "--state-dir", str(daemon.folder / "state")]
    done = subprocess.run(acknowledge, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    told = _drifts(daemon)
    assert (told["active"], told["events"][-1]["note"]) == ([], "accepted")
    again = subprocess.run(acknowledge, capture_output=True, text=True, timeout=60, check=False)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "no drift is active in chat" in again.stderr
    assert daemon.stop()[0] == 0


def _drifts(daemon: Daemon) -> dict[str, list[dict[str, str]]]:
    with urlopen(f"http://{daemon.address}/api/v1/drift", timeout=30) as answer:
        found: dict[str, list[dict[str, str]]] = json.load(answer)
        return found
