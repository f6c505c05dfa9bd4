"""What a review of a large week costs, from the history and from the raw log, and whether it is right.

    python -m tests.bench.reviewed --requests 5000000 --tenants 20 --source both

A seeded week whose retrieval depth doubles on its Wednesday, busier by day than by night, and three days before it at a
tenth of the rate. The log is written by columns, the history by the real `capwatch replay`; then the real `capwatch
review` runs as a child of its own. Prints a table, and exits 1 where a review takes over 60 s or 1 GiB, or where one
of its numbers is not the generator's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from capwatch.review.calendar import DAY, HOUR, WEEK, IsoWeek
from tests.bench.stories import Cost, Line, checked, last_week, ran, review, written
from tests.end_to_end.command import COMMAND
from tests.review import stories
from tests.review.stories import REPLICAS, Story

EARLIER_S: Final = int(3.2 * DAY)
"""A detector learns from three days on."""
MOST_S: Final = 60.0
MOST_MIB: Final = 1024.0
ROUTES: Final = 5
SWING: Final = 0.5
SEED: Final = 7
UTILISATION: Final = 0.02
"""How far off a utilisation may be of the truth, as a share of it."""


def made(week: IsoWeek, requests: int, tenants: int) -> Story:
    """The story of a week of so many requests."""
    change = week.since + 2 * DAY + 10 * HOUR + 23 * 60.0
    one = stories.story("depth", SEED, requests / WEEK, change)
    return replace(one, tenants=tenants, routes=ROUTES, swing=SWING, full=float(week.since))


def judged(one: Story, week: IsoWeek, source: str, found: dict[str, Any]) -> Iterator[Line]:
    """Each number beside the truth; utilisation by what the day's shape makes of the rate in its two windows."""
    named = "history" if source == "state" else source
    yield from (line for line in checked(one, named, found) if not line.name.startswith(("utilisation", "replicas")))
    pool, truth = found["pools"][one.kind], one.truth
    first = -(-one.change // HOUR) * HOUR
    spans = {"before": (week.since, first - HOUR), "after": (first, week.until)}
    for name, (begin, end) in spans.items():
        rate = one.rate * float(one.share(np.arange(begin, end, 60.0)).mean())
        right, said = rate * truth[f"cost_{name}"] / REPLICAS, pool[f"utilisation_{name}"]
        off = said / right - 1
        yield Line(f"utilisation_{name}", f"{right:.4f}", f"{said:.4f} ({off:+.2%})", abs(off) <= UTILISATION)
    off = pool["requests"] / (one.rate * WEEK) - 1
    yield Line("requests", f"{one.rate * WEEK:.0f}", f"{pool['requests']:.0f} ({off:+.2%})", abs(off) <= UTILISATION)


def told(cost: Cost) -> str:
    """Its figures as columns of a table."""
    return f"{cost.seconds:.1f} s | {cost.cpu:.1f} s | {cost.mib:.0f} MiB"


def costs(one: Story, folder: Path, week: IsoWeek, kinds: Sequence[str]) -> Iterator[tuple[str, dict[str, Any], Cost]]:
    """What the command writes and takes, by the kind of its source; prints a row for everything that runs."""
    log, config, state = folder / "requests.jsonl", folder / "capwatch.yml", folder / "state"
    lines = written(log, one, week.since - EARLIER_S, week.until)
    stories.config(config, log, [one])
    print(f"{lines:,} requests, {one.tenants} tenants, {ROUTES} routes, {log.stat().st_size / 1e6:.0f} MB of log\n")
    print("| | wall | CPU | peak memory |\n|---|---|---|---|", flush=True)
    if "state" in kinds:
        cost = ran(*COMMAND, "replay", "--config.file", config, "--state-dir", state)
        size = (state / "history.db").stat().st_size
        print(f"| replay into a history of {size / 1e6:.1f} MB | {told(cost)} |", flush=True)
    for kind in kinds:
        found, cost = review(folder, week, *(("--state-dir", state) if kind == "state" else ("--config.file", config)))
        print(f"| review of the {kind} | {told(cost)} |", flush=True)
        yield kind, found, cost


def main() -> int:
    """Say what it costs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.reviewed", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=5_000_000)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--source", choices=("state", "logs", "both"), default="both")
    parser.add_argument("--folder", help="where to put files: about 1.5 GB for 5 million requests")
    chosen = parser.parse_args()
    week = last_week(time.time())
    one = made(week, chosen.requests, chosen.tenants)
    kinds = ("state", "logs") if chosen.source == "both" else (chosen.source,)
    with tempfile.TemporaryDirectory(prefix="reviewed-", dir=chosen.folder) as folder:
        found = list(costs(one, Path(folder), week, kinds))
    wrong = [
        f"wrong by the {kind}: {line.name} is {line.found}, not {line.truth}"
        for kind, document, _ in found
        for line in judged(one, week, kind, document)
        if not line.good
    ]
    print("\n".join(["", *(wrong or ["all numbers are the generator's"])]))
    return 0 if not wrong and all(cost.seconds <= MOST_S and cost.mib <= MOST_MIB for *_, cost in found) else 1


if __name__ == "__main__":
    sys.exit(main())
