"""`capwatch calibrate` from a log to the pool that refers to its file, and what it refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from capwatch.cli import main
from capwatch.config.calibration import read
from capwatch.console.configured import load

from .engine import Engine, Served, poisson, serve

ENGINE = Engine()
START = 1_790_000_000.0
CONFIG = """
sources:
  - {name: gateway, path: access.jsonl, format: jsonl}
pools:
  - {name: chat, match: {model: ["chat-*"]}}
slo:
  - {match: {}, tpot: 200ms}
"""
Run = Callable[..., tuple[int, str, str]]


def row(number: int, one: Served, **changed: object) -> dict[str, object]:
    """What a gateway tells of one request."""
    told: dict[str, object] = {
        "request_id": f"r{number}", "started_at": START + one.at, "finished_at": START + one.end,
        "duration_s": one.end - one.at, "ttft_s": one.first - one.at, "model": "chat-70b", "stream": True,
        "prompt_tokens": int(one.prompt) + 200, "cached_tokens": 200, "output_tokens": one.output, "status": 200,
    }  # fmt: skip
    return {name: value for name, value in (told | changed).items() if value is not None}


def log(rate: float = 1.5, n: int = 1000, **changed: object) -> list[dict[str, object]]:
    """A log of traffic on the engine."""
    done = sorted(serve(ENGINE, poisson(rate, n, 1)), key=lambda one: one.end)
    return [row(number, one, **changed) for number, one in enumerate(done)]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A way to call the command on a log: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(rows: list[dict[str, object]], *words: str, config: str = CONFIG) -> tuple[int, str, str]:
        Path("capwatch.yml").write_text(config)
        Path("access.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
        code = main(["calibrate", "--config.file", "capwatch.yml", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def test_a_log_becomes_a_calibration(run: Run) -> None:
    """Both rates within 3 %, of the computed tokens alone; range, profile, time and error beside them."""
    code, out, err = run(log())
    assert (code, err) == (0, "")
    made = yaml.safe_load(out)
    rates = made["rates"]
    assert rates["prefill_tokens_per_second"]["value"] == pytest.approx(ENGINE.prefill, rel=0.03)
    decode = rates["decode_tokens_per_second"]
    assert decode["value"] == pytest.approx(ENGINE.decode(decode["at_occupancy"]), rel=0.03)
    assert made["step_seconds"]["base"] == pytest.approx(ENGINE.step, rel=0.03)
    assert (made["pool"], made["model"], made["profile"]["requests"]) == ("chat", "chat-70b", 1000)
    assert made["slots"]["tpot_seconds"] == 0.2
    assert decode["at_occupancy"] == made["slots"]["value"]
    assert abs(made["busy_time_error_ratio"]) < 0.02
    low, high = made["range"]["occupancy"]
    assert low < 12 < high
    assert made["notes"] == [
        "taken as one replica: the log does not tell which engine served, nor the configuration how many there are"
    ]


def test_a_pool_refers_to_it(run: Run) -> None:
    """Rates, slots and KV tokens come from the file, which lies beside the configuration; what the pool says wins."""
    assert run(log(), "--out", "chat.calibration.yml")[0] == 0
    made = yaml.safe_load(Path("chat.calibration.yml").read_text())
    made["kv"]["pool_tokens"] = 30500
    Path("chat.calibration.yml").write_text(yaml.safe_dump(made))
    Path("pools.yml").write_text(
        "pools:\n  - {name: a, calibration: chat.calibration.yml}\n"
        "  - {name: b, calibration: chat.calibration.yml, slots: 7, prefill_tokens_per_second: 5000}\n"
    )
    first, second = load("pools.yml").pools
    assert first.prefill_tokens_per_second == made["rates"]["prefill_tokens_per_second"]["value"]
    assert first.decode_tokens_per_second == made["rates"]["decode_tokens_per_second"]["value"]
    assert (first.slots, first.kv_pool_tokens, first.assumed) == (made["slots"]["value"], 30500, False)
    assert (second.slots, second.prefill_tokens_per_second, second.assumed) == (7, 5000, False)
    assert first.measured == read("chat.calibration.yml")


def test_a_summary_for_people(run: Run) -> None:
    """With --out the file is written, and what matters is said."""
    code, out, err = run(log(), "--out", "x.yml")
    assert (code, err) == (0, "")
    assert out.startswith("prefill tokens per second: ")
    assert "slots: " in out
    assert "busy time, each half predicted by the other: " in out


def test_json_for_machines(run: Run) -> None:
    """The same document."""
    assert json.loads(run(log(), "--json")[1]) == yaml.safe_load(run(log())[1])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ttft_s": None}, "no request tells prefill_s, decode_s; ttft_s gives both times"),
        (
            {"prompt_tokens": None, "cached_tokens": None, "output_tokens": None},
            "no request tells prompt_tokens, output_tokens",
        ),
        ({"output_tokens": None}, "no request tells output_tokens"),
        ({"cache_hit": True}, "no requests: nothing to calibrate from"),
        ({"finished_at": START, "started_at": None}, "the log has no times of its own"),
        ({"ttft_s": float("nan")}, "no request"),
    ],
)
def test_what_a_log_lacks_is_said(changed: dict[str, Any], said: str, run: Run) -> None:
    """In one line on stderr, with exit code 1."""
    code, out, err = run(log(n=60, **changed))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err


@pytest.mark.parametrize("n", [0, 1, 29])
def test_too_few_requests(n: int, run: Run) -> None:
    """None, one, and one fewer than are needed."""
    code, out, err = run(log(n=40)[:n])
    assert (code, out, err.count("\n")) == (1, "", 1)


def test_several_replicas_have_to_be_told_apart(run: Run) -> None:
    """Twelve replicas behind a log without engines are refused; with engines in it they are not."""
    config = CONFIG.replace('["chat-*"]}}', '["chat-*"]}, replicas: 12}')
    code, _, err = run(log(), config=config)
    assert (code, err.count("\n")) == (1, 1)
    assert "pool chat has several replicas, and no request tells which of them served it" in err
    assert run(log(engine="vllm-0"), config=config)[0] == 0


def test_replicas_by_the_names_of_engines(run: Run) -> None:
    """Three replicas in one log, in the order of their ends, each told by its engine; one row in fifty is not."""
    config = CONFIG.replace('["chat-*"]}}', '["chat-*"]}, replicas: 3}')
    done = [
        (one.end, row(number, one, engine=f"vllm-{replica}" if number % 50 else None))
        for replica in range(3)
        for number, one in enumerate(serve(ENGINE, poisson(1.2, 500, replica)))
    ]
    code, out, _ = run([told for _, told in sorted(done, key=lambda pair: pair[0])], "--json", config=config)
    assert code == 0
    found = json.loads(out)
    rates = found["rates"]
    assert rates["prefill_tokens_per_second"]["value"] == pytest.approx(ENGINE.prefill, rel=0.05)
    at = rates["decode_tokens_per_second"]["at_occupancy"]
    assert rates["decode_tokens_per_second"]["value"] == pytest.approx(ENGINE.decode(at), rel=0.05)
    assert "2.0% of the requests do not tell which engine served them: their work is not seen" in found["notes"]


def test_several_pools_have_to_be_chosen_from(run: Run) -> None:
    """And one that is not there is named with those that are."""
    rows = [*log(n=100), *log(n=50, model="other", request_id=None)]
    code, _, err = run(rows)
    assert (code, err) == (2, "--pool: several have requests; give one of chat, default\n")
    code, _, err = run(rows, "--pool", "cat")
    assert (code, err) == (2, "--pool: no request of 'cat'; there are chat, default\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tpot", "fast"], "--tpot: "),
        (["--share", "1.5"], "--share: "),
        (["--since", "never"], "--since: "),
        (["--since", "10", "--until", "5"], "--until: is not after --since"),
        (["--prometheus", "x"], "--prometheus: is no address such as http://127.0.0.1:9090"),
        (["--prometheus", "http://me:hush@x"], "--prometheus: a password stays in no command line"),
        (["--results", "x.json"], "--results: given beside a SOURCE"),
        (["nothing.jsonl"], "nothing.jsonl: no such file"),
        (["--out", "/nowhere/x.yml"], "--out: /nowhere/x.yml cannot be written"),
    ],
)
def test_refusals(words: list[str], said: str, run: Run) -> None:
    """One line that names the place, exit code 2, nothing on stdout."""
    code, out, err = run(log(n=200), *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(said)


def test_the_extra_is_named_where_it_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which package, and how to get it."""
    monkeypatch.setitem(sys.modules, "statsmodels.regression.linear_model", None)
    code, _, err = run(log(n=40))
    assert (code, err) == (2, "calibrate needs statsmodels.regression.linear_model: pip install 'capwatch[review]'\n")
