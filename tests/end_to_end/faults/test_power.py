"""Power cuts: what was written and not synced may be there, in part, in any order, or not; what was shown stays true.

A journal notes every change that the daemon makes to its state. From it the test builds what a disk may hold after a
cut at any moment: all that was synced by then, and of each later write of 512 bytes, by chance, or nothing of it. The
limits of this: files are made, renamed and removed at once and in order, as journaling file systems do, sectors are
whole, and fsync does not lie.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from . import LONG
from .cases import SEEDS
from .daemon import Daemon, until
from .ledger import accounted, parsed
from .scenario import DOCUMENT, source
from .shim import Change, Shim, changes, needs_shim
from .writer import Writer

CUTS = 12 if LONG else 3
SECTOR = 512
RATE = 1000.0
SECONDS = 8.0 if LONG else 4.0


@dataclass
class Disk:
    """The files of a folder: what is durable of each, and what was changed since."""

    durable: dict[str, bytearray] = field(default_factory=dict)
    since: dict[str, list[Change]] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        """One more change."""
        name = change.name
        if name.endswith("-shm"):  # an index in shared memory, made anew by whoever opens the file first
            return
        if change.what in "wt":
            self.durable.setdefault(name, bytearray())
            self.since.setdefault(name, []).append(change)
        elif change.what == "s":
            for one in self.since.pop(name, []):
                _apply(self.durable[name], one)
        elif change.what == "r":
            for files in (self.durable, self.since):
                if name in files:
                    files[change.other] = files.pop(name)  # type: ignore[assignment]
        else:
            self.durable.pop(name, None)
            self.since.pop(name, None)

    def after_a_cut(self, random: Random) -> dict[str, bytes]:
        """What may be found when the power is back."""
        share = random.choice([0.0, 0.5, 1.0])  # of what was on its way
        found = {}
        for name, durable in self.durable.items():
            content = bytearray(durable)
            for change in self.since.get(name, []):
                for sector in _sectors(change):
                    if random.random() < share:
                        _apply(content, sector)
            found[name] = bytes(content)
        return found


def _apply(content: bytearray, change: Change) -> None:
    if change.what == "t":
        content[change.place :] = bytes(max(0, change.place - len(content)))
        return
    end = change.place + len(change.data)
    content.extend(bytes(max(0, end - len(content))))
    content[change.place : end] = change.data


def _sectors(change: Change) -> Sequence[Change]:
    """The parts of a write that reach the disk for themselves."""
    if change.what == "t":
        return [change]
    starts = [0, *range(SECTOR - change.place % SECTOR, len(change.data), SECTOR), len(change.data)]
    return [
        Change(change.at, "w", change.name, "", change.place + begin, change.data[begin:end])
        for begin, end in pairwise(starts)
    ]


@needs_shim
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_shown_outlives_a_power_cut(tmp_path: Path, seed: int) -> None:
    """After a cut at any moment the state is whole, nothing is below what a page had shown, and the end is exact."""
    random = Random(seed)
    path, state = tmp_path / "log", tmp_path / "state"
    shim = Shim(tmp_path, state, journal=True)
    daemon = Daemon(tmp_path, DOCUMENT | {"sources": [source("gateway", path)]}, breakable=True)
    daemon.env |= shim.env
    writer = Writer(path, RATE, seed=seed)
    shown: list[tuple[float, float]] = []  # when (s, monotonic) a page had been fetched, and the lines on it
    try:
        daemon.start()
        writer.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            page = daemon.page()
            shown.append((time.monotonic(), parsed(page or "").total("lines_read_total")))
            time.sleep(0.02)
        daemon.kill()
        writer.stop()
        daemon.env.clear()
        journal = [*changes(shim.journal)]
        begun = next(number for number, one in enumerate(journal) if one.at > shown[0][0])
        for number in sorted(random.sample(range(begun, len(journal)), CUTS)):
            _cut(state, journal[: number + 1], random)
            known = max((lines for at, lines in shown if at <= journal[number].at), default=0.0)
            daemon.launch()
            until(lambda: daemon.page() is not None, "it answers")
            first = daemon.samples()
            assert first.total("lines_read_total") >= known
            daemon.wait_for_lines({"gateway": writer.lines})
            last = daemon.samples()
            daemon.kill()
            assert last.total("state_resets_total") == 0
            assert last.tenants() == writer.truth()
            assert accounted(last) == writer.bytes
    finally:
        daemon.close()
    assert max(lines for _, lines in shown) > RATE
    assert "level=error" not in daemon.log.read_text()
    assert "made anew" not in daemon.log.read_text()  # the key of hashed names


def _cut(state: Path, journal: Sequence[Change], random: Random) -> None:
    """Let the folder hold what may be left after this much of the journal."""
    disk = Disk()
    for change in journal:
        disk.take(change)
    shutil.rmtree(state)
    state.mkdir(mode=0o700)
    for name, content in disk.after_a_cut(random).items():
        (state / name).write_bytes(content)
