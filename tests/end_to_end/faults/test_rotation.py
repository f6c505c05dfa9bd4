"""Rotation of every kind, with the daemon running, stopped and killed: nothing is lost, nothing counted twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import LONG
from .daemon import Daemon
from .ledger import Ledger, Samples, accounted
from .test_kill import DOCUMENT, source
from .writer import ROTATIONS, Writer, line

RATE = 1000 if LONG else 400
"""Lines/s of each writer."""
TURNS = 8 if LONG else 3
"""Rotations of each kind while the daemon runs."""
TURN_S = 0.5
"""Between two rotations."""
DOWN = 2
"""Rotations while it does not; a chain of three keeps what they leave behind."""
KINDS = {
    **ROTATIONS,
    "burst": ROTATIONS["rename"],  # several rotations between two looks
}
PREFIX = {kind: f"{number}-" for number, kind in enumerate(KINDS)}
"""Of tenants, so that one page tells the sources apart; of one length, as all lines are."""
AWAY = ("recreate",)
"""What is deleted while nobody reads is gone: this kind waits for the daemon, and the daemon's end waits for it."""


@dataclass(frozen=True)
class Rotated:
    """What is known when all writers have ended and everything has been read."""

    writers: dict[str, Writer]
    last: Samples
    breaches: list[str]
    rotations: dict[str, int]
    """Made, by source."""


class Turning:
    """One writer a source, and the rotations of their files."""

    def __init__(self, folder: Path) -> None:
        self.writers = {}
        for number, name in enumerate(KINDS):
            (folder / name).mkdir()
            self.writers[name] = Writer(folder / name / "log", RATE, prefix=PREFIX[name], seed=number)
        self.made = dict.fromkeys(KINDS, 0)
        self.opened: dict[str, int] = {}
        """Lines of which the last is in a file that came by the last turn: who has read them has that file open.

        Deleted files can be read by nobody else, and on a machine with much to do a turn may come too early.
        """

    def turn(self, *, without: tuple[str, ...] = ()) -> None:
        """Every file is rotated once, those of `burst` three times."""
        for name, writer in self.writers.items():
            for _ in range(3 if name == "burst" else 1):
                if name not in without:
                    self.made[name] += 1
                    for _ in KINDS[name](writer, self.made[name]):
                        pass
        self.opened = {name: lines + 1 for name, lines in self.lines.items()}

    @property
    def lines(self) -> dict[str, int]:
        """Lines written so far, by source."""
        return {name: writer.lines for name, writer in self.writers.items()}

    @property
    def bytes(self) -> int:
        """Bytes written in all."""
        return sum(writer.bytes for writer in self.writers.values())


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rotated]:
    """One daemon and a writer for each kind of rotation: running, stopped, running, killed, running."""
    folder = tmp_path_factory.mktemp("rotation")
    turning = Turning(folder)
    sources = [source(name, writer.path) for name, writer in turning.writers.items()]
    daemon = Daemon(folder, DOCUMENT | {"sources": sources})
    ledger = Ledger(daemon.page, lambda: turning.bytes, line_bytes=len(line(0, 1e9, PREFIX["rename"])))
    try:
        daemon.start()
        ledger.start()
        for writer in turning.writers.values():
            writer.start()
        for end in (daemon.stop, daemon.kill, None):
            for _ in range(TURNS):
                time.sleep(TURN_S)
                turning.turn()
                daemon.wait_for_lines(turning.opened)
            if end is not None:
                end()
                for _ in range(DOWN):
                    time.sleep(TURN_S / 2)
                    turning.turn(without=AWAY)
                daemon.start()
        for writer in turning.writers.values():
            writer.stop()
        daemon.wait_for_lines(turning.lines)
        ledger.stop()
        yield Rotated(turning.writers, daemon.samples(), ledger.breaches, turning.made)
    finally:
        daemon.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_line_counts_once(rotated: Rotated, kind: str) -> None:
    """Requests and tokens of every hundred lines are what was written, whatever became of the files."""
    writer = rotated.writers[kind]
    assert rotated.last.tenants(PREFIX[kind]) == writer.truth()


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_is_accounted_for(rotated: Rotated, kind: str) -> None:
    """Law 2 at the end: bytes written are bytes read, and a copy made by a rotation is not counted again."""
    assert accounted(rotated.last, source=kind) == rotated.writers[kind].bytes
    assert rotated.last.total("source_bytes_read_total", source=kind) == rotated.writers[kind].bytes


def test_the_laws_hold_at_every_scrape(rotated: Rotated) -> None:
    """Laws 1, 2, 3 and 7 on every page, over a stop and a kill."""
    assert rotated.breaches == []


def test_rotations_are_told(rotated: Rotated) -> None:
    """What happened to the files is counted: new files for old names, or files that were cut."""
    seen = {kind: rotated.last.total("source_rotations_total", source=kind) for kind in KINDS}
    cut = {kind: rotated.last.total("source_truncations_total", source=kind) for kind in KINDS}
    assert (seen["rename"], cut["rename"]) == (rotated.rotations["rename"], 0)
    assert cut["copytruncate"] > 0
    assert all(seen[kind] > 0 for kind in ("chain", "recreate", "burst"))
