"""What is rendered is true, valid, and says of every number where it comes from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from capwatch.capacity.sizing import needed, promises
from capwatch.cli import main
from capwatch.config import parse
from capwatch.render.page import MARK
from tests.end_to_end.command import Page, printed

from .traffic import CONFIG, LONG, SECONDS, SHORT, START, row, rows, written

Render = Callable[..., str]
PEAK = 0.5 * LONG + 3.0 * SHORT
"""Replica-seconds that arrive in a second of the busiest five minutes."""
WORK = sum(LONG if one["route"] == "/long" else SHORT for one in rows()) / SECONDS
NUMBERED = re.compile(r"^\s*(?:- )?[^#:]+:.*\d")


@pytest.fixture
def render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Render:
    """A way to the text of a document."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path)

    def call(*words: str, log: str = "x.jsonl", config: bool = True) -> str:
        source = ["--config.file", "capwatch.yml", log] if config else [log]
        assert main(["render", *words, *source]) == 0
        return capsys.readouterr().out

    return call


def comments(text: str) -> list[str]:
    """Lines with a number and without an origin."""
    bare = [line for line in text.splitlines() if NUMBERED.match(line) and " # " not in line]
    return [line for line in bare if not re.search(r"apiVersion|name|query|serverAddress|matchLabels", line)]


@pytest.mark.parametrize("name", ["hpa", "keda", "limits", "loadtest"])
def test_every_number_says_where_it_comes_from(name: str, render: Render) -> None:
    """Each line with a number ends in a comment, and the whole is YAML."""
    text = render(name)
    assert comments(text) == []
    assert isinstance(yaml.safe_load(text), dict)
    assert text.count("\n# ") >= 2


