"""A load test graded from sums says what its log says, as far as sums tell it, and never more."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capwatch.cli import main
from capwatch.console.configured import load
from capwatch.keep.history import History
from tests.observed.scraped import needs_prometheus, scraped
from tests.spine import Spine

START = 1_790_000_400
HALF_S = 600
CONFIG = """
sources: [{name: clients, path: x.jsonl, format: jsonl}]
pools: [{name: chat, prefill_tokens_per_second: 4000, decode_tokens_per_second: 160, match: {model: chat}}]
slo: [{match: {}, ttft: 2s, tpot: 150ms}]
"""


def rows(*, fixed: bool = False) -> list[dict[str, Any]]:
    """Ten minutes at 1/s in which all is well, ten at 3/s in which first tokens come late; a few clients go."""
    rng, at, found = random.Random(5), float(START), []
    while at < START + 2 * HALF_S - 20:
        late = at > START + HALF_S
        at += rng.expovariate(3.0 if late else 1.0)
        prompt = 512 if fixed else max(1, int(rng.lognormvariate(6.5, 0.5)))
        output = 128 if fixed else max(2, int(rng.lognormvariate(4.5, 0.4)))
        ttft = 5.0 if late else 0.4
        end = at + ttft + 0.02 * (output - 1)
        found.append(
            {
                "started_at": at, "finished_at": end, "duration_s": end - at, "ttft_s": ttft, "model": "chat",
                "prompt_tokens": prompt, "cached_tokens": prompt // 3, "output_tokens": output, "stream": True,
                **({"outcome": "client_abort"} if rng.random() < 0.02 else {"status": 200}),
            }
        )  # fmt: skip
    return sorted(found, key=lambda row: float(row["finished_at"]))


@dataclass(frozen=True)
class Told:
    """The same test by each way."""

    folder: Path
    url: str


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Its log, a history and a Prometheus."""
    folder = tmp_path_factory.mktemp("tested")
    with scraped(folder, CONFIG, rows(), "30s") as url:
        kept(folder, rows())
        yield Told(folder, url)


def kept(folder: Path, told: list[dict[str, Any]]) -> None:
    """The history of the rows, in the folder."""
    spine, end = Spine(load(str(folder / "capwatch.yml"))), START + 2 * HALF_S
    spine.feed(*told, now=end)
    spine.tick(end + 3 * 3600)
    with closing(History(str(folder), 1 << 30)) as history:
        history.keep(spine.totals.closed, spine.totals.names, spine.totals.clock)


WINDOW = ("--since", str(START), "--until", str(START + 2 * HALF_S))


def report(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The report; nothing on stderr."""
    assert main(["loadtest-report", "--json", *WINDOW, *words]) in (0, 1)
    shown = capsys.readouterr()
    assert shown.err == ""
    found: dict[str, Any] = json.loads(shown.out)
    return found


@needs_prometheus
@pytest.mark.parametrize("way", ["state", "prometheus"])
def test_as_the_log_says(way: str, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """The same grades but for the open loop, the same share of good requests, and where the target broke."""
    log = report(capsys, "--config.file", str(told.folder / "capwatch.yml"), str(told.folder / "x.jsonl"))
    words = ["--state-dir", str(told.folder)] if way == "state" else ["--prometheus", told.url]
    found = report(capsys, *words)
    grades, truth = ({name: one["grade"] for name, one in each["points"].items()} for each in (found, log))
    assert grades == {**truth, "open_loop": "unknown"}
    assert truth["open_loop"] == "pass"
    assert found["requests"] == pytest.approx(log["requests"], rel=0.02)
    assert found["slo"]["good_share"] == pytest.approx(log["slo"]["good_share"], abs=0.02)
    assert 1.0 < found["slo"]["broken_at_rps"] < 3.5
    assert found["slo"]["kept_at_rps"] == pytest.approx(1.0, rel=0.25 if way == "state" else 1.0)
    assert found["served_after_client_gone"]["requests"] == pytest.approx(
        log["served_after_client_gone"]["requests"], rel=0.1
    )
    cached = found["points"]["controlled_state"]["evidence"]["hit_rate_second_half"]
    assert cached == pytest.approx(1 / 3, rel=0.01)


@needs_prometheus
def test_what_the_queue_left(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """A history counts arrivals when they came, so it tells what was left; counters tell them when they end."""
    log = report(capsys, "--config.file", str(told.folder / "capwatch.yml"), str(told.folder / "x.jsonl"))["queue"]
    state = report(capsys, "--state-dir", str(told.folder))["queue"]
    assert state["in_flight_at_end"] == pytest.approx(log["in_flight_at_end"], abs=4)  # those of a second
    assert state["drain_s"] == pytest.approx(log["drain_s"], abs=1.5)
    assert state["drained"] == log["drained"]
    assert report(capsys, "--prometheus", told.url)["queue"] is None


@needs_prometheus
def test_fixed_lengths_in_one_bucket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Buckets 19 % wide do not tell fixed lengths from nearly fixed ones: not judged; a sketch does."""
    with scraped(tmp_path, CONFIG, rows(fixed=True), "60s") as url:
        found = report(capsys, "--prometheus", url)["points"]["distribution"]
    kept(tmp_path, rows(fixed=True))
    assert found["grade"] in ("unknown", "fail")
    assert report(capsys, "--state-dir", str(tmp_path))["points"]["distribution"]["grade"] == "fail"


@needs_prometheus
@pytest.mark.parametrize("way", ["state", "prometheus"])
def test_a_window_is_needed(way: str, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """A history has more in it than one test; and nothing of a pool that there is not."""
    words = ["--state-dir", str(told.folder)] if way == "state" else ["--prometheus", told.url]
    assert main(["loadtest-report", *words]) == 2
    assert "--since: give --since and --until" in capsys.readouterr().err
    assert main(["loadtest-report", *words, *WINDOW, "--pool", "cat"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)


@needs_prometheus
@pytest.mark.parametrize("way", ["state", "prometheus"])
def test_for_people(way: str, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """The text has the points and the three answers."""
    words = ["--state-dir", str(told.folder)] if way == "state" else ["--prometheus", told.url]
    assert main(["loadtest-report", *words, *WINDOW]) == 0
    shown = capsys.readouterr().out
    for said in (
        "unknown  open loop: ",
        "did the queue drain: ",
        "served after its client had gone: ",
        "targets broke: at",
    ):
        assert said in shown
