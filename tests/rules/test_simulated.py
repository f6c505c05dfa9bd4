"""All rules on forty minutes of simulated traffic, evaluated at every step: what fires is true, and in calm nothing."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from .conftest import LENGTH_S, Simulated
from .rulebook import ALERTS, FILES, RULES, groups
from .traffic import INSTANCE, JOB, STEP, samples

LIVE = (f'up{{job="{JOB}",instance="{INSTANCE}"}}', f'capwatch_build_info{{job="{JOB}",instance="{INSTANCE}"}}')


def series(log: Simulated) -> list[dict[str, str]]:
    """The replayed samples as input of a unit test, one value for each step, and what only a live scrape adds."""
    steps = int(LENGTH_S // STEP) + 1
    found: dict[str, list[str]] = defaultdict(lambda: ["_"] * steps)
    for name, at, value in samples(log.openmetrics):
        step = (at - (log.end - LENGTH_S)) / STEP
        if step.is_integer():
            found[name][int(step)] = value
    told = [{"series": name, "values": " ".join(values)} for name, values in found.items()]
    return told + [{"series": name, "values": f"1x{steps}"} for name in LIVE]


def promtool(folder: Path, inputs: list[dict[str, str]], minutes: int) -> tuple[int, str]:
    """Promtool's verdict on the claim that no alert fires at any of these minutes, and what it says."""
    silent = [{"eval_time": f"{at}m", "alertname": alert} for at in range(1, minutes + 1) for alert in ALERTS]
    document = {
        "rule_files": [str(RULES / name) for name in FILES],
        "evaluation_interval": f"{STEP}s",
        "group_eval_order": [group["name"] for name in FILES for group in groups(name)],
        "tests": [{"interval": f"{STEP}s", "input_series": inputs, "alert_rule_test": silent}],
    }
    path = folder / "simulated.yml"
    path.write_text(json.dumps(document))  # JSON is YAML, and quick to write
    done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def fired(said: str) -> set[str]:
    """The alerts that promtool found firing."""
    return set(re.findall(r"alertname: (\w+), time", said))


def test_no_alert_fires_in_quiet_traffic(quiet: Simulated, tmp_path: Path) -> None:
    """At no minute is any alert firing."""
    code, said = promtool(tmp_path, series(quiet), int(LENGTH_S // 60))
    assert code == 0, said


def test_with_other_thresholds_it_would_fire(quiet: Simulated, tmp_path: Path) -> None:
    """The calm is the traffic's: a pool that may use only a hundredth of its cache raises that alert alone."""
    own = {"series": 'capwatch:threshold:kv_demand_ratio{pool="chat-70b"}', "values": "0.01x99"}
    code, said = promtool(tmp_path, [*series(quiet), own], 10)
    assert (code, fired(said)) == (1, {"CapwatchKVDemandOverPool"}), said


def test_a_new_tenant_raises_what_is_true(new_tenant: Simulated, tmp_path: Path) -> None:
    """Without the detector, whose state a replay does not show: twelve replicas are there and more are needed, no more.

    The SLO still holds for most requests, nobody waits beyond the budget, and nobody retries.
    """
    code, said = promtool(tmp_path, series(new_tenant), int(LENGTH_S // 60))
    assert (code, fired(said)) == (1, {"CapwatchHeadroomNegative"}), said
    assert set(re.findall(r"(\d+) there, (\d+) needed", said)) <= {("12", "14"), ("12", "15"), ("12", "16")}
