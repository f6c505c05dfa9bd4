"""Three stories of a Wednesday over whole weeks: what the review says of them, beside the truth of their generator.

    python -m tests.bench.stories --weeks 3 --rate 3 --seeds 1 --kinds depth,cliff,tenant --prometheus

For each story: seeded traffic of whole weeks whose last one changes on its Wednesday, the real `capwatch replay` into
a state directory, `capwatch review` of it, and with --prometheus the same review of a real Prometheus over the blocks
that `promtool` makes of the replay's samples. Every number is compared with the truth, and the two reviews with each
other. Exits 1 where one is off.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from capwatch.review import asked
from capwatch.review.calendar import DAY, HOUR, WEEK, IsoWeek
from tests.end_to_end.command import COMMAND
from tests.end_to_end.prometheus import prometheus
from tests.review import stories
from tests.review.stories import Story
from tests.review.test_scraped import FAMILIES as COUNTERS

FAMILIES: Final = ",".join(
    [COUNTERS, *(metric.name for shown in (asked.HISTOGRAMS, asked.GAUGES, asked.SUMS) for metric in shown.values())]
)
CAUSES: Final = {"depth": "longer prompts", "cliff": "fewer prefix cache hits", "tenant": "tenant newcomer"}
REMEDIES: Final = {
    "depth": "prompts back to",
    "cliff": "the prefix cache back to",
    "tenant": "a budget for tenant newcomer",
}
NEAR: Final = {"cost_before": 0.01, "cost_after": 0.01, "utilisation_before": 0.02, "utilisation_after": 0.02}
"""How far off a number may be of the truth, as a share of it."""
AGREE: Final = 0.02
"""How far the reviews of the two sources may be apart."""
BOTH: Final = (*NEAR, "rate_before", "rate_after", "requests", "goodput_ratio")


@dataclass(frozen=True)
class Line:
    """One number: the truth, what a review says, and whether that will do."""

    name: str
    truth: str
    found: str
    good: bool


@dataclass(frozen=True)
class Cost:
    """What a command took: wall time, peak memory, processor time of all its threads."""

    seconds: float
    mib: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s, {self.mib:.0f} MiB"


def ran(*words: str | Path) -> Cost:
    """Run a command to its end; what it has to say goes to stderr. Exits with a line where it fails."""
    begun = time.monotonic()
    process = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"exit code {process.returncode} of {' '.join(map(str, words))}")
    return Cost(time.monotonic() - begun, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def written(log: Path, one: Story, since: float, until: float) -> int:
    """Write the log of a story, and its number of lines.

    By a process of its own: the peak that Linux tells of a command is never less than that of the process it came from.
    """
    with ProcessPoolExecutor(1) as writer:
        return writer.submit(stories.write, log, [one], since, until).result()


def review(folder: Path, week: IsoWeek, *source: str | Path) -> tuple[dict[str, Any], Cost]:
    """The document that the command writes."""
    out = folder / "review.html"
    cost = ran(*COMMAND, "review", "--week", str(week), *source, "--out", out)
    found: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
    return found, cost


def told(one: Story, folder: Path, week: IsoWeek, weeks: int, step: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The reviews of one story by their source."""
    log, config, state = folder / "requests.jsonl", folder / "capwatch.yml", folder / "state"
    lines = written(log, one, week.until - weeks * WEEK, week.until)
    stories.config(config, log, [one])
    words: list[str | Path] = (
        ["--openmetrics-out", folder / "samples.om", "--step", step, "--families", FAMILIES] if step else []
    )
    cost = ran(*COMMAND, "replay", "--config.file", config, "--state-dir", state, *words)
    print(f"\n{one.kind}, seed {one.seed}: {lines / 1e6:.2f} M requests; replay {cost}", end="", flush=True)
    log.unlink()
    found, cost = review(folder, week, "--state-dir", state)
    print(f"; review {cost}", end="", flush=True)
    yield "history", found
    if step:
        blocks = folder / "blocks"
        make = ("promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=256h")
        made = ran(*make, folder / "samples.om", blocks)
        (folder / "samples.om").unlink()
        with prometheus(blocks) as running:
            found, cost = review(folder, week, "--prometheus", running.url)
        print(f"; blocks {made}; its review {cost}", end="", flush=True)
        yield "Prometheus", found
    print()


def checked(one: Story, source: str, found: Mapping[str, Any]) -> Iterator[Line]:
    """Each number of a review beside the truth."""
    truth, pool = one.truth, found["pools"][one.kind]
    for key, share in NEAR.items():
        off = pool[key] / truth[key] - 1
        yield Line(key, f"{truth[key]:.4f}", f"{pool[key]:.4f} ({off:+.2%})", abs(off) <= share)
    least, most = (math.ceil(truth["replicas"] * share) for share in (0.98, 1.02))
    needed = pool["replicas_needed"]
    yield Line("replicas_needed", f"{truth['replicas']:.2f}", str(needed), least <= needed <= most)
    event = next((event for event in found["drifts"] if event["pool"] == one.kind), None)
    if event is None:
        yield Line("drift", "one", "none", good=False)
        return
    for effect, size in truth["effects"].items():
        off = (event["effects"][effect] - size) / truth["cost_before"]
        yield Line(
            f"effect {effect}", f"{size:+.4f}", f"{event['effects'][effect]:+.4f} ({off:+.2%})", abs(off) <= 0.02
        )
    late = event["started_at"] - one.change
    yield Line(
        "change point",
        clock(one.change),
        f"{late / 60:+.0f} min",
        abs(late) <= (HOUR if source != "history" else HOUR / 2),
    )
    yield from _words(one, source, found)


