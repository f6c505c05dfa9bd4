"""Simulated traffic as OpenMetrics with record time: what the rules are run on when they are not unit-tested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from capwatch.demo.draw import Rows
from capwatch.demo.scene import Scene
from capwatch.demo.simulation import Simulation
from capwatch.demo.writers import Writers
from capwatch.metrics import CATALOGUE
from tests.end_to_end.command import printed

from .rulebook import ALERTS, RECORDED, asked, names, queries

STEP = 30
JOB, INSTANCE = "capwatch", "127.0.0.1:10077"


@cache
def families() -> tuple[str, ...]:
    """The families of the catalogue that some rule, text or query of the runbook reads."""
    read = [names(expr) for expr in RECORDED.values()] + [asked(rule) for rule in ALERTS.values()]
    read += [names(" ".join(queries(alert))) for alert in ALERTS]
    wanted = set.union(*read)
    return tuple(
        metric.family
        for name, metric in CATALOGUE.items()
        if any(re.fullmatch(f"{name}(_bucket|_sum|_count)?", one) for one in wanted)
    )


def replayed(folder: Path, end: float, length: float, scenario: str = "quiet") -> tuple[Rows, Path]:
    """`length` seconds of a scenario of the demo up to `end` (s, epoch): the requests, and their logs replayed.

    What changes in the scenario changes after a quarter of the time.
    """
    scene = Scene(folder)
    scene.set_up("127.0.0.1:0")
    simulation = Simulation(scenario, 11, end - length, length / 4)
    writers = Writers(scene.gateway, scene.engines, seed=11, max_bytes=1 << 30, kept=9)
    writers.begin(end - length)
    parts = []
    for at in np.arange(end - length + 10, end + 1, 10).tolist():
        parts.append(simulation.until(at))
        writers.write(parts[-1], simulation.statistics(at), at)
    writers.close()
    words = ("--openmetrics-out", "out.om", "--step", f"{STEP}s", "--families", ",".join(families()))
    printed("replay", "--config.file", scene.configuration, *words, cwd=folder)
    return Rows.join(*parts), folder / "out.om"


def scraped(line: str) -> str:
    """A sample with the labels that a scrape would have given it."""
    name, labels, rest = re.fullmatch(r"(\w+)(?:\{(.*)\})? (.*)", line).groups()  # type: ignore[union-attr]
    mine = f'job="{JOB}",instance="{INSTANCE}"'
    return f"{name}{{{mine}{',' + labels if labels else ''}}} {rest}"


def samples(openmetrics: Path) -> Iterator[tuple[str, float, str]]:
    """(series, time, value) of every sample of a file."""
    for line in openmetrics.read_text().splitlines():
        if not line.startswith("#"):
            series, value, at = scraped(line).rsplit(" ", 2)
            yield series, float(at), value
