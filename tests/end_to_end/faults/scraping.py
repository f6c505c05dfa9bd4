"""Debian's Prometheus scraping a daemon, and what it made of it by its own rule."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.prometheus import Prometheus, prometheus

from .daemon import until
from .ledger import LIVE, Accumulated

needs_prometheus = pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
DOCUMENT = """
global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}
scrape_configs:
  - {{job_name: capwatch, static_configs: [{{targets: ["{address}"]}}]}}
"""


@contextmanager
def scraping(folder: Path, address: str, interval: str = "500ms") -> Iterator[Prometheus]:
    """A Prometheus that scrapes an address until the block ends."""
    folder.mkdir()
    with prometheus(folder, DOCUMENT.format(interval=interval, address=address)) as server:
        yield server


def wait_for(server: Prometheus, promql: str, value: float) -> None:
    """Wait until a query without labels has this value: the last scrape has come in."""
    until(lambda: server.query(promql, time.time()).get((), 0.0) == value, f"{promql} is {value}")


def judged(server: Prometheus, selector: str) -> tuple[dict[str, float], list[str]]:
    """The increase of every counter since nothing, by Prometheus' rule over its raw samples, and every fall it saw."""
    found = Accumulated()
    for series, values in server.raw(f"{selector}[1h]", time.time()).items():
        if not json.loads(series)["__name__"].startswith(LIVE):
            for value in values:
                found.add(series, value)
    return dict(found.sums), found.fallen


def tenants(increases: dict[str, float]) -> dict[str, list[float]]:
    """By tenant as `Writer.truth` has it, of increases of requests and tokens."""
    places = {None: 0, "prompt_computed": 1, "prompt_cached": 2, "output": 3}
    sums: dict[str, list[float]] = {}
    for series, value in increases.items():
        labels = json.loads(series)
        sums.setdefault(labels["tenant"], [0.0] * 4)[places[labels.get("kind")]] += value
    return sums
