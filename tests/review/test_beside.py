"""What is planted beside the requests comes out: of logs as of a history, and of a history that was told twice."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from capwatch.cli import main
from capwatch.review.calendar import IsoWeek
from tests.end_to_end.command import COMMAND
from tests.end_to_end.prometheus import prometheus

from . import planted
from .planted import HOUR, HOURS, PHASES, Planted

WEEK = IsoWeek(2026, 48)
SOURCES = ("logs", "state", "told twice")


def review(folder: Path, *source: str) -> dict[str, Any]:
    """The document that the command writes."""
    out = folder / "review.html"
    assert main(["review", "--week", str(WEEK), *source, "--out", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Planted, dict[str, Any]]:
    """The logs, and the reviews of all sources."""
    folder = tmp_path_factory.mktemp("planted")
    one = Planted(folder, WEEK.since + 24 * HOUR)
    told, state = {"logs": review(folder, "--config.file", str(one.config))}, folder / "state"
    for source in SOURCES[1:]:
        assert main(["replay", "--config.file", str(one.config), "--state-dir", str(state)]) == 0
        told[source] = review(folder, "--state-dir", str(state))
    return one, told


def of(made: tuple[Planted, dict[str, Any]], source: str) -> tuple[Any, dict[str, float]]:
    """(truth, what the review shows of the pool)."""
    return made[0].truth, made[1][source]["pools"]["chat"]["shown"]


@pytest.mark.parametrize("source", SOURCES)
def test_tries_and_work_for_nothing(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """Retries, aborts and timeouts, each with its replica-seconds."""
    truth, shown = of(made, source)
    assert shown["retries"] == shown["resent_requests"] == truth["retries"] > 10
    assert shown["resent_replica_seconds"] == pytest.approx(truth["resent_cost"])
    assert shown["abandoned_requests"] == truth["abandoned"]
    assert shown["abandoned_replica_seconds"] == pytest.approx(truth["abandoned_cost"], rel=0.02)
    unique = truth["requests"] - truth["retries"]
    assert shown["retry_amplification_ratio"] == pytest.approx((unique + truth["retries"]) / unique)


@pytest.mark.parametrize("source", SOURCES)
def test_coverage(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """What the engine's records tell of that no line does, and the other way round."""
    truth, shown = of(made, source)
    assert shown["coverage_ratio"] == pytest.approx(truth["served"] / truth["records"], rel=1e-3)
    assert shown["join_ratio"] == pytest.approx(truth["joined"] / truth["requests"], rel=1e-3)


