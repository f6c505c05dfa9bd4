"""Whatever tenants, routes and pools are called: what is rendered is YAML that means these very names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from capwatch.cli import main

from .traffic import CONFIG, START, row

NAMES = (
    "a: b", "- x", '"', "{{ }}", "é ü", "\u200b\u202e", "#c", "y", "1e5", "0x10", "~", "? k", "&a", "*a", "!t", "%d",
    "@x", "`x", "'q", "back\\slash", "true", "1:30", "2026-01-01", "<<", "=", ".inf", "x # y", "{a: b}", "[a]",
    "x" * 128, "\U0001f600" * 128,
)  # fmt: skip
POOL = 'a: "b" é \U0001f600 {{ }}'


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request of each tenant on a route of the same name, in a pool with a name that needs quotes."""
    monkeypatch.chdir(tmp_path)
    told = [row(START + at, long=False) | {"tenant": name, "route": name} for at, name in enumerate(NAMES)]
    Path("x.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    Path("capwatch.yml").write_text(CONFIG.replace("name: chat", f"name: {json.dumps(POOL, ensure_ascii=False)}"))


def test_names_are_told_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Budgets and tokens by tenant, caps by route, also where a name is too long for a simple key of YAML."""
    assert main(["render", "limits", "--tenants", "99", "--config.file", "capwatch.yml", "x.jsonl"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert [set(found[part]) for part in ("budgets", "tokens_per_minute", "max_output_tokens")] == [set(NAMES)] * 3


@pytest.mark.parametrize("signal", ["work", "inflight"])
def test_a_query_asks_for_the_pool_as_it_is(signal: str, capsys: pytest.CaptureFixture[str]) -> None:
    """PromQL knows no halves of characters, so nothing but quotes, backslashes and line ends is escaped."""
    assert main(["render", "keda", "--signal", signal, "--config.file", "capwatch.yml", "x.jsonl"]) == 0
    query = yaml.safe_load(capsys.readouterr().out)["spec"]["triggers"][0]["metadata"]["query"]
    assert '{pool="a: \\"b\\" é \U0001f600 {{ }}"}' in query


@pytest.mark.parametrize("name", ["hpa", "keda"])
def test_a_pool_that_gives_no_name_wants_the_workload_s(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A manifest without a name would be refused where it is applied."""
    Path("capwatch.yml").write_text(CONFIG.replace("name: chat", "name: 模型"))
    words = ["render", name, "--config.file", "capwatch.yml", "x.jsonl"]
    assert main(words) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n"), "--workload" in shown.err) == ("", 1, True)
    assert main([*words, "--workload", "chat"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["name"] == "capwatch"
