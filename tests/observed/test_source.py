"""The SOURCE of a command: exactly one way, and what looks like a known log needs no configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capwatch.cli import main

ROW = {"finished_at": 1_790_000_001.0, "duration_s": 1.0, "prompt_tokens": 5, "output_tokens": 5, "status": 200}
LLAMACPP = Path(__file__).resolve().parents[1] / "formats" / "llamacpp"
CONFIG = """
sources:
  - {name: gateway, path: x.jsonl, format: jsonl}
  - {name: engine, path: y.jsonl, format: jsonl, role: times}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of one request, and a configuration."""
    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_text(f"{json.dumps(ROW)}\n")
    Path("capwatch.yml").write_text(CONFIG)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "SOURCE: is missing; give --config.file F LOG..."),
        (["--state-dir", "s", "--prometheus", "http://x"], "SOURCE: several are given; give --config.file F LOG..."),
        (["--source", "gateway"], "--config.file: is missing; --source names one of its sources"),
        (["--config.file", "capwatch.yml", "x.jsonl"], "--source: which source do the logs belong to?"),
        (["--config.file", "capwatch.yml", "--source", "g"], "--source: no source 'g'; one of gateway, engine"),
        (["--config.file", "none.yml"], "none.yml: cannot be read"),
        (["none.jsonl"], "none.jsonl: cannot be read: No such file or directory"),
        (["capwatch.yml"], "capwatch.yml: looks like no format; give --config.file"),
        (["--pool", "chat", "x.jsonl"], "--pool: no request of 'chat'; there are default"),
        (["--format", "csv", "x.jsonl"], "--format: no form 'csv'; one of mooncake, azure, guidellm"),
    ],
)  # fmt: skip
def test_refusals(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2, nothing on stdout."""
    code = main(["profile", *words])
    shown = capsys.readouterr()
    assert (code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert shown.err.startswith(said)


def test_logs_that_look_different_need_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    """Which is told with both kinds."""
    sample = next(path for path in sorted(LLAMACPP.glob("*.log")))
    assert main(["profile", "x.jsonl", str(sample)]) == 2
    assert "looks like llamacpp, x.jsonl like jsonl; give --config.file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["x.jsonl"], ["--config.file", "capwatch.yml", "--source", "engine", "x.jsonl"]])
def test_a_log_that_is_read_alone_counts(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a configuration, and where its source only adds to requests of others that are not read."""
    assert main(["profile", *words]) == 0
    assert json.loads(capsys.readouterr().out)["window"]["requests"] == 1
