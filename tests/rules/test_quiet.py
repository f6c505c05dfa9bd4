"""All rules on forty minutes of simulated quiet traffic, evaluated at every step: no alert fires."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from pathlib import Path

from .conftest import LENGTH_S, Quiet
from .rulebook import ALERTS, FILES, RULES, groups
from .traffic import INSTANCE, JOB, STEP, samples

LIVE = (f'up{{job="{JOB}",instance="{INSTANCE}"}}', f'capwatch_build_info{{job="{JOB}",instance="{INSTANCE}"}}')


def series(quiet: Quiet) -> list[dict[str, str]]:
    """The replayed samples as input of a unit test, one value for each step, and what only a live scrape adds."""
    steps = int(LENGTH_S // STEP) + 1
    found: dict[str, list[str]] = defaultdict(lambda: ["_"] * steps)
    for name, at, value in samples(quiet.openmetrics):
        step = (at - (quiet.end - LENGTH_S)) / STEP
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
    path = folder / "quiet.yml"
    path.write_text(json.dumps(document))  # JSON is YAML, and quick to write
    done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_no_alert_fires(quiet: Quiet, tmp_path: Path) -> None:
    """At no minute is any alert firing."""
    code, said = promtool(tmp_path, series(quiet), int(LENGTH_S // 60))
    assert code == 0, said


def test_with_other_thresholds_it_would_fire(quiet: Quiet, tmp_path: Path) -> None:
    """The calm is the traffic's: a pool that may use only a hundredth of its cache raises that alert alone."""
    own = {"series": 'capwatch:threshold:kv_demand_ratio{pool="chat-70b"}', "values": "0.01x99"}
    code, said = promtool(tmp_path, [*series(quiet), own], 10)
    assert (code, {name for name in ALERTS if f"alertname: {name}," in said}) == (1, {"CapwatchKVDemandOverPool"}), said
