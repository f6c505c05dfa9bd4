"""The command: its files, refusals of one line, weeks that are hardly told; and what it never does to the daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from capwatch.cli import main
from capwatch.review import extra
from capwatch.review.calendar import IsoWeek
from tests.end_to_end.command import COMMAND
from tests.keep.disks import small_disk

WEEK = IsoWeek(2026, 10)
CONFIG = "sources: [{name: gateway, path: access.jsonl, format: jsonl}]\n"


def row(second: float, **told: Any) -> str:
    """A line of the log, some seconds into Tuesday."""
    at = WEEK.since + 86400 + second
    return json.dumps({"finished_at": at, "duration_s": 1.0, "model": "chat", "status": 200} | told) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's working folder."""
    (tmp_path / "capwatch.yml").write_text(CONFIG)
    (tmp_path / "access.jsonl").write_text("".join(row(second, tenant="acme") for second in range(50)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def review(*words: str) -> int:
    """The exit code."""
    return main(["review", "--config.file", "capwatch.yml", *words])


def written(folder: Path) -> dict[str, Any]:
    """The document."""
    found: dict[str, Any] = json.loads((folder / "review.json").read_text())
    return found


def test_three_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Page, Markdown and JSON, named on stdout."""
    assert review("--week", "2026-W10", "--out", "review.html") == 0
    names = capsys.readouterr().out.split()
    assert names == ["review.html", "review.md", "review.json"]
    assert all((folder / name).stat().st_size for name in names)


def test_no_room_beside_the_logs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A history of the logs is made while the review is written: where the disk is full a line names the place."""
    with small_disk(folder / "tmp", "64k") as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        assert review("--week", "2026-W10", "--out", "review.html") == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{disk}/capwatch-review-" in line
        assert "the disk is full" in line
        assert "TMPDIR" in line
        assert not list(disk.iterdir())


def test_a_stop_leaves_nothing_behind(folder: Path) -> None:
    """The history of the logs goes with the review, also where it is told to end."""
    (folder / "tmp").mkdir()
    command = [*COMMAND, "review", "--week", "2026-W10", "--config.file", "capwatch.yml", "--out", "review.html"]
    with subprocess.Popen(command, cwd=folder, env={**os.environ, "TMPDIR": str(folder / "tmp")}) as process:
        while not list((folder / "tmp").glob("capwatch-review-*/history.db")):
            assert process.poll() is None
            time.sleep(0.01)
        process.terminate()
        assert process.wait(30) in (130, -signal.SIGINT)  # Python's own way out of an import that was interrupted
    assert not list((folder / "tmp").iterdir())


def test_what_has_not_closed_counts(folder: Path) -> None:
    """Nobody goes on with the logs, so that their last minutes are told, too."""
    assert review("--week", "2026-W10", "--out", "review.html") == 0
    assert written(folder)["pools"]["default"]["requests"] == 50


def test_the_keys_of_the_contract(folder: Path) -> None:
    """What other programs may rely on is there, whatever the log tells."""
    assert review("--week", "2026-W10", "--out", "review.html") == 0
    found = written(folder)
    assert (found["week"], found["from"], found["to"]) == ("2026-W10", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z")
    assert {"pools", "drifts", "findings", "missing"} <= found.keys()
    pool = found["pools"]["default"]
    assert {
        "cost_before", "cost_after", "utilisation_before", "utilisation_after", "replicas", "replicas_needed", "bursts",
        "goodput_ratio", "headroom_replicas",
    } <= pool.keys()  # fmt: skip
    assert pool["bursts"].keys() == {"p99_to_median_ratio", "longest_seconds", "max_ramp_rps"}
    assert all(one.keys() >= {"title", "severity", "evidence", "remedies"} for one in found["findings"])
    assert all(one.keys() == {"what", "why", "provide"} for one in found["missing"])


def test_without_tokens_nothing_is_zero(folder: Path) -> None:
    """Cost, utilisation and replicas are null, and it says what would tell them."""
    assert review("--week", "2026-W10", "--out", "review.html") == 0
    found = written(folder)
    pool = found["pools"]["default"]
    assert [pool[key] for key in ("cost_before", "cost_after", "utilisation_after", "replicas_needed")] == [None] * 4
    assert any("token counts" in one["provide"] for one in found["missing"])


def test_an_empty_week_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A week of which nothing is told has a review that says so."""
    assert review("--week", "2026-W20", "--out", "review.html") == 0
    assert "no request of 2026-W20" in capsys.readouterr().err
    assert written(folder)["pools"] == {}
    assert any(one["what"] == "the week" for one in written(folder)["missing"])


def test_one_tenant_a_leap_of_the_clock_and_a_gap(folder: Path) -> None:
    """A clock that leaps a day ahead and back, and hours of silence: a review all the same, which names the silence."""
    lines = [row(second, tenant="acme", prompt_tokens=900, output_tokens=40) for second in range(3000)]
    lines += [row(86_400, tenant="acme", prompt_tokens=900, output_tokens=40)]
    lines += [row(10_000 + second, tenant="acme", prompt_tokens=900, output_tokens=40) for second in range(3000)]
    (folder / "access.jsonl").write_text("".join(lines))
    assert review("--week", "2026-W10", "--out", "review.html") == 0
    found = written(folder)
    assert found["pools"]["default"]["cost_after"] == pytest.approx(900 / 4000 + 40 / 160)
    assert found["pools"]["default"]["silences"]


def test_another_week_beside_it(folder: Path) -> None:
    """--compare takes a week of the same year without its year."""
    assert review("--week", "2026-W10", "--compare", "W09", "--out", "review.html") == 0
    assert written(folder)["sections"][0]["title"] == "Against 2026-W09"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--week", "W10", "--out", "r.html"], "--week: 'W10' is no week; use the ISO form, such as 2026-W48"),
        (["--week", "2026-W54", "--out", "r.html"], "--week: '2026-W54': that year has no week 54"),
        (["--week", "2026-W10", "--out", "nowhere/r.html"], "--out: nowhere: no such folder"),
        (["--week", "2026-W10", "--compare", "last", "--out", "r.html"], "--compare: 'last' is no week"),
        (["--week", "2026-W10"], "required: --out"),
    ],
)
def test_refusals(words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that names the place, and nothing on stdout."""
    assert review(*words) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert said in shown.err


def test_without_the_extra(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not installed is named with what installs it."""
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_svg"):
        monkeypatch.setitem(sys.modules, name, None)
    assert review("--week", "2026-W10", "--out", "review.html") == 2
    assert "pip install 'capwatch[review]'" in capsys.readouterr().err
    assert extra.__doc__


def test_the_daemon_never_loads_it() -> None:
    """Neither the review nor what it needs is imported by what runs all day."""
    code = (
        "import sys, capwatch.cli, capwatch.daemon.run; capwatch.cli.parser(['run']); "
        "print(sorted({'pandas', 'scipy', 'statsmodels', 'matplotlib', 'capwatch.review'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
