"""The shipped rules as the tests read them: files, alerts, recorded names, and the headings of the runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).resolve().parents[2] / "rules"
FILES = ("thresholds.yml", "recording.yml", "alerts.yml")
RUNBOOK = (RULES / "README.md").read_text()


def groups(name: str) -> list[dict[str, Any]]:
    """The groups of a file of rules."""
    found: list[dict[str, Any]] = yaml.safe_load((RULES / name).read_text())["groups"]
    return found


def rules(name: str) -> list[dict[str, Any]]:
    """The rules of a file, in order."""
    return [rule for group in groups(name) for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules("alerts.yml")}
RECORDED = {rule["record"]: rule["expr"] for name in FILES[:2] for rule in rules(name)}
TESTS = {path.stem: path for path in sorted((RULES / "tests").glob("*.yml"))}


def names(expr: str) -> set[str]:
    """The names of the series that an expression reads: those of capwatch and recorded ones."""
    return set(re.findall(r"\b(capwatch_\w+|(?:capwatch|pool|pool_\w+|slice):[\w:]+)", expr))


def asked(rule: dict[str, Any]) -> set[str]:
    """The names that an alert reads, in its expression and in the queries of its texts."""
    return names(rule["expr"]) | {name for text in rule["annotations"].values() for name in names(text)}


def headings(level: int) -> list[str]:
    """The runbook's headings of a level."""
    return re.findall(rf"^{'#' * level} (.*)$", RUNBOOK, re.M)


def section(alert: str) -> str:
    """What the runbook says of an alert."""
    return RUNBOOK.split(f"\n## {alert}\n", 1)[1].split("\n## ", 1)[0]


def queries(alert: str) -> list[str]:
    """The queries of an alert's section."""
    blocks = re.findall(r"^```promql\n(.*?)^```", section(alert), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]
