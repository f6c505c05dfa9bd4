"""Traces for load generators: the columns of the public ones, in order, and no text."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from capwatch.cli import main

ROWS = [
    {"finished_at": 1_700_158_624.0, "started_at": 1_700_158_623.97996, "prompt_tokens": 4808, "output_tokens": 10},
    {
        "finished_at": 1_700_158_629.0,
        "started_at": 1_700_158_622.5,
        "prompt_tokens": 1100,
        "cached_tokens": 600,
        "output_tokens": 7,
    },
    {
        "finished_at": 1_700_158_630.0,
        "started_at": 1_700_158_625.0,
        "prompt_tokens": 600,
        "cached_tokens": 512,
        "output_tokens": 3,
    },
    {"finished_at": 1_700_158_631.0, "duration_s": 1.0},
    {"finished_at": 1_700_158_632.0, "duration_s": 1.0, "prompt_tokens": 5, "output_tokens": 5, "cache_hit": True},
]
TRACES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "traces"
Form = Callable[[str], list[str]]


@pytest.fixture
def form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Form:
    """A way to the lines of a trace of `ROWS`."""
    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_text("".join(f"{json.dumps(row | {'tenant': 'acme', 'status': 200})}\n" for row in ROWS))

    def call(name: str) -> list[str]:
        assert main(["profile", "x.jsonl", "--format", name]) == 0
        shown = capsys.readouterr()
        assert shown.err == "warning: 2 requests without a time or lengths are left out\n"
        assert "acme" not in shown.out
        return shown.out.splitlines()

    return call


def test_mooncake(form: Form) -> None:
    """Milliseconds from the first arrival; a hash for each 512 tokens, equal where both had it from the cache."""
    assert [json.loads(line) for line in form("mooncake")] == [
        {"timestamp": 0, "input_length": 1100, "output_length": 7, "hash_ids": [0, 1, 2]},
        {"timestamp": 1480, "input_length": 4808, "output_length": 10, "hash_ids": list(range(3, 13))},
        {"timestamp": 2500, "input_length": 600, "output_length": 3, "hash_ids": [0, 13]},
    ]


def test_azure(form: Form) -> None:
    """The header and the spelling of the public trace."""
    assert form("azure") == [
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:17:02.5000000,1100,7",
        "2023-11-16 18:17:03.9799600,4808,10",
        "2023-11-16 18:17:05.0000000,600,3",
    ]


def test_guidellm(form: Form) -> None:
    """The default columns of its trace reader, seconds from the first arrival."""
    assert [json.loads(line) for line in form("guidellm")] == [
        {"timestamp": 0.0, "input_length": 1100, "output_length": 7},
        {"timestamp": 1.47996, "input_length": 4808, "output_length": 10},
        {"timestamp": 2.5, "input_length": 600, "output_length": 3},
    ]


def test_the_public_traces_look_the_same(form: Form) -> None:
    """Their own first lines have these columns."""
    paths = [
        TRACES / name for name in ("AzureLLMInferenceTrace_code.2023.csv.gz", "mooncake_conversation_trace.jsonl.gz")
    ]
    if not all(path.exists() for path in paths):
        pytest.skip("no public traces beside this checkout")
    with gzip.open(paths[0], "rt") as file:
        assert next(csv.reader(file)) == form("azure")[0].split(",")
    with gzip.open(paths[1], "rt") as file:
        assert list(json.loads(next(file))) == list(json.loads(form("mooncake")[0]))
