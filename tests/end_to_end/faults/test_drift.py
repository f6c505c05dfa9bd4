"""A drift in the daemon: told on the page, by the API and in the log; kept over a kill; gone when it is accepted."""

from __future__ import annotations

import json
import math
import random
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

from capwatch.keep.past import Past
from tests.drifting.test_drifting import BEGIN, lines
from tests.end_to_end.command import COMMAND, Page
from tests.spine import request

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


def made(begin: float, hours: float, rate: float, *, newcomer: float = 0.0) -> str:
    """Lines of some hours; of two tenants, and a part of a third one whose requests cost six times as much."""
    draw, at, found = random.Random(begin), begin, []
    while (at := at + draw.expovariate(rate)) < begin + hours * 3600:
        new = draw.random() < newcomer
        told = {
            "tenant": "initech" if new else draw.choice(["acme", "globex"]),
            "route": "/v1/summaries" if new else "/v1/chat",
            "prompt_tokens": round(draw.lognormvariate(9.2, 0.4) if new else draw.lognormvariate(7.0, 0.5)),
            "output_tokens": 400 if new else 80,
        }
        found.append(json.dumps(request(finished_at=at, **told)) + "\n")
    return "".join(found)


def test_a_replayed_past_teaches_the_daemon_and_a_kill_unteaches_nothing(tmp_path: Path) -> None:
    """Old logs go into the state; the daemon learns from them soon, still knows after a kill, and names who comes."""
    old, log = tmp_path / "old.jsonl", tmp_path / "log.jsonl"
    old.write_text(made(BEGIN, 78, 0.2))
    log.write_text(made(BEGIN + 78 * 3600, 0.5, 2.0))
    daemon = Daemon(
        tmp_path,
        {
            "sources": [{"name": "gateway", "path": str(log), "format": "jsonl", "start": "beginning"}],
            "pools": [{"name": "chat", "match": {"model": "chat-*"}, "replicas": 12}],
        },
    )
    replay = [*COMMAND, "replay", "--config.file", str(daemon.config), "--state-dir", str(tmp_path / "state"), str(old)]
    done = subprocess.run(replay, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    with closing(daemon):
        daemon.start()
        until(lambda: _learning(daemon) == 0.0, "the past is learnt")
        daemon.kill()
        daemon.start()
        until(lambda: _learning(daemon) is not None, "the page is there again")
        assert _learning(daemon) == 0.0
        with log.open("a") as file:
            file.write(made(BEGIN + 78.5 * 3600, 0.1, 2.0, newcomer=0.15))
        until(lambda: _drifts(daemon)["active"] != [], "the drift is told")
        (event,) = _drifts(daemon)["active"]
        assert "tenant initech" in event["sentence"]
        assert daemon.stop()[0] == 0
    with closing(Past(str(tmp_path / "state"))) as past:
        assert past.events(0.0, math.inf) == [event]


def _learning(daemon: Daemon) -> float | None:
    """Whether the pool's history is too short, as the page says."""
    with urlopen(f"http://{daemon.address}/metrics", timeout=30) as answer:
        page = Page(answer.read().decode())
    return page.values("drift_learning", "pool").get(("chat",))
