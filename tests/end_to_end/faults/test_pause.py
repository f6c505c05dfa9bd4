"""A daemon that stands still while its files go on."""

from __future__ import annotations

from pathlib import Path

from .cases import cases
from .scenario import Scenario, check
from .scenarios import PAUSE


@cases(PAUSE)
def test_what_lies_on_disk_is_read_afterwards(tmp_path: Path, scenario: Scenario, seed: int) -> None:
    """Exact, but for files that came and went while nobody could open them."""
    played, _ = check(scenario, tmp_path, seed)
    assert bool(played.stage.gone) == ("deleted" in scenario.name)
