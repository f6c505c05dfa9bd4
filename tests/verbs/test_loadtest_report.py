"""`capwatch loadtest-report`: tests whose faults are known get the grade they deserve."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from capwatch.cli import main
from tests.calibrate.engine import Engine, Served, poisson, serve

START = 1_790_000_000.0
CONFIG = """
sources: [{name: clients, path: x.jsonl, format: jsonl}]
slo: [{match: {}, ttft: 2s, tpot: 150ms}]
"""
ENGINE = Engine()
Report = Callable[..., tuple[int, dict[str, Any]]]


def rows(done: Sequence[Served], **changed: object) -> list[dict[str, Any]]:
    """What a gateway tells of them, a third of each prompt from the cache."""
    return [
        {
            "started_at": START + one.at, "finished_at": START + one.end, "duration_s": one.end - one.at,
            "ttft_s": one.first - one.at, "prompt_tokens": int(one.prompt), "cached_tokens": int(one.prompt) // 3,
            "output_tokens": one.output, "stream": True, "status": 200, **changed,
        }
        for one in sorted(done, key=lambda one: one.end)
    ]  # fmt: skip


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Report:
    """A way to exit code and report."""
    monkeypatch.chdir(tmp_path)

    def call(made: list[dict[str, Any]], *words: str) -> tuple[int, dict[str, Any]]:
        Path("capwatch.yml").write_text(CONFIG)
        Path("x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in made))
        code = main(["loadtest-report", "--config.file", "capwatch.yml", "--json", *words])
        shown = capsys.readouterr()
        assert shown.err == ""
        found: dict[str, Any] = json.loads(shown.out)
        return code, found

    return call


def grades(found: dict[str, Any]) -> dict[str, str]:
    """The grade of each point."""
    return {name: point["grade"] for name, point in found["points"].items()}


def test_a_good_test_passes_all_four(report: Report) -> None:
    """Poisson arrivals, lognormal lengths, a warm cache, times by phase; exit code 0."""
    code, found = report(rows(serve(ENGINE, poisson(1.2, 1500, 1))))
    assert (code, found["passed"]) == (0, 4)
    assert set(grades(found).values()) == {"pass"}
    assert found["queue"]["drained"]


def test_a_closed_loop_fails(report: Report) -> None:
    """Eight workers that wait for their answers."""
    code, found = report(rows(serve(ENGINE, poisson(1, 600, 2), 8)))
    assert (code, grades(found)["open_loop"]) == (1, "fail")
    assert "each request waits for the end of another" in found["points"]["open_loop"]["why"]


def test_fixed_lengths_fail(report: Report) -> None:
    """512 in, 128 out, as load generators have it by default."""
    made = poisson(1.2, 400, 3)
    for one in made:
        one.prompt, one.output = 512.0, 128
    code, found = report(rows(serve(ENGINE, made)))
    assert (code, grades(found)["distribution"]) == (1, "fail")
    assert found["points"]["distribution"]["why"] == "lengths are fixed"


def test_lengths_of_another_workload_fail(report: Report) -> None:
    """Varied, but twice those of the profile; those of the profile itself pass."""
    made = rows(serve(ENGINE, poisson(1.2, 800, 4)))
    Path("p.json").write_text(
        json.dumps({"prompt_tokens": {"p50": 1100, "p95": 4000}, "output_tokens": {"p50": 70, "p95": 280}})
    )
    assert grades(report(made, "--profile", "p.json")[1])["distribution"] == "pass"
    Path("p.json").write_text(json.dumps({"prompt_tokens": {"p50": 550, "p95": 2000}, "output_tokens": None}))
    assert grades(report(made, "--profile", "p.json")[1])["distribution"] == "fail"


def test_a_cache_that_fills_fails(report: Report) -> None:
    """Nothing from the cache in the first half, half of each prompt in the second."""
    made = rows(serve(ENGINE, poisson(1.2, 800, 5)))
    for number, row in enumerate(sorted(made, key=lambda row: float(row["started_at"]))):
        row["cached_tokens"] = 0 if number < 400 else row["prompt_tokens"] // 2
    code, found = report(made)
    assert (code, grades(found)["controlled_state"]) == (1, "fail")
    assert found["points"]["controlled_state"]["evidence"]["hit_rate_second_half"] == pytest.approx(0.5, abs=0.01)


def test_what_the_log_does_not_tell_is_not_judged(report: Report) -> None:
    """Without cached tokens the state is unknown; without TTFT there are no phases, which is a fault of the test."""
    made = rows(serve(ENGINE, poisson(1.2, 800, 6)), cached_tokens=None, ttft_s=None)
    code, found = report(made)
    assert code == 1
    assert grades(found) == {
        "distribution": "pass", "open_loop": "pass", "controlled_state": "unknown", "percentiles_per_phase": "fail",
    }  # fmt: skip
    assert found["slo"] is None


def test_the_rate_at_which_it_broke(report: Report) -> None:
    """0.4/s for ten minutes is kept, 8/s is more than the engine can do, and begins within a window."""
    slow, fast = poisson(0.4, 240, 7, prompt=300, output=60), poisson(8.0, 2400, 8, prompt=300, output=60)
    for one in fast:
        one.at += 700
    found = report(rows(serve(Engine(slots=16), [*slow, *fast])), "--window", "60s")[1]
    assert found["slo"]["kept_at_rps"] < 1
    assert 2 < found["slo"]["broken_at_rps"] < 9


def test_a_queue_that_is_left(report: Report) -> None:
    """Twice what the engine can do: the last ones wait longer than the first ones took."""
    found = report(rows(serve(Engine(slots=4), poisson(3.0, 900, 9))))[1]
    assert not found["queue"]["drained"]
    assert found["queue"]["in_flight_at_end"] > 100


def test_work_for_clients_who_had_gone(report: Report) -> None:
    """Two of ten gave up, and their answers were worked on all the same."""
    made = rows(serve(ENGINE, poisson(1.0, 400, 10)))
    for number, row in enumerate(made):
        if number % 5 == 0:
            row |= {"outcome": "client_abort", "status": 499}
    found = report(made)[1]["served_after_client_gone"]
    assert (found["any"], found["requests"]) == (True, 80)
    assert found["cost_share"] == pytest.approx(0.2, abs=0.05)


def test_the_report_for_people(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    """Grades first, then the three answers."""
    report(rows(serve(ENGINE, poisson(1.2, 500, 11))))
    assert main(["loadtest-report", "--config.file", "capwatch.yml"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("load test of 500 requests in ")
    for said in ("pass     open loop: ", "did the queue drain: yes", "gone: no", "where the targets broke: "):
        assert said in out


@pytest.mark.parametrize("made", [[], [{"finished_at": START}], [{"started_at": START}]])
def test_nothing_to_grade(made: list[dict[str, Any]], report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 1."""
    Path("capwatch.yml").write_text(CONFIG)
    Path("x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in made))
    assert main(["loadtest-report", "--config.file", "capwatch.yml"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)


def test_one_request(report: Report) -> None:
    """Is graded, with what cannot be judged as unknown."""
    code, found = report(rows(serve(ENGINE, poisson(1, 1, 1))))
    assert found["requests"] == 1
    assert grades(found)["open_loop"] == "unknown"
    assert code in (0, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--window", "0s"], "--window: "),
        (["--objective", "2"], "--objective: "),
        (["--profile", "x"], "--profile: x cannot be"),
        (["--state-dir", "x"], "--since: give --since and --until; only a log is taken for the test as a whole"),
    ],
)
def test_refusals(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2."""
    assert main(["loadtest-report", *words, *(["/dev/null"] if "--state-dir" not in words else [])]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(said)
