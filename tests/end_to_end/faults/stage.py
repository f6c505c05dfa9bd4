"""The stage of a scenario: a writer, a tool that reads what it writes, and all that may befall either of them."""

from __future__ import annotations

import gzip
import itertools
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from .daemon import until
from .tools import Tool
from .writer import Writer

UNSEEN_S = 0.6
"""A tool that does not tell what it has read gets so long to open a new file before that may be deleted."""


@dataclass
class Stage:
    """What the steps of a scenario have at hand."""

    live: Path
    """The name that is followed."""
    writer: Writer
    tool: Tool
    random: Random
    gone: set[int] = field(default_factory=set)
    """Lines that lay in files which were deleted while nobody could open them."""
    turns: int = 0

    def dated(self) -> Path:
        """The next name for a rotated file."""
        self.turns += 1
        return Path(f"{self.live}.20260303-{self.turns:06d}")

    def seen(self) -> None:
        """Wait until the tool has read from the file that is written now, so that it has it open."""
        opened = self.writer.opened_at
        if self.tool.tells:
            until(lambda: self.tool.read() > opened, "the new file has been read from")
        else:
            time.sleep(UNSEEN_S)


Step = Callable[[Stage], None]
"""One thing that happens while the writer writes on."""


def then(*steps: Step) -> Step:
    """One step after the other, without a pause."""

    def all_of_them(stage: Stage) -> None:
        for step in steps:
            step(stage)

    return all_of_them


def pause(seconds: float) -> Step:
    """Nothing happens for a while."""
    return lambda stage: time.sleep(seconds)


# What becomes of the files


def rename(stage: Stage) -> None:
    """The live file gets a name with a date; the writer goes on in the old one until it opens the new one."""
    stage.live.rename(stage.dated())
    stage.writer.reopen()


def rename_late(seconds: float) -> Step:
    """The same, but the writer holds the old descriptor for so long, and the live name is missing meanwhile."""

    def step(stage: Stage) -> None:
        stage.live.rename(stage.dated())
        time.sleep(seconds)
        stage.writer.reopen()

    return step


def rename_unlinked(stage: Stage) -> None:
    """The renamed file is deleted as soon as the writer has left it; whoever has it open can read its end."""
    stage.seen()
    old = stage.dated()
    stage.live.rename(old)
    stage.writer.reopen()
    old.unlink()


def chain(stage: Stage) -> None:
    """Logrotate with `rotate 3`: .2 → .3, .1 → .2, live → .1; the oldest goes."""
    for number in (2, 1, 0):
        old = Path(f"{stage.live}.{number}") if number else stage.live
        if old.exists():
            old.rename(f"{stage.live}.{number + 1}")
    stage.writer.reopen()


def recreate(stage: Stage) -> None:
    """The live file is deleted and made anew; what was in it can be read by whoever has it open."""
    stage.seen()
    stage.live.unlink()
    stage.writer.reopen()


def compressed(stage: Stage) -> None:
    """The renamed file is compressed beside itself as soon as the writer has left it, and goes."""
    stage.seen()
    old = stage.dated()
    stage.live.rename(old)
    stage.writer.reopen()
    with old.open("rb") as source, gzip.open(f"{old}.gz", "wb", compresslevel=1) as target:
        shutil.copyfileobj(source, target)
    old.unlink()


def swapped(stage: Stage) -> None:
    """The live name is a link, which is moved in one step to a new file in another folder."""
    stage.turns += 1
    link(stage.live, stage.turns)
    stage.writer.reopen()


def behind_a_link(stage: Stage) -> None:
    """The live name is a link that stays; the file behind it is renamed in its own folder (Kubernetes)."""
    stage.turns += 1
    real = stage.live.resolve()
    real.rename(f"{real}.20260303-{stage.turns:06d}")
    stage.writer.reopen()


def link(live: Path, number: int) -> None:
    """Let the live name lead to file number so-and-so of the folder `data`."""
    data = live.parent / "data"
    data.mkdir(exist_ok=True)
    fresh = live.with_suffix(".link")
    fresh.symlink_to(data / f"{live.name}-{number:08d}")
    fresh.rename(live)


def copytruncate(stage: Stage) -> None:
    """The live file is copied under the glob in pieces, then cut; nothing is written in between."""
    with stage.writer.quiet():
        _copy(stage.live, stage.dated())
        os.truncate(stage.live, 0)


def copytruncate_gap(seconds: float, *, kept: bool = True) -> Step:
    """The same while the writer writes on, for at least so long between the end of the copy and the cut.

    Without ``kept`` the copy is made where nobody looks for it.
    """

    def step(stage: Stage) -> None:
        copy = stage.dated()
        _copy(stage.live, copy if kept else copy.with_name(f"away-{copy.name}"))
        time.sleep(seconds)
        os.truncate(stage.live, 0)

    return step


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("wb", buffering=0) as new:
        while piece := old.read(256 << 10):
            new.write(piece)


# What becomes of the reader


def kill(stage: Stage) -> None:
    """`kill -9`, and started again at once."""
    stage.tool.kill()
    stage.tool.start()


def terminate(stage: Stage) -> None:
    """SIGTERM, and started again when it has ended."""
    stage.tool.stop()
    stage.tool.start()


def down(*steps: Step, killed: bool = False) -> Step:
    """Steps that happen while nobody reads."""

    def step(stage: Stage) -> None:
        (stage.tool.kill if killed else stage.tool.stop)()
        for one in steps:
            one(stage)
            time.sleep(0.1)  # some lines a file
        stage.tool.start()

    return step


def killed_within_a_rename(stage: Stage) -> None:
    """Killed when the live name is gone and not yet back; started again before it is back, or afterwards."""
    stage.live.rename(stage.dated())
    stage.tool.kill()
    if stage.random.random() < 0.5:
        stage.tool.start()
        stage.writer.reopen()
    else:
        stage.writer.reopen()
        stage.tool.start()


def stopped_over(*steps: Step, seconds: float = 1.5) -> Step:
    """SIGSTOP for so long, with steps meanwhile."""

    def step(stage: Stage) -> None:
        stage.tool.pause()
        for one in steps:
            time.sleep(seconds / (len(steps) + 1))
            one(stage)
        time.sleep(seconds / (len(steps) + 1))
        stage.tool.resume()

    return step


def delete_unopened(stage: Stage) -> None:
    """The live file is renamed and deleted though a stopped reader never had it open: its lines are gone for all."""
    first = stage.writer.opened_at
    old = stage.dated()
    stage.live.rename(old)
    stage.writer.reopen()
    stage.gone |= set(range(first, stage.writer.opened_at))
    old.unlink()


def interleaved(steps: Sequence[Step], others: Sequence[Step]) -> tuple[Step, ...]:
    """Steps of two kinds in turn."""
    pairs = itertools.zip_longest(steps, others)
    return tuple(step for pair in pairs for step in pair if step is not None)
