"""Parts that are missing: no capwatch, no rules, no thresholds, other rules, rules that fail."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from capwatch import shipped
from tests.end_to_end.command import capwatch
from tests.end_to_end.programs.process import until

from .test_mistakes import HEALTHY, examined, versioned
from .world import own, world

pytestmark = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)

RENAMED = {
    "title": "mine",
    "panels": [
        {"type": "row", "panels": [{"title": "cache", "targets": [{"expr": "max(vllm:gpu_cache_usage_perc)"}]}]}
    ],
}


def by_check(findings: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Findings that are no notes."""
    return {one["check"]: one for one in findings if one["severity"] != "note"}


def changed() -> str:
    """The shipped rules without two thresholds, one expression changed, one that fails, evaluated now and then."""
    groups = [group for text in shipped.rules().values() for group in yaml.safe_load(text)["groups"]]
    for group in groups:
        group["interval"] = "2m" if group["name"].startswith("capwatch-alerts") else "1s"
        group["rules"] = [
            rule
            for rule in group["rules"]
            if rule.get("record") not in ("capwatch:threshold:requests", "capwatch:threshold:kv_demand_ratio")
        ]
        for rule in group["rules"]:
            if rule.get("record") == "pool:capwatch_replicas:max":
                rule["expr"] = "sum by (cluster, job, pool) (capwatch_replicas)"
            if rule.get("record") == "pool:capwatch:known":
                rule["expr"] = "capwatch_replicas * on (job) group_right () up"
    return yaml.safe_dump({"groups": groups})


def test_nothing_is_there(tmp_path: Path) -> None:
    """An empty server: capwatch is not scraped, no rule is loaded, and both are told once."""
    with world(tmp_path, {}) as server:
        found = examined(server.url)
    assert list(by_check(found["findings"])) == ["not-scraped", "rules-missing"]
    assert by_check(found["findings"])["rules-missing"]["fix"].count(str(shipped.folder("rules"))) == 1
    assert (found["panels"]["with_series"], found["firing"]) == (0, [])


def test_rules_that_another_program_evaluates(tmp_path: Path) -> None:
    """Recorded series are there and no rule is told, as behind vmalert: whether they are loaded is not known."""
    with world(
        tmp_path, own(versioned(HEALTHY + 'pool:capwatch_arrivals:rate5m{job="capwatch",pool="fine"} 8\n'))
    ) as server:
        found = examined(server.url)["findings"]
    assert by_check(found) == {}
    assert "rules-unknown" in {one["check"] for one in found}


def test_rules_that_are_not_whole(tmp_path: Path) -> None:
    """Thresholds that lack are named; an expression of another version, a slow evaluation, a failure."""
    (tmp_path / "board.json").write_text(json.dumps(RENAMED))
    twice = 'up{job="capwatch",instance="b"} 1\ncapwatch_replicas{job="capwatch",pool="two"} 1\n'
    twice += 'capwatch_replicas{job="capwatch",pool="three"} 1\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n'
    with world(tmp_path, own(versioned(HEALTHY + twice)), changed()) as server:
        until(lambda: any(rule["health"] == "err" for rule in server.rules()), "no rule fails")
        told = capwatch("doctor", "--prometheus", server.url, "--also", "board.json", "--json", cwd=tmp_path)
        text = capwatch("doctor", "--prometheus", server.url, cwd=tmp_path).stdout.decode()
    found = by_check(json.loads(told.stdout)["findings"])
    assert set(found) == {"rules-missing", "rule-fails", "rules-differ", "evaluation-interval", "renamed"}
    assert "capwatch:threshold:requests, capwatch:threshold:kv_demand_ratio" in found["rules-missing"]["seen"][1]
    assert found["rules-differ"]["seen"] == ["pool:capwatch_replicas:max, pool:capwatch:known"]
    assert found["renamed"]["affects"] == ["mine: cache"]
    assert "120 s" in found["evaluation-interval"]["title"]
    assert "some rules are not loaded" in text


def test_the_server_is_none(tmp_path: Path) -> None:
    """One line and exit code 1 where nothing answers."""
    told = capwatch("doctor", "--prometheus", "http://127.0.0.1:9", cwd=tmp_path)
    assert (told.returncode, told.stdout, told.stderr.count(b"\n")) == (1, b"", 1)
