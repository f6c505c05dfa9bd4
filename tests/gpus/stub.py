"""The stub library: compiled once a run, and the file that says what its cards tell and how they fail."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("stub.c")
NAME = "libnvidia-ml.so.1"
USUAL = {
    "busy": 75,
    "memory_busy": 40,
    "total": 80 * 2**30,
    "used": 60 * 2**30,
    "milliwatts": 412_500,
    "millijoules": 5_000_250,
    "celsius": 61,
    "megahertz": 1755,
    "reasons": 0x04 | 0x40 | 0x01,
    "corrected": 3,
    "uncorrected": 1,
}
"""What a card tells where the test says nothing else, in NVML's units."""


def compiled(folder: Path) -> Path:
    """The library, in a folder; skips where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: apt-get install gcc libc6-dev")
    library = folder / NAME
    flags = ["-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{NAME}"]
    subprocess.run([compiler, *flags, "-o", str(library), str(SOURCE)], check=True)
    return library


class Stub:
    """What the library's cards tell; every change holds from the next call on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cards: dict[int, dict[str, float]] = {}
        self.uuids: dict[int, str] = {}
        self.faults: list[str] = []
        self.xids: list[tuple[int, int]] = []

    def card(self, index: int, **values: float | None) -> None:
        """Let there be a card that tells the usual, or this; None for what it does not tell."""
        told = {**USUAL, **self.cards.get(index, {}), **values}
        self.cards[index] = {name: value for name, value in told.items() if value is not None}
        self.write()

    def fail(self, function: str, code: int, card: int = -1) -> None:
        """From now on a function fails, for one card or all."""
        self.faults.append(f"fail {function} {card} {code}")
        self.write()

    def xid(self, card: int, code: int) -> None:
        """An event comes."""
        self.xids.append((card, code))
        self.write()

    def mend(self) -> None:
        """Nothing fails any more."""
        self.faults = []
        self.write()

    @contextmanager
    def hanging(self, function: str) -> Iterator[None]:
        """A function does not come back."""
        self.faults.append(f"hang {function}")
        self.write()
        try:
            yield
        finally:
            self.mend()

    def write(self) -> None:
        """Put it all into the file, at once."""
        lines = [f"cards {len(self.cards)}", *self.faults]
        lines += [
            f"value {card} {name} {value:.0f}" for card, told in self.cards.items() for name, value in told.items()
        ]
        lines += [f"uuid {card} {uuid}" for card, uuid in self.uuids.items()]
        lines += [f"xid {number} {card} {code}" for number, (card, code) in enumerate(self.xids, 1)]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        os.replace(fresh, self.path)
