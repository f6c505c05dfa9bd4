"""What both gateways' tests do with a log: wait until it is whole, and let the product read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from ..command import Page, printed
from .plays import PLAYS, expected, told
from .process import until

RATES = {"prefill_tokens_per_second": 4000, "decode_tokens_per_second": 160}


def play_all(port: int, log: Path) -> None:
    """Give every play, and wait for the last line."""
    for one in PLAYS:
        one.give(port)
    until(lambda: log.exists() and len(log.read_bytes().splitlines()) >= len(PLAYS), "lines are missing in the log")


def configure(folder: Path, source: dict[str, Any]) -> Path:
    """A configuration with this source alone."""
    path = folder / "capwatch.yml"
    path.write_text(yaml.safe_dump({"sources": [{"name": "gateway", **source}], "pools": [{"name": "all", **RATES}]}))
    return path


def explained(config: Path, log: Path) -> list[dict[str, Any]]:
    """What `explain --json` tells of each line."""
    lines = printed("explain", "--json", "--config.file", config, "--source", "gateway", log, cwd=config.parent)
    return [json.loads(line) for line in lines.splitlines()]


def replayed(config: Path) -> Page:
    """The page of `replay`."""
    return Page(printed("replay", "--config.file", config, cwd=config.parent))


def told_line_by_line(config: Path, log: Path) -> None:
    """Every line is one request with the outcome of its play."""
    lines = explained(config, log)
    assert [one["outcome"] for one in lines] == ["record"] * len(PLAYS)
    assert told([one["record"] for one in lines]) == expected()


def counted_once(config: Path) -> None:
    """The page has a request for each play, and a retry for each that was tried twice."""
    page = replayed(config)
    outcomes = {(one.name, one.outcome): 0.0 for one in PLAYS}
    for one in PLAYS:
        outcomes[one.name, one.outcome] += 1
    assert page.values("requests_total", "tenant", "outcome") == outcomes
    assert page.value("retries_total") == sum(one.retries for one in PLAYS)
    assert page.value("lines_read_total") == page.value("lines_counted_total") == len(PLAYS)