@pytest.mark.parametrize("source", SOURCES)
def test_engines(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """A restart, preemptions, a replica more, one less in the middle of its work, and one that takes its place."""
    truth, shown = of(made, source)
    for name in ("restarts", "preemptions"):
        assert shown[name] == truth[name] > 0, name
    assert (shown["replicas_came"], shown["replicas_left"]) == (truth["came"], truth["left"]) == (3, 1)
    assert shown["replicas_flapped"] == 1
    assert shown["replicas_heard"] * shown["hours_heard"] * HOUR == pytest.approx(truth["heard_s"], abs=60)
    assert (shown["replicas_fewest"], shown["replicas_most"]) == pytest.approx((1, 2), abs=0.05)
    assert shown["kv_measured"] == pytest.approx(planted.KV)


@pytest.mark.parametrize("source", SOURCES)
def test_cold_starts(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """By phase, the mean of all starts; and it is the cold start of the ladder, where none is configured."""
    truth, shown = of(made, source)
    for phase, after in PHASES.items():
        assert shown[f"start_{phase}_count"] == truth[f"start_{phase}"] == 4, phase
        assert shown[f"start_{phase}_s"] == after
    steps = made[1][source]["pools"]["chat"]["multiples"]
    assert all(step["last_wait_s"] is not None for step in steps)


@pytest.mark.parametrize("source", SOURCES)
def test_in_flight(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """By λW and as the engines count; the log knows of less than they do."""
    truth, shown = of(made, source)
    assert shown["in_flight_law"] == pytest.approx(truth["in_engine_s"] / HOURS / HOUR, rel=0.01)
    assert shown["in_flight_measured"] == pytest.approx(truth["in_flight_s"] / HOURS / HOUR, rel=0.01)
    (finding,) = (one for one in made[1][source]["findings"] if "follow from the log" in one["title"])
    assert finding["numbers"]["residual"] == pytest.approx(truth["in_flight_s"] / truth["in_engine_s"] - 1, rel=0.02)


@pytest.mark.parametrize("source", SOURCES)
def test_lines(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """Every planted line has its fate under the gateway's name, in the table of the page."""
    (section,) = (one for one in made[1][source]["sections"] if one["title"] == "Data quality")
    table = next(one for one in section["tables"] if one["columns"][0] == "source")
    (row,) = (row for row in table["rows"] if row[0] == "gateway")
    told = dict(zip(table["columns"], row, strict=True))
    truth = made[0].truth
    assert told["dropped: malformed"] == f"{truth['malformed']:,}"
    assert told["duplicates"] == f"{truth['duplicates']:,}"
    assert told["usage unknown"] == f"{truth['usage_unknown']:,}"


@pytest.mark.parametrize("source", SOURCES)
def test_latency_by_prompt_length(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """The three lengths that there are, each with its time to first token and per token."""
    (section,) = (one for one in made[1][source]["sections"] if one["title"] == "Workload")
    table = next(one for one in section["tables"] if one["columns"][0] == "prompt tokens")
    assert [row[0] for row in table["rows"]] == ["≤ 256", "≤ 4,096", "≤ 65,536"]
    for row, prompt in zip(table["rows"], planted.PROMPTS, strict=True):
        for cell in row[2:4]:
            assert amount(cell) == pytest.approx(planted.QUEUE + planted.TTFT[prompt], rel=0.06)
        assert amount(row[4]) == pytest.approx(planted.TPOT, rel=0.06)


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_that_is_told_is_missing(made: tuple[Planted, dict[str, Any]], source: str) -> None:
    """What no engine and no log of these tells is all that stands there."""
    missing = " ".join(one["what"] for one in made[1][source]["missing"])
    for word in ("retries", "preemptions", "cold start", "λW", "does not see", "dropped", "prompt length"):
        assert word not in missing, word


def amount(text: str) -> float:
    """Seconds of a text such as `1.1 s` or `20 ms`."""
    value, unit = text.split()
    return float(value) * {"s": 1.0, "ms": 1e-3}[unit]


def test_what_is_not_told_is_missing_and_never_zero(tmp_path: Path) -> None:
    """A log of tokens and times alone: no engine, no tries, no start."""
    log, config = tmp_path / "log.jsonl", tmp_path / "capwatch.yml"
    rows = (
        {
            "finished_at": WEEK.since + 60 * n,
            "duration_s": 1.0,
            "prompt_tokens": 10,
            "output_tokens": 5,
            "outcome": "ok",
        }
        for n in range(600)
    )
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config.write_text(f"sources: [{{name: gateway, path: {log}, format: jsonl}}]\npools: [{{name: p}}]\n")
    found = review(tmp_path, "--config.file", str(config))
    missing = " ".join(one["what"] for one in found["missing"])
    for word in ("retries of", "preemptions and recomputed", "cold start", "λW", "does not see", "prompt length"):
        assert word in missing, word
    (shown,) = (pool["shown"] for pool in found["pools"].values())
    assert set(shown) == {"abandoned_requests", "abandoned_replica_seconds"}


def test_two_gateways_are_read_side_by_side(tmp_path: Path) -> None:
    """Each with all its requests: merged by the hour, those of the second file would be too late for their rollups."""
    told = []
    for name in ("one", "two"):
        log = tmp_path / f"{name}.jsonl"
        rows = (
            {"finished_at": WEEK.since + 30 * n, "model": name, "prompt_tokens": 10, "outcome": "ok"}
            for n in range(240)
        )
        log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        told.append((f"{{name: {name}, path: {log}, format: jsonl}}", f"{{name: {name}, match: {{model: {name}}}}}"))
    config = tmp_path / "capwatch.yml"
    sources, pools = (", ".join(part) for part in zip(*told, strict=True))
    config.write_text(f"sources: [{sources}]\npools: [{pools}]\n")
    found = review(tmp_path, "--config.file", str(config))
    assert [pool["requests"] for pool in found["pools"].values()] == [240, 240]


def test_a_history_of_an_older_version_lacks_them(made: tuple[Planted, dict[str, Any]], tmp_path: Path) -> None:
    """It has none of their tables: the review says so, and tells the rest."""
    state = tmp_path / "state"
    shutil.copytree(made[0].config.parent / "state", state)
    with sqlite3.connect(state / "history.db") as file:
        file.execute("DELETE FROM slot WHERE name != 'rollup'")
    found = review(tmp_path, "--state-dir", str(state))
    missing = " ".join(one["what"] for one in found["missing"])
    for word in (
        "retries of",
        "preemptions and recomputed",
        "cold start",
        "λW",
        "does not see",
        "dropped",
        "prompt length",
    ):
        assert word in missing, word
    pool, same = found["pools"]["chat"], made[1]["state"]["pools"]["chat"]
    assert "shown" not in pool
    assert (pool["requests"], pool["cost_after"]) == (same["requests"], same["cost_after"])


FAMILIES = (
    "requests,departures,tokens,cost_replica_seconds,replicas,phase_seconds,engine_preemptions,engine_restarts,"
    "engine_state,inflight_measured,inflight_littles_law,cold_start_seconds,abandoned_replica_seconds,retries,"
    "retry_amplification_ratio"
)


@pytest.mark.skipif(not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed")
def test_a_prometheus_tells_what_its_metrics_do(made: tuple[Planted, dict[str, Any]], tmp_path: Path) -> None:
    """Counters but for their first hour, gauges by the hours' ends; what it has no metric of is missing."""
    one, out, blocks = made[0], tmp_path / "out.om", tmp_path / "blocks"
    families = ",".join(f"capwatch_{name}" for name in FAMILIES.split(","))
    words = ["--step", "300s", "--openmetrics-out", str(out), "--families", families]
    subprocess.run(
        [*COMMAND, "replay", "--config.file", str(one.config), *words], stdout=subprocess.DEVNULL, check=True
    )
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", out, blocks], capture_output=True, check=True
    )
    with prometheus(blocks) as server:
        shown = review(tmp_path, "--prometheus", server.url)["pools"]["chat"]["shown"]
    truth = one.truth
    assert shown["restarts"] == truth["restarts"]
    assert abs(shown["preemptions"] - truth["preemptions"]) <= 4  # the logs go on for half an hour
    assert shown["abandoned_replica_seconds"] == pytest.approx(truth["abandoned_cost"] * (HOURS - 1) / HOURS, rel=0.3)
    assert shown["replicas_most"] == 2
    assert {phase: shown[f"start_{phase}_s"] for phase in PHASES} == PHASES
    assert shown["in_flight_measured"] == pytest.approx(truth["in_flight_s"] / HOURS / HOUR, rel=0.35)
    assert 1 < shown["retry_amplification_ratio"] < 1.1
