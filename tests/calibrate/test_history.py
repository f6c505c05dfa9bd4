"""Rates from means of five minutes: within a fifth of an engine whose rates are known; what they lack is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from capwatch.calibrate import means
from capwatch.calibrate.means import Sums
from capwatch.cli import main
from capwatch.console.configured import load
from capwatch.errors import CapwatchError
from capwatch.keep.history import History
from tests.calibrate.engine import Engine, Served, poisson, serve
from tests.observed.scraped import needs_prometheus, scraped
from tests.spine import Spine

START = 1_790_000_400
WINDOW_S = 300
RATES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
CLOSE = 0.2
CONFIG = """
sources: [{name: gateway, path: x.jsonl, format: jsonl}]
pools: [{name: chat, match: {model: chat}, replicas: 1}]
"""
ENGINES = {
    "blocking": Engine(),
    "chunked": Engine(chunk=512),
    "sequences": Engine(sequence=0.003),
    "fast": Engine(prefill=8000, step=0.01, sequence=0.001),
}


def served(engine: Engine, rate: float, seed: int) -> list[Served]:
    """Five minutes of traffic."""
    return serve(engine, poisson(rate, int(rate * WINDOW_S), seed))


def sums(done: list[Served]) -> Sums:
    """What is left of it."""
    return Sums(
        WINDOW_S, len(done), sum(one.prompt for one in done), sum(one.output for one in done),
        sum(one.first - one.at for one in done), sum(one.end - one.first for one in done),
    )  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("seed", [1, 2])
def test_both_rates_to_a_fifth(name: str, seed: int) -> None:
    """And the interval holds the truth, at the numbers at once that were seen."""
    engine = ENGINES[name]
    windows = [sums(served(engine, RATES[number % 6], 100 * seed + number)) for number in range(24)]
    found = means.fit(windows)
    running = max(one.decode_s / WINDOW_S + 1 for one in windows)
    for told, truth in ((found.prefill(), engine.prefill), (found.decode(running), engine.decode(running))):
        assert told is not None
        assert told.value == pytest.approx(truth, rel=CLOSE)
        assert told.low <= truth <= told.high


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ([sums(served(ENGINES["fast"], 1.0, 1))] * 3, "3 windows of five minutes have 20 requests of a replica"),
        ([sums(served(ENGINES["fast"], 1.0, seed)) for seed in range(8)], "that hardly varies"),
    ],
)
def test_what_does_not_vary_is_refused(windows: list[Sums], said: str) -> None:
    """Steps and sequences cannot be told apart at one load."""
    with pytest.raises(CapwatchError, match=said):
        means.fit(windows)


def rows(engine: Engine) -> list[dict[str, Any]]:
    """An hour and a half of traffic, more and less of it."""
    found = []
    for number in range(18):
        for one in served(engine, RATES[number % 6], number):
            at = START + WINDOW_S * number
            found.append(
                {
                    "started_at": at + one.at, "finished_at": at + one.end, "duration_s": one.end - one.at,
                    "ttft_s": one.first - one.at, "model": "chat", "stream": True, "status": 200,
                    "prompt_tokens": int(one.prompt) + 200, "cached_tokens": 200, "output_tokens": one.output,
                }
            )  # fmt: skip
    return sorted(found, key=lambda row: float(row["finished_at"]))


@dataclass(frozen=True)
class Told:
    """The same traffic by both ways."""

    state: str
    url: str


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """A history and a Prometheus."""
    folder, made = tmp_path_factory.mktemp("calibrated"), rows(ENGINES["fast"])
    with scraped(folder, CONFIG, made, "60s") as url:
        config = load(str(folder / "capwatch.yml"))
        spine, end = Spine(config), START + 18 * WINDOW_S
        spine.feed(*made, now=end)
        spine.tick(end + 3 * 3600)
        with closing(History(str(folder), 1 << 30)) as history:
            history.keep(spine.totals.closed, spine.totals.names, spine.totals.clock)
            history.note_settings(START, {"chat": {"replicas": 1}})
        yield Told(str(folder), url)


def words(way: str, told: Told) -> list[str]:
    """The SOURCE."""
    window = ["--since", str(START), "--until", str(START + 18 * WINDOW_S)]
    return [*(["--state-dir", told.state] if way == "state" else ["--prometheus", told.url]), *window]


@needs_prometheus
@pytest.mark.parametrize("way", ["state", "prometheus"])
def test_the_command(way: str, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """It finds the rates of the engine, the hit rate to the token, and says how rough it is and what it cannot know."""
    engine = ENGINES["fast"]
    assert main(["calibrate", *words(way, told), "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = json.loads(shown.out)
    rates = found["rates"]
    assert rates["prefill_tokens_per_second"]["value"] == pytest.approx(engine.prefill, rel=CLOSE)
    decode = rates["decode_tokens_per_second"]
    assert decode["value"] == pytest.approx(engine.decode(decode["at_occupancy"]), rel=CLOSE)
    prompts = [row["prompt_tokens"] for row in rows(engine)]
    assert found["profile"]["prefix_cache_hit_rate"] == pytest.approx(200 * len(prompts) / sum(prompts), rel=0.03)
    assert (found["source"], found["pool"], found["slots"]) == ("history" if way == "state" else way, "chat", None)
    assert found["notes"][0].startswith("from means of five minutes: rates are good to a fifth")


@needs_prometheus
@pytest.mark.parametrize("way", ["state", "prometheus"])
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--tpot", "60ms"], "--tpot: means tell no share of requests that keeps it; calibrate slots from a log"),
        (["--pool", "cat"], "--pool: no request of 'cat'; there are chat"),
    ],
)
def test_refusals(way: str, more: list[str], said: str, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    assert main(["calibrate", *words(way, told), *more]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"{said}\n")
