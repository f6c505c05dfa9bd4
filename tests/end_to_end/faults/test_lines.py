"""What stands on the lines: other line ends, garbage, very long lines, lines in pieces. One bad line costs one line."""

from __future__ import annotations

from pathlib import Path

from .cases import cases
from .scenario import Scenario, check
from .scenarios import LINES


@cases(LINES)
def test_one_bad_line_costs_one_line(tmp_path: Path, scenario: Scenario, seed: int) -> None:
    """Good lines are exact, and bad ones are dropped for the reasons that are known."""
    check(scenario, tmp_path, seed)
