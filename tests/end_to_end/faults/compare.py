"""The same scenarios for capwatch, mtail and rsyslog in turn, as a table: `python -m tests.end_to_end.faults.compare`.

Each line is judged by its tenant, of which each has a hundred: what is missing is lost, what is too many duplicated.
mtail is judged as a Prometheus that scrapes it every half second and adds up over resets; rsyslog by the file that it
writes; capwatch by its pages, as a Prometheus adds them up. mtail and rsyslog follow the live name, as is common;
capwatch has the rotated names in its glob, as its documentation says.
"""

from __future__ import annotations

import os

os.environ.setdefault("CAPWATCH_FAULTS", "1")  # the long form, before the scenarios are made

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .scenario import PEERS, Scenario, capwatch, play
from .scenarios import FAMILIES
from .tools import missing, versions

TOOLS = ("capwatch", *PEERS)
Figures = dict[str, list[tuple[int, int]]]
"""By tool: lost and duplicated of each run."""


def measured(scenario: Scenario, tools: Sequence[str], seeds: Sequence[int]) -> Figures:
    """Lost and duplicated lines of each tool, of which those that were deleted unopened are lost for all."""
    found: Figures = {}
    for tool in tools:
        if tool != "capwatch" and not scenario.peers:
            continue
        for seed in seeds:
            with tempfile.TemporaryDirectory(prefix="faults-") as folder:
                make = capwatch(scenario) if tool == "capwatch" else PEERS[tool]
                played = play(scenario, make, Path(folder), seed)
                played.stage.tool.close()
                found.setdefault(tool, []).append((played.lost + len(played.stage.gone), played.duplicated))
        print(f"{scenario}: {tool}: {found[tool]}", file=sys.stderr, flush=True)
    return found


def table(rows: Sequence[tuple[Scenario, Figures]], tools: Sequence[str]) -> Iterator[str]:
    """The table as Markdown: lost / duplicated, the range over the seeds."""
    yield f"| scenario | {' | '.join(tools)} |"
    yield f"|{'---|' * (len(tools) + 1)}"
    for scenario, figures in rows:
        cells = [_cell(figures[tool]) if tool in figures else "–" for tool in tools]
        yield f"| {scenario} | {' | '.join(cells)} |"


def _cell(runs: Sequence[tuple[int, int]]) -> str:
    return " / ".join(_range([run[column] for run in runs]) for column in (0, 1))


def _range(values: Sequence[int]) -> str:
    least, most = min(values), max(values)
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def main() -> int:
    """Prints the table; exit 1 where capwatch lost more than its bar, or counted anything twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.end_to_end.faults.compare", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each scenario")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="only this one; may be repeated")
    parser.add_argument("--tool", choices=TOOLS, action="append", help="only this one; may be repeated")
    arguments = parser.parse_args()
    tools = [tool for tool in TOOLS if tool in (arguments.tool or TOOLS)]
    for tool in missing(tools):
        print(f"{tool} is not installed (Debian package {tool}): left out", file=sys.stderr)
        tools.remove(tool)
    scenarios = [one for family in arguments.family or FAMILIES for one in FAMILIES[family]]
    seeds = range(1, arguments.seeds + 1)
    begun = time.monotonic()
    rows = [(one, measured(one, tools, seeds)) for one in scenarios]
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{time.monotonic() - begun:.0f} s, {platform.platform()}, {os.cpu_count()} cores, load {load}")
    print(f"{', '.join(versions())}\n")
    print("\n".join(table(rows, tools)))
    worst = [
        f"{one}: {lost} lost, {doubled} duplicated"
        for one, figures in rows
        for lost, doubled in figures.get("capwatch", ())
        if doubled or lost > one.loss * one.lines + _gone(one)
    ]
    print("\n".join(["", *worst]))
    return int(bool(worst))


def _gone(scenario: Scenario) -> float:
    """Lines that nobody can read in a scenario that deletes files unopened."""
    return scenario.lines if "deleted" in str(scenario) and "SIGSTOP" in str(scenario) else 0


if __name__ == "__main__":
    sys.exit(main())
