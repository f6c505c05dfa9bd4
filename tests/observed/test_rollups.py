"""The profile of a state directory is that of the log behind it, as far as rollups tell it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from capwatch.cli import main
from capwatch.config.schema import Class, Config, Match, Pool
from capwatch.keep.history import History
from tests.spine import Spine

START = 1_790_000_400.0 - 1_790_000_400.0 % 3600
SECONDS = 3000
CONFIG = Config(
    pools=(Pool("chat", Match(model=("chat",)), prefill_tokens_per_second=4000, decode_tokens_per_second=160),),
    classes=(Class("long", Match(route=("/long",))), Class("short")),
)


def rows() -> list[dict[str, Any]]:
    """Two a second for fifty minutes, a quarter of them long ones of one tenant; times that one may close behind."""
    found = []
    for number in range(2 * SECONDS):
        long = number % 4 == 0
        at = START + number / 2
        found.append(
            {
                "started_at": at, "finished_at": at + 0.25, "model": "chat", "status": 200,
                "tenant": "acme" if long else "bolt", "route": "/long" if long else "/short",
                "prompt_tokens": 4000 if long else 1000, "cached_tokens": 2000 if long else 0,
                "output_tokens": 320 if long else 80,
            }
        )  # fmt: skip
    return found


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A state directory with the history of these rows."""
    spine = Spine(CONFIG)
    spine.feed(*rows(), now=START + SECONDS)
    spine.tick(START + 3 * 3600)
    with closing(History(str(tmp_path), 1 << 30)) as history:
        history.keep(spine.totals.closed, spine.totals.names, spine.totals.clock)
        history.note_settings(START, {"chat": {"assumed": False, "calibration": None}})
    return str(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The document."""
    assert main(["profile", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_the_rows_say(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Sums to the token, quantiles within the sketch's 0.55 %, rates by the second."""
    found = told(capsys, "--state-dir", state)
    assert found["window"]["requests"] == 2 * SECONDS
    assert found["prompt_tokens"]["mean"] == pytest.approx(1750)
    assert found["prompt_tokens"]["p50"] == pytest.approx(1000, rel=0.0055)
    assert found["prompt_tokens"]["p99"] == pytest.approx(4000, rel=0.0055)
    assert found["prefix_cache_hit_rate"] == pytest.approx(500 / 1750)
    long = found["classes"]["long"]
    assert (long["share"], long["mean_computed_prompt_tokens"], long["mean_output_tokens"]) == (0.25, 2000, 320)
    assert long["mean_cost"] == pytest.approx(2.5, rel=1e-5)
    assert found["cost"]["mean_replica_seconds"] == pytest.approx(1.1875, rel=1e-5)
    assert found["cost"]["calibration"] == "configured"
    assert found["tenants"]["top1_share_of_cost"] == pytest.approx(0.25 * 2.5 / 1.1875, rel=1e-5)
    assert found["arrivals"]["mean_rps"] == pytest.approx(2 * SECONDS / 3600)
    assert found["streaming"] is None
    assert found["notes"]["streaming"] == "the history does not tell it"


def test_a_window_in_whole_rollups(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Five minutes that are begun belong to it."""
    found = told(capsys, "--state-dir", state, "--since", str(START + 610), "--until", str(START + 1100))
    assert (found["window"]["requests"], found["arrivals"]["mean_rps"]) == (1200, 2.0)
    assert found["window"]["since"].endswith(":10:00Z")


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["--pool", "cat"], "its history has no request of that window and pool cat", 1),
        (["--until", "1000"], "its history has no request of that window", 1),
        (["--format", "azure"], "--format: a history has no single requests; give --config.file F LOG...", 2),
    ],
)
def test_refusals(words: list[str], said: str, code: int, state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    assert main(["profile", "--state-dir", state, *words]) == code
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert said in shown.err


def test_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without one is named, in one line."""
    assert main(["profile", "--state-dir", str(tmp_path)]) != 0
    assert capsys.readouterr().err.count("\n") == 1
