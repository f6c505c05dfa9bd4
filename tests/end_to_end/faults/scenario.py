"""A scenario: what befalls a log and its reader while lines are written; and how it is played with any tool."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from . import LONG
from .daemon import until
from .ledger import LINE_BYTES, Samples, accounted
from .shim import Shim
from .stage import Stage, Step, link
from .tools import Capwatch, Counts, Mtail, Rsyslog, Tool
from .writer import TICK_S, Truth, Wrap, Writer, plain

LINES, RATE = (20_000, 5000.0) if LONG else (6000, 3000.0)
"""Written in all, and per second: the long form is that of the measurements that capwatch is held against."""
MOST = 10
"""Times as many lines may be written where steps take long: beyond, tenants would be too many to have names."""
DOCUMENT: dict[str, Any] = {
    "limits": {"tenants": 4000, "tenant_routes": 12_000},
    # Thousands of tenants are there for the truth alone; their quantiles would only cost the time of this test.
    "metrics": {
        "disable": [
            f"capwatch_{one}"
            for one in ("ttft_seconds", "tpot_seconds", "duration_seconds", "prompt_tokens", "output_tokens")
        ]
    },
}


def source(name: str, path: Path, **more: object) -> dict[str, Any]:
    """A source that reads a writer's files from their beginning, rotated names included."""
    return {"name": name, "path": beside(path), "format": "jsonl", "start": "beginning"} | more


def beside(live: Path) -> list[str]:
    """The live name and what rotation leaves beside it: how a source should be configured."""
    return [str(live), f"{live}.*"]


def linked(live: Path) -> list[str]:
    """The same where the live name is a link into the folder `data`."""
    return [str(live), f"{live.parent}/data/*"]


@dataclass(frozen=True)
class Scenario:
    """Steps, and between two of them an even share of the lines, a little more or less by the seed."""

    name: str
    steps: tuple[Step, ...] = ()
    quick: bool = False
    """Whether it is one of the representative third."""
    loss: float = 0.0
    """The share of lines that may be lost at most; nothing may ever be counted twice."""
    peers: bool = True
    """Whether other tools can be asked the same."""
    globs: Callable[[Path], list[str]] = beside
    linked: bool = False
    wrap: Wrap = plain
    source: dict[str, str] = field(default_factory=dict)
    """More of capwatch's source."""
    lines: int = LINES
    """Between the steps; what is written during a step comes on top."""
    rate: float = RATE
    tick: float = TICK_S
    torn: bool = True
    """Whether a write may end within a line, as a full buffer's does; where files are cut, half lines would be lost."""
    drops: Callable[[int], Mapping[str, int]] = lambda lines: {}
    """How many lines are dropped, by reason, of so many."""
    blind: bool = False
    """Whether the daemon gets no inotify instance, as where they have run out, and no events as on NFS."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Played:
    """A scenario that is over."""

    stage: Stage
    truth: Truth
    counts: Counts
    """Lines by tenant as a Prometheus that scraped throughout sees them."""

    @property
    def lost(self) -> int:
        """Lines that are missing, tenant by tenant; those that nobody could read are not asked for."""
        return int(sum(max(sums[0] - self.counts.get(tenant, 0.0), 0.0) for tenant, sums in self.truth.items()))

    @property
    def duplicated(self) -> int:
        """Lines too many, tenant by tenant."""
        wanted = {tenant: sums[0] for tenant, sums in self.truth.items()}
        return int(sum(max(count - wanted.get(tenant, 0.0), 0.0) for tenant, count in self.counts.items()))


def play(scenario: Scenario, make: Callable[[Path, Writer], Tool], folder: Path, seed: int) -> Played:
    """Play it with a tool that is made for a folder and a writer."""
    live = folder / "log"
    if scenario.linked:
        link(live, 0)
    writer = Writer(
        live,
        scenario.rate,
        wrap=scenario.wrap,
        seed=seed,
        tick=scenario.tick,
        torn=scenario.torn,
        most=MOST * scenario.lines,
    )
    tool = make(folder, writer)
    stage = Stage(live, writer, tool, Random(seed))
    try:
        tool.start()
        writer.start()
        distance = scenario.lines / (len(scenario.steps) + 1)
        for step in (*scenario.steps, _nothing):
            far = min(writer.lines + distance * stage.random.uniform(0.7, 1.3), writer.most)
            until(lambda far=far: writer.lines >= far, "enough lines are written")  # type: ignore[misc]
            step(stage)
        writer.stop()
        truth = writer.truth(without=stage.gone)
        tool.settle(sum(sums[0] for sums in truth.values()))
        return Played(stage, truth, tool.counts())
    except BaseException:
        tool.close()
        raise


def capwatch(scenario: Scenario) -> Callable[[Path, Writer], Capwatch]:
    """Makes a daemon for a scenario."""

    def make(folder: Path, writer: Writer) -> Capwatch:
        one = source("gateway", writer.path) | {"path": scenario.globs(writer.path)} | scenario.source
        document = DOCUMENT | {"sources": [one]}
        tool = Capwatch(
            folder, document, lambda: writer.bytes, line_bytes=LINE_BYTES if scenario.wrap is plain else None
        )
        if scenario.loss and os.geteuid() == 0 and shutil.which("chrt"):
            # Whether a line is read before the cut that follows it is a matter of a millisecond, and so of who else is
            # on the machine: where this user may, the daemon does not wait for its neighbours.
            tool.daemon.under = ("chrt", "--rr", "1")
        if scenario.blind:
            shim = Shim(folder)
            shim.set(no_inotify=True)
            tool.daemon.env |= shim.env
        return tool

    return make


PEERS: Mapping[str, Callable[[Path, Writer], Tool]] = {
    "mtail": lambda folder, writer: Mtail(folder, writer.path),
    "rsyslog": lambda folder, writer: Rsyslog(folder, writer.path),
}


def check(scenario: Scenario, folder: Path, seed: int) -> tuple[Played, Samples]:
    """Play it with capwatch and hold it to its bar; what was played, and the last page.

    Every page kept the laws; the last page and the view of a Prometheus agree with each other and, where nothing may
    be lost, with the truth to the last token; bytes are accounted for, as far as anybody can know of them.
    """
    played = play(scenario, capwatch(scenario), folder, seed)
    tool, writer = played.stage.tool, played.stage.writer
    assert isinstance(tool, Capwatch)
    try:
        last = tool.daemon.samples()
        tool.ledger.judge(last)
        assert tool.ledger.breaches == [], tool.ledger.breaches[:5]
        assert tool.accumulated() == last.tenants()
        assert played.duplicated == 0, dict(played.counts)
        if scenario.loss:
            assert played.lost / writer.lines <= scenario.loss, f"{played.lost} of {writer.lines} lines lost"
        else:
            assert last.tenants() == played.truth
        dropped = {reason: count for (reason,), count in last.by("lines_dropped_total", "reason").items() if count}
        assert dropped == scenario.drops(writer.lines)
        if scenario.wrap is plain:
            unseen = writer.bytes - accounted(last)
            lost = played.lost * LINE_BYTES
            assert 0 <= unseen <= lost + len(played.stage.gone) * LINE_BYTES
        elif not scenario.loss:
            assert accounted(last) == writer.bytes
        return played, last
    finally:
        tool.close()


def _nothing(stage: Stage) -> None:
    """The end."""
