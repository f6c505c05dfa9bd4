"""Traffic is simulated and replayed once for all tests that run the rules on it."""

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
class Simulated:
    """Simulated requests and their log, which ends at `end` (s, epoch), as OpenMetrics."""

    end: float
    rows: Rows
    openmetrics: Path

    @property
    def last(self) -> float:
        """The last step that has a sample at its very time; the sample after it is at the newest event."""
        return self.end - STEP


def simulated(folder: Path, scenario: str) -> Simulated:
    """Forty minutes up to now, since a real server evaluates its rules now."""
    if not (shutil.which("promtool") and shutil.which("prometheus")):
        pytest.skip("prometheus is not installed")
    end = time.time() // STEP * STEP
    return Simulated(end, *replayed(folder, end, LENGTH_S, scenario))


@pytest.fixture(scope="session")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """Traffic in which nothing changes."""
    return simulated(tmp_path_factory.mktemp("quiet"), "quiet")


@pytest.fixture(scope="session")
def new_tenant(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """A new tenant comes after ten minutes, at the same request rate: a fifth and more of work for each request."""
    return simulated(tmp_path_factory.mktemp("new-tenant"), "new-tenant")
