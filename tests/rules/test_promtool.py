"""Debian's promtool on the rules: they are well-formed, their unit tests pass, and would fail if a rule were broken.

An alert's unit tests run on the rules that it rests on and no others, an eighth of the time: 150 cases, some of a week.
As they stand they run on all of them (`promtool test rules rules/tests/*.yml`); so does `test_simulated`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from .rulebook import ALERTS, FILES, RECORDED, RULES, TESTS, asked, names

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (package prometheus) is missing")

# What is broken, by alert: file, what stands there, what stands there instead. Each must make the alert's tests fail.
BROKEN = {
    "CapwatchKVDemandOverPool": ("thresholds.yml", 'kv_demand_ratio", expr: vector(0.9)', "vector(0.99)"),
    "CapwatchRetryAmplification": ("thresholds.yml", 'retry_amplification_ratio", expr: vector(1.2)', "vector(1.05)"),
    "CapwatchQuotaExhaustion": ("thresholds.yml", 'quota_exhaustion_seconds", expr: vector(1800)', "vector(60)"),
    "CapwatchBudgetExceedsFleet": ("thresholds.yml", 'utilisation_ratio", expr: vector(0.9)', "vector(0.5)"),
    "CapwatchPromptLengthShift": ("thresholds.yml", ':requests", expr: vector(100)', "vector(1)"),
    "CapwatchGoodputBurnSlow": ("thresholds.yml", 'goodput_requests", expr: vector(100)', "vector(1)"),
    "CapwatchInFlightRisingAtFlatRate": ("thresholds.yml", 'flat_rate_ratio", expr: vector(1.1)', "vector(9)"),
    "CapwatchExpectedWaitOverBudget": ("alerts.yml", "late_share_ratio\n        for: 5m", "late_share_ratio"),
}


def promtool(*words: str | Path) -> tuple[int, str]:
    """Exit status and everything that promtool says."""
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def closure(alert: str) -> set[str]:
    """An alert and all recorded names that it reads, directly or through others."""
    found, new = {alert}, asked(ALERTS[alert])
    while new := {name for name in new if name in RECORDED and name not in found}:
        found |= new
        new = set.union(*(names(RECORDED[name]) for name in new))
    return found


def unit_tests(alert: str, folder: Path, broken: dict[str, str]) -> tuple[int, str]:
    """The alert's unit tests, on the rules that it rests on; `broken` is the text of files that are not as shipped."""
    wanted = closure(alert)
    for name in FILES:
        groups = yaml.safe_load(broken.get(name) or (RULES / name).read_text())["groups"]
        for group in groups:
            group["rules"] = [rule for rule in group["rules"] if {rule.get("record"), rule.get("alert")} & wanted]
        (folder / name).write_text(json.dumps({"groups": [group for group in groups if group["rules"]]}))
    (folder / "tests").mkdir()
    return promtool("test", "rules", Path(shutil.copy(TESTS[alert], folder / "tests")))


def test_the_rules_are_well_formed() -> None:
    """No finding of `promtool check rules`, duplicates included."""
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", *(RULES / name for name in FILES))
    assert code == 0, said


@pytest.mark.parametrize("alert", TESTS)
def test_unit_tests_pass(alert: str, tmp_path: Path) -> None:
    """The alert fires with its texts where it must, and stays silent where it must."""
    code, said = unit_tests(alert, tmp_path, {})
    assert code == 0, said


@pytest.mark.parametrize("alert", BROKEN)
def test_unit_tests_would_notice(alert: str, tmp_path: Path) -> None:
    """A threshold that is too low or too high, or an alert without patience, makes a test fail by the alert's name."""
    file, found, other = BROKEN[alert]
    text = (RULES / file).read_text()
    assert text.count(found) == 1
    instead = re.sub(r"vector\(.*\)", other, found) if other.startswith("vector") else other
    code, said = unit_tests(alert, tmp_path, {file: text.replace(found, instead)})
    assert (code, f"alertname: {alert}" in said) == (1, True), said
