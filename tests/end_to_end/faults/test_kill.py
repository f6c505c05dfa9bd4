"""`kill -9` at any point, again and again: nothing is lost, nothing counted twice, and nothing shown is taken back."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.end_to_end.prometheus import Prometheus

from . import LONG
from .daemon import Daemon, until
from .ledger import Accumulated, Ledger, Samples, accounted
from .scraping import needs_prometheus, scraping
from .writer import ROTATIONS, Writer, cri

RATE = 2000 if LONG else 1000
READY_S = 2.0 if LONG else 15.0
"""From start to ready. The bound of the long form is what is promised; two cores shared with others may not keep it."""
POINTS = tuple(f"{work} {moment}" for work in ("append", "checkpoint") for moment in ("before", "within", "after"))
TURNING = ("rename", "chain", "copytruncate")
"""Rotations that lose nothing while nobody reads."""
SMALL = ("ttft_seconds", "tpot_seconds", "duration_seconds", "prompt_tokens", "output_tokens")
DOCUMENT: dict[str, Any] = {
    "limits": {"tenants": 4000, "tenant_routes": 12_000},
    # Thousands of tenants are there for the truth alone; their quantiles would only cost the time of this test.
    "metrics": {"disable": [f"capwatch_{one}" for one in SMALL]},
    "pools": [{"name": "chat", "match": {"model": "chat"}}],
}


def source(name: str, path: Path, **more: str) -> dict[str, Any]:
    """A source that reads a writer's files from their beginning, rotated names included."""
    return {"name": name, "path": [str(path), f"{path}.*"], "format": "jsonl", "start": "beginning", **more}


@dataclass
class Run:
    """One daemon through many deaths."""

    daemon: Daemon
    writer: Writer
    ledger: Ledger
    starts: list[float] = field(default_factory=list)
    """Seconds from each start to ready."""
    rotations: int = 0

    def die_inside_a_commit(self, point: str) -> None:
        """Killed at a point of a commit."""
        self.daemon.kill_at(point)
        self.starts.append(self.daemon.start())

    def die_inside_a_rotation(self, name: str, dead_after: int, alive_after: int) -> None:
        """Killed after so many steps of a rotation, and started again after so many more."""
        self.rotations += 1
        steps = ROTATIONS[name](self.writer, self.rotations)
        for number, _ in enumerate(steps):
            if number == dead_after:
                self.daemon.kill()
            if number == dead_after + alive_after:
                self.starts.append(self.daemon.start())
        if self.daemon.process.poll() is None and len(self.starts) < self.deaths:
            self.daemon.kill()
        if self.daemon.process.poll() is not None:
            self.starts.append(self.daemon.start())

    deaths: int = 1

    def die(self) -> None:
        """Killed at no special moment."""
        self.daemon.kill()
        self.starts.append(self.daemon.start())


