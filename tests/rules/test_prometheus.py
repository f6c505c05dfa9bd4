"""The rules in a real Prometheus over backfilled quiet traffic: nothing errs, and what has inputs gives series."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from capwatch.demo import truth
from capwatch.demo.draw import Rows
from tests.end_to_end.command import printed
from tests.end_to_end.prometheus import Prometheus, prometheus

from .conftest import Simulated
from .rulebook import ALERTS, FILES, RECORDED, RULES, names, queries
from .traffic import INSTANCE, JOB, samples

README = Path(__file__).resolve().parents[2] / "README.md"
PATIENCE_S = 60.0
POOL = (JOB, "chat-70b")
"""The labels of the demo's pool in a recorded series."""

YOUNG = "there is no day of history"
UNTIMED = "the demo's logs tell no wait apart from prefill"
EMPTY = {
    "pool:capwatch_cost_per_request:reference1h": YOUNG,
    "pool:capwatch_prefix_hit:reference1h": YOUNG,
    "pool:capwatch_tpot_seconds:reference1h": YOUNG,
    "pool_route:capwatch_output_tokens:reference1h": YOUNG,
    "pool_route:capwatch_prompt_tokens_per_request:reference1h": YOUNG,
    "pool:capwatch_oldest_waiting_seconds:max": "the log has no arrivals before first tokens",
    "pool:capwatch_coverage_ratio:min": "the demo's engine logs do not count requests",
    "pool:capwatch_queue_seconds_bucket:rate5m": UNTIMED,
    "pool:capwatch_queue_seconds:p50_rate5m": UNTIMED,
    "pool:capwatch_queue_seconds:p95_rate5m": UNTIMED,
    "pool:capwatch_queue_seconds:p99_rate5m": UNTIMED,
}
MAYBE = {"pool:capwatch_kv_demand:seconds_to_full"}  # there while demand happens to grow


@dataclass(frozen=True)
class Evaluated:
    """A server that has evaluated the rules, and when it was asked."""

    server: Prometheus
    at: float


def configuration(folder: Path) -> str:
    """The README's lines about the rules, in front of copies that are all evaluated at once."""
    (block,) = (one for one in re.findall(r"```yaml\n(.*?)```", README.read_text(), re.S) if "rule_files" in one)
    shipped = yaml.safe_load(block)["rule_files"]
    assert shipped == [f"rules/{name}" for name in FILES]
    for name in FILES:
        text = (RULES / name).read_text().replace("interval: 1m\n", "interval: 1s\n")
        (folder / name).write_text(text.replace("60 * sum_over_time", "sum_over_time"))  # seconds between evaluations
    lines = [f"  - {folder / Path(name).name}" for name in shipped]
    return "\n".join(["global: {evaluation_interval: 1s}", "rule_files:", *lines]) + "\n"


@pytest.fixture(scope="module")
def evaluated(quiet: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluated]:
    """Blocks by promtool, with the series that only a scrape adds; the server is asked once all rules have run."""
    folder, blocks = tmp_path_factory.mktemp("rules"), tmp_path_factory.mktemp("blocks")
    text = "".join(f"{series} {value} {at:.3f}\n" for series, at, value in samples(quiet.openmetrics))
    alive = "".join(
        f'{name}{{job="{JOB}",instance="{INSTANCE}"}} 1 {quiet.end}\n' for name in ("up", "capwatch_build_info")
    )
    (folder / "scraped.om").write_text(text + alive + "# EOF\n")
    made = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "scraped.om", blocks],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")
    with prometheus(blocks, configuration(folder)) as server:
        deadline = time.monotonic() + PATIENCE_S
        while (missing(server) - MAYBE != set(EMPTY) or not asked_once(server)) and time.monotonic() < deadline:
            time.sleep(0.5)
        yield Evaluated(server, time.time())


def asked_once(server: Prometheus) -> bool:
    """Whether every rule has been evaluated."""
    return all(rule["health"] != "unknown" for rule in server.rules())


def missing(server: Prometheus) -> set[str]:
    """The recorded names that have no series now."""
    now = time.time()
    there = {key[0] for key in server.query('count by (__name__) ({__name__=~".+:.+"})', now)}
    return set(RECORDED) - there


