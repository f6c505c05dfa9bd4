"""Files that are renamed, deleted, compressed or swapped: nothing is lost, nothing counted twice."""

from __future__ import annotations

from pathlib import Path

from .cases import cases
from .scenario import Scenario, check
from .scenarios import ROTATION, SYMLINK


@cases((*ROTATION, *SYMLINK))
def test_every_line_counts_once(tmp_path: Path, scenario: Scenario, seed: int) -> None:
    """Exact to the last token on the page and in a Prometheus, and a rotation is no truncation."""
    _, last = check(scenario, tmp_path, seed)
    assert last.total("source_truncations_total") == 0
    assert last.total("source_bytes_lost_total") == 0
    assert (last.total("source_rotations_total") > 0) == (len(scenario.steps) > 0)
