"""`replay --state-dir`: the history that reviews read and detectors learn from, of finished logs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from capwatch.keep.bundle import Texts
from capwatch.keep.past import Past
from capwatch.keep.state import Lock
from tests.drifting.test_drifting import BEGIN, lines
from tests.end_to_end.command import capwatch


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with one log of four hours."""
    log, found = tmp_path / "log.jsonl", tmp_path / "capwatch.yml"
    log.write_text("".join(json.dumps(row) + "\n" for row in lines(3.6, dearer=True)))
    document = {
        "sources": [{"name": "log", "path": str(log), "format": "jsonl"}],
        "pools": [{"name": "chat", "match": {"model": "chat-*"}, "replicas": 12}],
    }
    found.write_text(yaml.safe_dump(document))
    return found


def content(folder: Path) -> list[list[tuple[object, ...]]]:
    """All rows of all tables."""
    with closing(sqlite3.connect(folder / "history.db")) as db:
        return [
            db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()  # noqa: S608
            for table in ("second", "slot", "tick", "event", "setting")
        ]


def test_a_replay_leaves_a_history_once(tmp_path: Path, config: Path) -> None:
    """Every tick that is over, rollups, the drift and the settings; the page is the one without; again is the same."""
    folder = tmp_path / "state"
    plain = capwatch("replay", "--config.file", config, cwd=tmp_path)
    first = capwatch("replay", "--config.file", config, "--state-dir", folder, cwd=tmp_path)
    assert (first.returncode, first.stderr) == (0, b"")
    families = [one.stdout.split(b"process_")[0].count(b"\ncapwatch_requests_total") for one in (plain, first)]
    assert families[0] == families[1] > 0
    rows = [*lines(3.6, dearer=True)]
    last = max(row["finished_at"] for row in rows)
    with closing(Past(str(folder))) as past:
        ticks = past.ticks("chat", 0, 1 << 40, Texts())
        over = [row for row in rows if row["finished_at"] // 10 < (last - 5) // 10]
        assert ticks["n"].sum() == len(over)
        assert ticks["computed"].sum() == pytest.approx(sum(row["prompt_tokens"] for row in over), rel=1e-6)
        assert [one["event"] for one in past.events(0, 1e11, "chat")] == ["raised"]
        assert past.settings(last)["chat"]["replicas"] == 12
        ends = [slot.at + slot.span for slot in past.rollups(BEGIN, last, 300)]
        assert last - 300 < max(ends) <= last
        seconds, _ = past.seconds("chat", 0, 1e11)
        assert max(seconds) < last
    before = content(folder)
    again = capwatch("replay", "--config.file", config, "--state-dir", folder, cwd=tmp_path)
    assert (again.returncode, content(folder)) == (0, before)


def test_the_directory_of_a_daemon_that_runs_is_refused(tmp_path: Path, config: Path) -> None:
    """One line, exit 2, and nothing is printed."""
    lock = Lock(str(tmp_path / "state"))
    result = capwatch("replay", "--config.file", config, "--state-dir", tmp_path / "state", cwd=tmp_path)
    lock.release()
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().count("\n") == 1
    assert "--state-dir" in result.stderr.decode()


def test_a_damaged_history_is_refused(tmp_path: Path, config: Path) -> None:
    """It is not thrown away, and the line says what to do."""
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "history.db").write_bytes(b"no history" * 1000)
    result = capwatch("replay", "--config.file", config, "--state-dir", folder, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.decode().count("\n") == 1
    assert "move history.db away" in result.stderr.decode()
