"""`capwatch backtest` on a state's history and on logs: the events of the same past as a trace, for each pool."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from capwatch.cli import main
from capwatch.config.schema import Pool
from capwatch.drift.rows import Rows
from capwatch.drift.ticks import Ticks
from capwatch.keep.history import History
from capwatch.ledger import CLASS, POOL, ROUTE, TENANT, Closed, Names, Sums
from capwatch.meters.drift import TICKS
from capwatch.sketch import Cells
from tests.backtest.test_backtest import COLUMNS, lines
from tests.drift.sample import DAY, HOUR, MONDAY, NAMES, rows

LEARNT = MONDAY + 3 * DAY
ONSET = LEARNT + 10 * HOUR
NOTE = {"at": ONSET - 300, "text": "4 to 8 chunks", "pool": "chat"}
POOLS = [
    Pool("chat", replicas=12, prefill_tokens_per_second=4000, decode_tokens_per_second=160),
    Pool("code", prefill_tokens_per_second=2000, decode_tokens_per_second=80),
]
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def drifted() -> Rows:
    """Three days and eleven hours, a minute in six; in the last one there are many more long requests."""
    parts = [rows(MONDAY, ONSET - MONDAY, 1, rate=2.0), rows(ONSET, HOUR, 2, rate=2.0, long=0.4)]
    whole = Rows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__slots__})
    return whole.take(whole.at // 60 % 6 == 0)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command and returns the events."""

    def found(*words: str) -> list[dict[str, Any]]:
        assert main(["backtest", *words, "--learn-until", str(LEARNT), "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return found


@pytest.fixture
def of_trace(tmp_path: Path, drifted: Rows, run: Run) -> dict[str, Any]:
    """The event of the same past as a trace."""
    path = tmp_path / "trace.csv"
    path.write_text(COLUMNS + "".join(lines(drifted)))
    (event,) = run("--trace", str(path), "--prefill-tps", "4000", "--decode-tps", "160")
    return event


def state(folder: Path, some: Rows) -> None:
    """Write a history as a daemon leaves it: one pool with all of the past, one with its first hours."""
    history, names = History(str(folder), 1 << 30), Names()
    history.note_settings(MONDAY, {pool.name: msgspec.to_builtins(pool) for pool in POOLS})
    history.annotate(NOTE["at"], NOTE["pool"], NOTE["text"])  # type: ignore[arg-type]
    axes = {TENANT: "tenant", ROUTE: "route", CLASS: "class"}
    ids = [np.array([names.id(axis.name, text) for text in NAMES[one]]) for axis, one in axes.items()]
    closed = []
    for number, pool in enumerate(POOLS):
        ticks = Ticks.of(some, pool.prefill_tokens_per_second, pool.decode_tokens_per_second)
        ticks = ticks.take(ticks.tick < (MONDAY + 6 * HOUR) // 10) if number else ticks
        codes = (ids[0][ticks.tenant], ids[1][ticks.route], ids[2][ticks.klass])
        keys = TICKS.pack(names.id(POOL.name, pool.name), *codes)
        edges = np.flatnonzero(np.diff(ticks.tick, prepend=-1))
        for begin, end in zip(edges, [*edges[1:], len(ticks)], strict=True):
            order = np.argsort(keys[begin:end])
            sums = Sums(len(TICKS.columns))
            sums.add(keys[begin:end][order], ticks.sums[begin:end][order])
            closed.append(Closed(TICKS.name, int(ticks.tick[begin]), sums, Cells()))
    history.keep(closed, names, float(ONSET + HOUR))
    history.close()


def same(event: dict[str, Any], other: dict[str, Any]) -> None:
    """The same drift, as two sources tell it."""
    for key in ("event", "direction", "at", "started_at", "verdict"):
        assert event[key] == other[key], key
    for key in ("cost_before", "cost_after", "effects"):
        assert event[key] == pytest.approx(other[key], rel=1e-4), key


def test_a_state_tells_what_its_trace_does(tmp_path: Path, drifted: Rows, run: Run, of_trace: dict[str, Any]) -> None:
    """Each pool by its own rates: the drift in one, with its deploy note and replicas, and none in the other."""
    state(tmp_path, drifted)
    (event,) = run("--state-dir", str(tmp_path))
    same(event, of_trace)
    assert (event["pool"], event["deploy"]) == ("chat", NOTE)
    assert 'after the deploy note "4 to 8 chunks"' in event["text"]
    assert "12 there" in event["text"]


def test_logs_tell_what_their_trace_does(tmp_path: Path, drifted: Rows, run: Run, of_trace: dict[str, Any]) -> None:
    """By the daemon's own road; a drift that is put in is told for each pool."""
    log, deploys, config = tmp_path / "log.jsonl", tmp_path / "deploys.jsonl", tmp_path / "capwatch.yml"
    deploys.write_text(json.dumps(NOTE) + "\n")
    with log.open("w") as file:
        for line in lines(drifted):
            at, tenant, route, klass, _, prompt, _, output, outcome = line.strip().split(",")
            told = {"finished_at": float(at), "tenant": tenant, "route": route, "model": "chat", "engine": klass}
            tokens = {"prompt_tokens": int(prompt), "output_tokens": int(output), "cached_tokens": 0}
            file.write(json.dumps(told | tokens | {"outcome": outcome}) + "\n")
    document = {
        "sources": [{"name": "log", "path": str(log), "format": "jsonl"}],
        "pools": [{"name": pool.name, "match": {"model": [pool.name]}} for pool in POOLS],
        "classes": [
            {"name": "long", "match": {"route": "/v1/sum"}},
            {"name": "policy", "match": {}},
        ],
        "deploys": str(deploys),
    }
    config.write_text(json.dumps(document))
    event, injected = run("--config.file", str(config), str(log), "--inject", "output=60%", "--trials", "3")
    same(event, of_trace)
    assert (event["pool"], event["deploy"]) == ("chat", NOTE)
    assert injected.items() >= {"event": "injected", "pool": "chat", "kind": "output", "onsets": 3}.items()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "SOURCE: is missing; give --trace FILE, --state-dir DIR, or --config.file"),
        (["--prometheus", "http://h:9090"], "--prometheus: a server with the query API has no sums of ten seconds"),
        (["--trace", "x.csv", "--state-dir", "."], "--trace: is a source of its own"),
        (["--trace", "x.csv", "--prefill-tps", "1", "--decode-tps", "1"], "--learn-until: is needed with --trace"),
        (["--state-dir", ".", "--decode-tps", "5"], "--decode-tps: belongs to --trace"),
    ],
)
def test_refusals_are_one_line(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, and one line that names the option and the fix."""
    assert main(["backtest", *words]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(expected)