def test_an_autoscaler_has_the_numbers_of_the_promise(render: Render) -> None:
    """Target, bounds by F34 and F36, windows of the settings; Kubernetes takes it."""
    kubernetes = pytest.importorskip("kubernetes_validate", reason="a package of the development environment")
    found = yaml.safe_load(render("hpa", "--workload", "chat-70b", "--namespace", "llm"))
    kubernetes.validate(found, "1.31", strict=True)
    spec = found["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (needed(WORK, 1, 0.6), promises(PEAK, 1, 0.6, 1.5, 3).zonal)
    assert spec["metrics"][0]["external"]["target"] == {"type": "AverageValue", "averageValue": "600m"}
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert (spec["scaleTargetRef"]["name"], found["metadata"]["namespace"]) == ("chat-70b", "llm")


def test_the_signal_may_be_what_is_inside_the_engines(render: Render) -> None:
    """By slots where they are known, by what was in flight per busy replica where they are not, by what was given."""
    by_slots = yaml.safe_load(render("keda", "--signal", "inflight"))["spec"]["triggers"][0]["metadata"]
    assert (float(by_slots["threshold"]), "capwatch_inflight_measured" in by_slots["query"]) == (0.6 * 8, True)
    Path("capwatch.yml").write_text(CONFIG.replace("    slots: 8\n", ""))
    inside = 0.25 * len(rows()) / (SECONDS - 0.5) / WORK
    told = render("keda", "--signal", "inflight")
    found = float(yaml.safe_load(told)["spec"]["triggers"][0]["metadata"]["threshold"])
    assert found == pytest.approx(0.6 * inside, rel=0.01)
    given = yaml.safe_load(render("keda", "--signal", "inflight", "--target", "3.5"))
    assert given["spec"]["triggers"][0]["metadata"]["threshold"] == "3.5"


def test_a_scaled_object_keeps_the_replicas_while_the_server_is_silent(render: Render) -> None:
    """Its fallback is what was there, and no series is a failure."""
    spec = yaml.safe_load(render("keda", "--server", "http://p:9090"))["spec"]
    metadata = spec["triggers"][0]["metadata"]
    assert spec["fallback"]["replicas"] == 6
    assert metadata == {
        "serverAddress": "http://p:9090",
        "query": 'sum(pool:capwatch_cost_replica_seconds:rate5m{pool="chat"})',
        "threshold": "0.6",
        "ignoreNullValues": "false",
    }


def test_limits_refuse_nothing_that_was_seen(render: Render, tmp_path: Path) -> None:
    """As budgets of capwatch they count no refusal on the same log, a tenth less does; caps are the longest answers."""
    found = yaml.safe_load(render("limits"))
    assert found["budgets"]["acme"]["rate"] == pytest.approx(0.5 * LONG, rel=0.01)
    assert found["budgets"]["bolt"]["rate"] == pytest.approx(3 * SHORT, rel=0.01)
    assert found["tokens_per_minute"] == {"acme": 130_000, "bolt": 195_000}  # 129,600 and 194,400, up
    assert found["max_output_tokens"] == {"/long": 320, "/short": 80}
    mean = sum(one["prompt_tokens"] + one["output_tokens"] for one in rows()) / len(rows())
    assert found["max_in_flight_per_replica"] == min(8, math.floor(30000 / mean))
    assert found["max_in_flight"] == 6 * found["max_in_flight_per_replica"]
    for factor, refused in ((1.0, False), (0.9, True)):
        budgets = {
            name: {"rate": factor * one["rate"], "burst": factor * one["burst"]}
            for name, one in found["budgets"].items()
        }
        Path("capwatch.yml").write_text(CONFIG + f"budgets: {json.dumps(budgets)}\n")
        page = Page(printed("replay", "--config.file", "capwatch.yml", cwd=tmp_path))
        assert (page.value("budget_would_reject_total") > 0) == refused


def test_a_load_test_is_the_profile(render: Render) -> None:
    """Rates around one replica's capacity, the mix, means and deviation of the lengths, the targets."""
    found = yaml.safe_load(render("loadtest", "--seconds", "5m"))
    capacity = len(rows()) / (WORK * SECONDS)
    assert found["load"]["capacity_rps"] == pytest.approx(capacity, rel=0.01)
    assert found["load"]["rates_rps"] == pytest.approx(
        [one * capacity for one in (0.5, 0.7, 0.8, 0.9, 0.95, 1.05)], rel=0.01
    )
    share = sum(one["route"] == "/long" for one in rows()) / len(rows())
    assert found["mix"]["long"] == {"share": pytest.approx(share, rel=0.01), "prompt": 2000, "output": 320}
    vllm = found["vllm_bench_serve"]
    mean = sum(one["prompt_tokens"] for one in rows()) / len(rows())
    assert vllm["random-input-len"] + vllm["random-prefix-len"] == round(mean)
    assert vllm["random-prefix-len"] == pytest.approx(share * 2000, abs=1)
    assert vllm["num-prompts"] == [pytest.approx(rate * 300, abs=1.5) for rate in vllm["request-rate"]]
    assert vllm["goodput"] == "ttft:1500 tpot:60"
    assert found["guidellm"]["data"]["prompt_tokens_max"] == 4000


def test_what_is_not_known_is_marked(render: Render) -> None:
    """Without a configuration nothing of it is made up: defaults are called so, the rest is a comment."""
    hpa, limits, test = (render(name, config=False) for name in ("hpa", "limits", "loadtest"))
    assert "the default of pools[].target_utilisation; give --config.file" in hpa
    assert f"{MARK}: no pools[].scale_down_window or cold_start" in hpa
    assert "max_in_flight" not in yaml.safe_load(limits)
    assert re.search(rf"^# max_in_flight_per_replica: +# {MARK}", limits, re.M)
    assert "goodput" not in yaml.safe_load(test)["vllm_bench_serve"]


def test_settings_hold_though_the_rates_are_assumed(render: Render) -> None:
    """A pool whose rates nobody measured has its slots and windows all the same."""
    rates = re.compile(r"    (prefill|decode)_tokens_per_second: .*\n")
    Path("capwatch.yml").write_text(rates.sub("", CONFIG))
    assert yaml.safe_load(render("limits"))["max_in_flight_per_replica"] == 8
    assert yaml.safe_load(render("hpa"))["spec"]["metrics"][0]["external"]["target"]["averageValue"] == "600m"


REFUSED = {
    "nothing": (2, "SOURCE: is missing"),
    "bare.jsonl": (1, "no request of pool chat tells token counts"),
    "two.jsonl": (2, "--pool: which one? there are chat, default"),
}


@pytest.mark.parametrize("log", REFUSED)
@pytest.mark.parametrize("name", ["hpa", "keda", "limits", "loadtest"])
def test_a_source_without_the_numbers_is_one_line(
    name: str, log: str, render: Render, capsys: pytest.CaptureFixture[str]
) -> None:
    """No document is made of nothing."""
    bare = row(START, long=True) | {"prompt_tokens": None, "cached_tokens": None, "output_tokens": None}
    Path("bare.jsonl").write_text(json.dumps(bare) + "\n")
    Path("two.jsonl").write_text(
        "".join(json.dumps(row(START, long=True) | {"model": one}) + "\n" for one in ("chat", "x"))
    )
    words = [] if log == "nothing" else ["--config.file", "capwatch.yml", log]
    code = main(["render", name, *words])
    shown = capsys.readouterr()
    assert (code, shown.out, shown.err.count("\n")) == (REFUSED[log][0], "", 1)
    assert REFUSED[log][1] in shown.err


def test_budgets_are_a_configuration(render: Render) -> None:
    """The loader takes them as they are."""
    budgets = yaml.safe_load(render("limits"))["budgets"]
    text = yaml.safe_dump({"budgets": budgets, "sources": []})
    config = parse(text, "capwatch.yml", {"HOME": "/"}, formats=frozenset({"jsonl"}), is_root=False)
    assert {name: one.rate for name, one in config.budgets.items()} == {
        name: one["rate"] for name, one in budgets.items()
    }
