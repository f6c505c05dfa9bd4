"""Quiet traffic is simulated and replayed once for all tests that run the rules on it."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from capwatch.demo.draw import Rows

from .traffic import STEP, replayed

LENGTH_S = 2400.0


@dataclass(frozen=True)
class Quiet:
    """A log of quiet traffic that ends at `end` (s, epoch), as OpenMetrics."""

    end: float
    rows: Rows
    openmetrics: Path

    @property
    def last(self) -> float:
        """The last step that has a sample at its very time; the sample after it is at the newest event."""
        return self.end - STEP


@pytest.fixture(scope="session")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    """Forty minutes up to now, since rules are evaluated now."""
    if not (shutil.which("promtool") and shutil.which("prometheus")):
        pytest.skip("prometheus is not installed")
    end = time.time() // STEP * STEP
    return Quiet(end, *replayed(tmp_path_factory.mktemp("quiet"), end, LENGTH_S))
