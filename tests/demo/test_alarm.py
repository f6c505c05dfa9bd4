"""The scenarios raise the real alarm, from what the detector has learnt of the made-up past."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.daemon.start import begin
from capwatch.demo import history
from capwatch.demo.columns import columns
from capwatch.demo.scene import GATEWAY
from capwatch.demo.simulation import Simulation
from capwatch.dialect import Decoded
from capwatch.origin import Origin

from .test_history import NOW, configured

STEP_S = 10.0
MINUTES = 5


def events(scenario: str, folder: Path) -> list[dict[str, Any]]:
    """What the detector says of some live minutes, the change in their middle; times are s since the change."""
    live = Simulation(scenario, 3, NOW - history.WARM_S, history.WARM_S + 120.0)
    config = configured(folder)
    history.fill(config, live, lambda _: None)
    begun = begin(config, reset=False)
    begun.state.close()
    for at in np.arange(NOW, NOW + 60 * MINUTES, STEP_S) + STEP_S:
        batch = columns(live.until(float(at)))
        lines = np.arange(len(batch))
        begun.pipeline.take(Origin(GATEWAY), Decoded(batch, lines, [], 0, 0, 0, Counter()), float(at))
        begun.totals.apply(begun.pipeline.freeze())
    told = begun.pipeline.drifts.events
    return [one | {name: one[name] - live.change_at for name in ("at", "started_at")} for one in told]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [("new-tenant", ("tenant acme", "route /v1/summaries")), ("retrieval-depth", ("longer prompts",))],
)
def test_a_scenario_is_told_for_what_it_is(
    scenario: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within three minutes of the change, since when and through what. `tests.bench.demo` has more seeds, and quiet."""
    monkeypatch.setattr(history, "DAYS", 3)
    (event,) = events(scenario, tmp_path)
    assert 0 < event["at"] <= 180
    assert -60 <= event["started_at"] <= 60
    assert event["cost_change_ratio"] > 0.05
    assert "Utilisation 6" in event["sentence"]
    assert [word for word in words if word not in event["sentence"]] == []
