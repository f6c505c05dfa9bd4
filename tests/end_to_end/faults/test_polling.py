"""No inotify, as where its instances have run out or on network file systems: looks at fixed times do without."""

from __future__ import annotations

from pathlib import Path

from .cases import cases
from .scenario import Scenario, check
from .scenarios import POLLING
from .shim import needs_shim


@needs_shim
@cases(POLLING)
def test_polling_alone_loses_no_more(tmp_path: Path, scenario: Scenario, seed: int) -> None:
    """Exact but for lines that a cut takes before anybody looked, which stay within the wider bar of polling."""
    check(scenario, tmp_path, seed)