def test_every_rule_is_healthy(evaluated: Evaluated) -> None:
    """Alerts and recording rules alike, with the templates of the alerts."""
    found = evaluated.server.rules()
    assert len(found) == len(RECORDED) + len(ALERTS)
    assert {rule["name"]: rule.get("lastError") for rule in found if rule["health"] != "ok"} == {}


def test_what_has_inputs_gives_series(evaluated: Evaluated) -> None:
    """Recorded names without series are those listed above, each with its reason."""
    assert missing(evaluated.server) - MAYBE == set(EMPTY)


def test_no_alert_is_even_pending(evaluated: Evaluated) -> None:
    """In quiet traffic."""
    active = {rule["name"]: rule["alerts"] for rule in evaluated.server.rules() if rule.get("alerts")}
    assert active == {}


def test_the_doctor_agrees(evaluated: Evaluated) -> None:
    """All rules are loaded, healthy and as shipped; what is not recorded is what the tests above say, with a reason."""
    told = json.loads(printed("doctor", "--prometheus", evaluated.server.url, "--json", cwd=RULES, code=1))
    (finding,) = [one for one in told["findings"] if one["severity"] != "note"]
    counts = ", ".join(f"slice:capwatch_goodput_judged:increase{window}" for window in ("1h", "6h", "3d"))
    assert (finding["check"], finding["seen"]) == ("rules-differ", [counts])  # they are evaluated more often here
    rules = {one["where"]: one["state"] for one in told["expressions"] if one["kind"] == "record"}
    assert {name for name, state in rules.items() if state == "empty"} - MAYBE == set(EMPTY)
    explained = {name for one in told["findings"] for name in one["affects"]}
    assert {one["where"] for one in told["expressions"] if one["state"] == "empty" and one["missing"]} <= explained


def whole(name: str) -> str:
    """A recorded expression with the expressions of what it reads in it, down to capwatch's own series."""
    return re.sub(r"\b(?:pool|pool_\w+|slice):[\w:]+", lambda read: f"({whole(read[0])})", RECORDED[name])


@pytest.mark.parametrize("alert", ALERTS)
def test_the_runbook_s_queries_run(evaluated: Evaluated, alert: str) -> None:
    """Each query of the alert's section is understood and can be answered."""
    for query in queries(alert):
        evaluated.server.query(query, evaluated.at)


def test_runbook_queries_find_something(evaluated: Evaluated) -> None:
    """At least two thirds of them give series even in quiet traffic without GPUs, budgets, quotas and drift."""
    asked = [query for alert in ALERTS for query in queries(alert)]
    answered = [query for query in asked if evaluated.server.query(query, evaluated.at)]
    assert len(answered) >= len(asked) * 2 / 3
    assert all(names(query) or "up" in query for query in asked)


@pytest.fixture(scope="module")
def recent(quiet: Simulated) -> Rows:
    """What really ended in five minutes up to the last step and had a replica."""
    rows = quiet.rows.take((quiet.rows.ended > quiet.last - 300) & (quiet.rows.ended <= quiet.last))
    return rows.take(~np.isnan(truth.cost(rows)))


def test_cost_and_utilisation_are_true(evaluated: Evaluated, quiet: Simulated, recent: Rows) -> None:
    """They are those of the simulated tokens: the windows begin and end with a sample, so nothing is extrapolated."""
    meant = {"cost_per_request": float(truth.cost(recent).mean()), "utilisation": truth.utilisation(recent, 300)}
    for name, value in meant.items():
        got = evaluated.server.query(whole(f"pool:capwatch_{name}:ratio_rate5m"), quiet.last)
        assert got[POOL] == pytest.approx(value, rel=1e-6), name


def test_percentiles_are_true(evaluated: Evaluated, quiet: Simulated, recent: Rows) -> None:
    """The p95 is the one of the requests themselves, up to the width of a bucket (2^(1/4))."""
    got = evaluated.server.query(whole("pool:capwatch_duration_seconds:p95_rate5m"), quiet.last)
    ratio = got[POOL] / float(np.quantile(recent.ended - recent.arrived, 0.95))
    assert 2 ** (-1 / 4) < ratio < 2 ** (1 / 4)