def _words(one: Story, source: str, found: Mapping[str, Any]) -> Iterator[Line]:
    """What a reader is told: the cause, the deploy note where the source has notes, the first remedy."""
    mine = [
        finding
        for finding in found["findings"]
        if finding["pool"] == one.kind and "a request costs" in finding["title"]
    ]
    title = mine[0]["title"] if mine else "no finding"
    yield Line("cause", CAUSES[one.kind], title.partition(": ")[2] or title, CAUSES[one.kind] in title)
    note = stories.NOTES[one.kind]
    if note and source == "history":
        evidence = [text for finding in mine for text in finding["evidence"]]
        yield Line(
            "deploy note",
            note,
            "told" if any(note in text for text in evidence) else "missing",
            any(note in text for text in evidence),
        )
    remedies = mine[0]["numbers"].get("remedies", []) if mine else []
    first = remedies[0]["text"] if remedies else "none"
    yield Line("first remedy", REMEDIES[one.kind], first.partition(" (")[0], first.startswith(REMEDIES[one.kind]))


def agreeing(one: Story, kept: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[Line]:
    """What the history says as the truth, and what the server says beside it."""
    mine, theirs = kept["pools"][one.kind], asked["pools"][one.kind]
    for key in BOTH:
        off = theirs[key] / mine[key] - 1
        yield Line(key, f"{mine[key]:.6g}", f"{theirs[key]:.6g} ({off:+.2%})", abs(off) <= AGREE)
    yield Line(
        "replicas_needed",
        str(mine["replicas_needed"]),
        str(theirs["replicas_needed"]),
        abs(mine["replicas_needed"] - theirs["replicas_needed"])
        <= (AGREE * one.truth["replicas"] > abs(one.truth["replicas"] - round(one.truth["replicas"]))),
    )


def clock(at: float) -> str:
    """A day and time of the week."""
    return f"{datetime.fromtimestamp(at, UTC):%a %H:%M}"


def table(title: str, heads: Sequence[str], lines: Sequence[Line]) -> None:
    """Print it."""
    print(f"\n{title}\n\n| {' | '.join(heads)} | |\n|---|---|---|---|")
    for line in lines:
        print(f"| {line.name} | {line.truth} | {line.found} | {'yes' if line.good else '**no**'} |", flush=True)


def last_week(now: float) -> IsoWeek:
    """The last one that is over."""
    return IsoWeek(*datetime.fromtimestamp(now - WEEK, UTC).isocalendar()[:2])


def tell(kind: str, seed: int, chosen: argparse.Namespace) -> bool:
    """Run one story and print what came of it; whether all of it is right."""
    week = last_week(time.time())
    minutes = float(np.random.default_rng(seed).uniform(0, 60))
    one = stories.story(kind, seed, chosen.rate, week.since + 2 * DAY + 10 * HOUR + 60 * minutes)
    good = True
    with tempfile.TemporaryDirectory(prefix="stories-", dir=chosen.folder) as folder:
        found = dict(told(one, Path(folder), week, chosen.weeks, chosen.step if chosen.prometheus else None))
    for source, document in found.items():
        lines = list(checked(one, source, document))
        table(f"**{kind}, seed {seed}, by the {source}**", (f"{kind}", "truth", source), lines)
        good &= all(line.good for line in lines)
    if chosen.prometheus:
        lines = list(agreeing(one, found["history"], found["Prometheus"]))
        table(f"**{kind}, seed {seed}, one beside the other**", (f"{kind}", "history", "Prometheus"), lines)
        good &= all(line.good for line in lines)
    return good


def main() -> int:
    """Say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.stories", description=__doc__.partition("\n")[0])
    parser.add_argument("--weeks", type=int, default=3)
    parser.add_argument("--rate", type=float, default=3.0, help="requests a second (3)")
    parser.add_argument("--seeds", type=int, default=1, help="how many of each kind")
    parser.add_argument("--kinds", default=",".join(stories.KINDS))
    parser.add_argument("--prometheus", action="store_true", help="also the review of a real Prometheus")
    parser.add_argument("--step", default="300s", help="between two samples of a series there (300s)")
    parser.add_argument("--folder", help="where to put files: about 2 GB for a story at 3 requests/s")
    chosen = parser.parse_args()
    results = [tell(kind, seed, chosen) for seed in range(1, chosen.seeds + 1) for kind in chosen.kinds.split(",")]
    print(f"\n{sum(results)} of {len(results)} stories are told right")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
