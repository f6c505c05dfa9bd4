"""Files that are copied and cut: nothing is counted twice, and what nobody could read is bounded and told."""

from __future__ import annotations

from pathlib import Path

from .cases import cases
from .ledger import LINE_BYTES
from .scenario import Scenario, check
from .scenarios import TRUNCATION


@cases(TRUNCATION)
def test_a_cut_loses_no_more_than_it_must(tmp_path: Path, scenario: Scenario, seed: int) -> None:
    """Exact where the copy holds everything, else within the bar; cuts are counted, and so are known losses."""
    played, last = check(scenario, tmp_path, seed)
    assert 0 < last.total("source_truncations_total") <= played.stage.turns
    assert last.total("source_bytes_lost_total") <= played.lost * LINE_BYTES
