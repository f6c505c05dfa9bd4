"""mtail against `capwatch replay`, in turn over the same draws: `python -m tests.bench.mtail --lines 1000000 --runs 5`.

Both read a finished file from the page cache and print their exposition once. CPU and peak memory are those of the
whole process as GNU time reports them, which starts each tool from a small process of its own: the peak that a child
inherits from a large parent would be counted as the child's.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .corpus import Corpus, Draws, corpus, truth
from .totals import Totals, differences, expected, from_capwatch, from_peer

HERE = Path(__file__).parent
GNU_TIME = "/usr/bin/time"


@dataclass(frozen=True)
class Tool:
    """A program to measure: its command over the corpus, and how to check what it prints."""

    name: str
    command: list[str]
    totals: Callable[[str], Totals]
    by_status: bool


@dataclass(frozen=True)
class Run:
    """What one run of a tool took: seconds of CPU (user and system) and of the clock, and the peak in MiB."""

    cpu: float
    wall: float
    rss: float


def measured(tool: Tool, page: Path) -> Run:
    """Runs the tool once with its output in `page`; exits with the end of the tool's own log if it fails."""
    figures = page.with_suffix(".time")
    command = [GNU_TIME, "--format", "%U %S %e %M", "--output", str(figures), *tool.command]
    log = page.with_suffix(".log")
    with page.open("wb") as out, log.open("wb") as err:
        code = subprocess.run(command, stdout=out, stderr=err, check=False).returncode
    if code:
        sys.exit(f"{tool.name} failed with {code}: {log.read_text(errors='replace')[-2000:]}")
    user, system, wall, kilobytes = map(float, figures.read_text().split())
    return Run(user + system, wall, kilobytes / 1024)


def compared(tools: list[Tool], runs: int, draws: Draws, folder: Path) -> tuple[dict[str, list[Run]], list[str]]:
    """`runs` runs of each tool in turn, and what their first pages say that is not the truth."""
    taken: dict[str, list[Run]] = {tool.name: [] for tool in tools}
    wrong = []
    for k in range(runs):
        for tool in tools:
            page = folder / f"{tool.name}.prom"
            taken[tool.name].append(measured(tool, page))
            if k == 0:
                faults = differences(tool.totals(page.read_text()), expected(draws, status=tool.by_status))
                wrong += [f"{tool.name}: {fault}" for fault in faults]
            print(f"run {k + 1}, {tool.name}: {taken[tool.name][-1]}", file=sys.stderr)
    return taken, wrong


def table(taken: dict[str, list[Run]]) -> str:
    """Medians with their ranges as a Markdown table; the last row is the ratio of the pairs, first tool over last."""
    names = list(taken)
    rows = [["tool", "CPU s", "wall s", "peak MiB"], ["---"] * 4]
    rows += [
        [name, *(_spread([getattr(run, f) for run in taken[name]]) for f in ("cpu", "wall", "rss"))] for name in names
    ]
    if len(names) > 1:
        pairs = list(zip(taken[names[0]], taken[names[-1]], strict=True))
        ratios = ([getattr(a, f) / getattr(b, f) for a, b in pairs] for f in ("cpu", "wall", "rss"))
        rows.append([f"{names[0]} / {names[-1]}", *map(_spread, ratios)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"


def tools(files: Corpus, capwatch: str | None) -> list[Tool]:
    """The tools that are installed, each with its own layout of the corpus; missing ones are named on stderr."""
    found = []
    peer = ["--one_shot", "--one_shot_format=prometheus", "--progs", str(HERE / "gw.mtail"), "--logs", str(files.peer)]
    ours = ["replay", "--config.file", str(HERE / "bench.yml"), str(files.capwatch)]
    for name, program, arguments, totals in (
        ("capwatch", capwatch, ours, from_capwatch),
        ("mtail", shutil.which("mtail"), peer, from_peer),
    ):
        if program is None:
            print(f"{name} is not installed: left out", file=sys.stderr)
        else:
            found.append(Tool(name, [program, *arguments], totals, by_status=name == "mtail"))
    return found


def circumstances(tools: list[Tool], lines: int) -> str:
    """What the figures depend on: the machine, its load, the versions."""
    model = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    versions = [_version(tool.command[0]) for tool in tools]
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return "\n".join(
        f"- {fact}"
        for fact in (
            f"{lines:,} lines, files in the page cache",
            f"{model}, {os.cpu_count()} cores, load {load}",
            f"{platform.platform()}, Python {platform.python_version()}",
            *versions,
        )
    )


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _version(program: str) -> str:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return f"{Path(program).name}: {(told.stdout or told.stderr).strip().splitlines()[0]}"


def main() -> int:
    """Prints the comparison as Markdown; exit 1 if a tool's totals are not the truth."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.mtail", description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5, help="runs of each tool, in turn")
    parser.add_argument("--folder", type=Path, help="where the corpus lies or is written (default: a temporary folder)")
    own = Path(sys.executable).with_name("capwatch")
    parser.add_argument("--capwatch", default=str(own) if own.exists() else shutil.which("capwatch"))
    arguments = parser.parse_args()
    if not Path(GNU_TIME).exists():
        parser.error(f"{GNU_TIME} is missing (Debian package time)")
    with tempfile.TemporaryDirectory() as temporary:
        files = corpus(arguments.folder or Path(temporary), arguments.lines)
        for path in (files.capwatch, files.peer):
            shutil.copyfile(path, os.devnull)  # into the page cache, for all alike
        chosen = tools(files, arguments.capwatch)
        facts = circumstances(chosen, arguments.lines)
        taken, wrong = compared(chosen, arguments.runs, truth(files.truth), Path(temporary))
    print(facts, table(taken), "\n".join(wrong[:20]) or "Totals of all tools equal the truth.", sep="\n\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
