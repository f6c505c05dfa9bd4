"""`capwatch backtest` on trace files: its event lines, and bad input that raises nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from capwatch.cli import main
from capwatch.drift.rows import Rows
from tests.drift.sample import DAY, HOUR, MONDAY, NAMES, rows

LEARNT = MONDAY + 4 * DAY
ONSET = LEARNT + 10 * HOUR
COLUMNS = "t,tenant,route,class,model,prompt_tokens,cached_tokens,output_tokens,outcome\n"
KEYS = {
    *("event", "pool", "direction", "at", "started_at", "cost_before", "cost_after", "cost_change_ratio"),
    *("effects", "contributions", "verdict"),
}


def lines(some: Rows) -> list[str]:
    """Rows of a trace."""
    return [
        f"{at:.3f},{NAMES['tenant'][tenant]},{NAMES['route'][klass]},{NAMES['class'][klass]},m,{prompt:.0f},0,{output:.0f},ok\n"
        for at, tenant, klass, prompt, output in zip(
            some.at, some.tenant, some.klass, some.prompt, some.output, strict=True
        )
    ]


@pytest.fixture(scope="module")
def usual() -> list[str]:
    """Four days and ten hours without a drift."""
    return lines(rows(MONDAY, ONSET - MONDAY, 1))


@pytest.fixture
def backtest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, object]]]:
    """Runs the command on lines and returns the events."""

    def run(written: list[str], head: str = COLUMNS, learn_until: float = LEARNT) -> list[dict[str, object]]:
        path = tmp_path / "trace.csv"
        path.write_text(head + "".join(written))
        words = [
            "--trace",
            str(path),
            "--learn-until",
            str(learn_until),
            "--prefill-tps",
            "4000",
            "--decode-tps",
            "160",
        ]
        assert main(["backtest", *words, "--json"]) == 0
        out = capsys.readouterr().out
        assert "NaN" not in out
        return [json.loads(line) for line in out.splitlines()]

    return run


def test_a_drift_is_one_line_as_the_contract_has_it(
    backtest: Callable[..., list[dict[str, object]]], usual: list[str]
) -> None:
    """Raised once, with the keys of the contract, effects that add up, the class that did it first, no verdict."""
    (event,) = backtest(usual + lines(rows(ONSET, HOUR, 2, long=0.12)))
    assert event.keys() >= KEYS
    assert (event["event"], event["direction"], event["verdict"]) == ("raised", "up", None)
    at, before, after = (float(str(event[key])) for key in ("at", "cost_before", "cost_after"))
    assert ONSET < at <= ONSET + 180
    effects = event["effects"]
    assert isinstance(effects, dict)
    assert math.fsum(effects.values()) == pytest.approx(after - before)
    assert event["cost_change_ratio"] == pytest.approx(after / before - 1)
    contributions = event["contributions"]
    assert isinstance(contributions, list)
    assert contributions[0] == {**contributions[0], "dimension": "class", "value": "long", "effect": "mix"}


def test_usual_traffic_is_silent(backtest: Callable[..., list[dict[str, object]]], usual: list[str]) -> None:
    """Nothing has changed, so nothing is said."""
    assert backtest(usual) == []


def _blank(line: str) -> str:
    fields = line.split(",")
    return ",".join([*fields[:5], "", "", "", fields[8]])


def _backwards(written: list[str]) -> list[str]:
    rng = np.random.default_rng(5)
    order = np.argsort(np.arange(len(written)) + rng.uniform(0, 90, len(written)), kind="stable")
    return [written[i] for i in order]


def _clock_steps(written: list[str]) -> list[str]:
    """An hour back for the last rows, and one row of next year."""
    cut = len(written) - 5000
    back = [f"{float(line.split(',', 1)[0]) - 3600:.3f},{line.split(',', 1)[1]}" for line in written[cut:]]
    ahead = f"{float(written[cut].split(',', 1)[0]) + 366 * DAY:.3f},{written[cut].split(',', 1)[1]}"
    return [*written[: cut - 9000], ahead, *written[cut - 9000 : cut], *back]


BAD = [
    pytest.param(lambda usual: [], id="no rows at all"),
    pytest.param(lambda usual: usual[:-20000], id="no traffic after a while"),
    pytest.param(lambda usual: [line.replace(line.split(",")[1], "acme") for line in usual], id="one tenant"),
    pytest.param(lambda usual: usual[::60], id="three requests a minute"),
    pytest.param(
        lambda usual: [line for line in usual if "alpha" not in line or float(line.split(",")[0]) < ONSET - 4 * HOUR],
        id="the largest tenant dies",
    ),
    pytest.param(lambda usual: [_blank(line) if i % 3 else line for i, line in enumerate(usual)], id="counts missing"),
    pytest.param(lambda usual: [_blank(line) for line in usual], id="no counts at all"),
    pytest.param(_backwards, id="out of order"),
    pytest.param(_clock_steps, id="the clock steps"),
    pytest.param(lambda usual: [line.replace(",m,", f",m{i % 9},") for i, line in enumerate(usual)], id="other models"),
]


@pytest.mark.parametrize("spoil", BAD)
def test_bad_input_raises_nothing(
    backtest: Callable[..., list[dict[str, object]]], usual: list[str], spoil: Callable[[list[str]], list[str]]
) -> None:
    """No alarm, no division by zero, no NaN."""
    with np.errstate(divide="raise", over="raise"):
        assert [event for event in backtest(spoil(usual)) if event["direction"] == "up"] == []


def test_a_trace_of_times_and_tokens_is_enough(
    backtest: Callable[..., list[dict[str, object]]], usual: list[str]
) -> None:
    """Without tenants, routes and classes a change of lengths is still found, and told by its effect."""
    cut = [",".join([line.split(",")[0], line.split(",")[5], line.split(",")[7]]) + "\n" for line in usual]
    more = lines(rows(ONSET, HOUR, 2, output=1.5))
    cut += [",".join([line.split(",")[0], line.split(",")[5], line.split(",")[7]]) + "\n" for line in more]
    (event,) = backtest(cut, head="t,prompt_tokens,output_tokens\n")
    effects = event["effects"]
    assert isinstance(effects, dict)
    assert max(effects, key=lambda one: effects[one]) == "output"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--learn-until", "yesterday"], "--learn-until: 'yesterday' is no time; use RFC 3339"),
        (["--prefill-tps", "0"], "--prefill-tps: must be above 0"),
        (["--decode-tps", "fast"], "--decode-tps: "),
        (["--trace", "nowhere.csv"], "nowhere.csv: No such file"),
    ],
)
def test_refusals_are_one_line(
    words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and one line that names the option and the fix."""
    path = tmp_path / "trace.csv"
    path.write_text(COLUMNS)
    right = ["--trace", str(path), "--learn-until", "1", "--prefill-tps", "4000", "--decode-tps", "160"]
    assert main(["backtest", *right, *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(expected)
    assert shown.err.count("\n") == 1
