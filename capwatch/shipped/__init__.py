"""What is shipped for other programs: the rules for Prometheus and the dashboards, in the wheel or in the checkout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from capwatch.errors import UsageError

KINDS: Final = {"rules": "*.yml", "dashboards": "*.json"}
"""Folders, and what is in them."""
RULE_FILES: Final = ("thresholds.yml", "recording.yml", "alerts.yml")
"""In the order in which a server reads them."""
RUNBOOK: Final = "rules/README.md"
"""Where `runbook_url` leads as it is shipped: a path in the repository."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression that somebody looks at or a server evaluates.

    Attributes:
        where: board and panel, or the name of the rule.
        text: PromQL, with Grafana's macros where it is a panel's.
        kind: `panel`, `record` or `alert`.
    """

    where: str
    text: str
    kind: str


def folder(kind: str) -> Path:
    """Where the files of one of `KINDS` are: inside the installed package, or beside it in a checkout."""
    inside = Path(__file__).resolve().parent / kind
    return inside if inside.is_dir() else Path(__file__).resolve().parents[2] / kind


def files(kind: str) -> dict[str, str]:
    """The files of one of `KINDS` by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder(kind).glob(KINDS[kind]))}


def rules(runbook: str | None = None) -> dict[str, str]:
    """The files of rules in the order of `RULE_FILES`.

    Args:
        runbook: address of a copy of the runbook, to which `runbook_url` of every alert leads; None: as shipped.
    """
    told = files("rules")
    if runbook is not None:
        told = {
            name: text.replace(f"runbook_url: {RUNBOOK}#", f"runbook_url: {runbook}#") for name, text in told.items()
        }
    return {name: told[name] for name in RULE_FILES}


def write(told: Mapping[str, str], target: str) -> str:
    """Write files into a folder, which is made; the names of what was written, a line each.

    Raises:
        UsageError: it cannot be written.
    """
    paths = [Path(target) / name for name in told]
    try:
        Path(target).mkdir(parents=True, exist_ok=True)
        for path in paths:
            path.write_text(told[path.name], encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out: {error.filename or target} cannot be written: {error.strerror}") from None
    return "\n".join(map(str, paths))


def expressions() -> Iterator[Expression]:
    """Every expression of every board and rule."""
    for text in files("dashboards").values():
        yield from of_board(json.loads(text))
    for text in rules().values():
        yield from of_rules(yaml.safe_load(text))


def of_board(board: Mapping[str, Any]) -> Iterator[Expression]:
    """The expressions of a dashboard's panels, those in collapsed rows as well."""
    title = str(board.get("title", "untitled")).removeprefix("capwatch / ")
    panels = list(board.get("panels") or [])
    while panels:
        panel = panels.pop(0)
        panels[:0] = panel.get("panels") or []
        for target in panel.get("targets") or []:
            if isinstance(target.get("expr"), str) and target["expr"]:
                yield Expression(f"{title}: {panel.get('title') or 'untitled'}", target["expr"], "panel")


def of_rules(document: Mapping[str, Any]) -> Iterator[Expression]:
    """The expressions of a file of rules."""
    for group in document.get("groups") or []:
        for rule in group.get("rules") or []:
            kind = "alert" if "alert" in rule else "record"
            yield Expression(str(rule.get(kind)), str(rule.get("expr")).strip(), kind)


def plain(expression: str) -> str:
    """An expression of a board as a server takes it: every variable is anything, every window five minutes.

    >>> plain('rate(a{pool=~"$pool",x="y"}[$__rate_interval])')
    'rate(a{pool=~".+",x="y"}[5m])'
    """
    text = re.sub(r"\$__(?:rate_)?interval|\$__range", "5m", expression)
    return re.sub(r'(=~|=)\s*"\$\{?\w+(?::\w+)?\}?"', r'=~".+"', text)
