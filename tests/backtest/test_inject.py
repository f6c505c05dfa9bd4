"""Drifts put in by hand are what they say, and are found."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.backtest.inject import KINDS, NEWCOMER, delays, lengths, on_top, quantile
from capwatch.drift.ticks import HOUR, TICK_S, Ticks
from tests.drift import sample
from tests.drift.sample import LATER, SETTINGS, model, name, rows, ticks


def test_lengths_are_those_of_longer_requests() -> None:
    """Sums of cells with longer prompts and answers are the sums of single requests that are longer."""
    some = rows(LATER, 600, 3)
    longer = some.take(np.arange(len(some)))
    longer.prompt[:] *= 1.5
    longer.output[:] *= 1.2
    before, expected = ticks(some), ticks(longer)
    found = lengths(before, before.tick >= 0, SETTINGS, prompt=0.5, output=0.2)
    for column in ("prompt", "computed", "output", "cost", "log_computed", "log_output"):
        assert found[column] == pytest.approx(expected[column]), column
    assert found["log_cost"] == pytest.approx(expected["log_cost"], abs=0.3)


def test_lost_hits_are_computed() -> None:
    """Half of the cached tokens lost are computed instead; prompts stay as they are."""
    before = ticks(rows(LATER, 600, 3, cached=800.0))
    found = lengths(before, before.tick >= 0, SETTINGS, lost=0.5)
    assert found["computed"] == pytest.approx(before["computed"] + 400 * before["n"])
    assert found["prompt"] == pytest.approx(before["prompt"])


def test_a_newcomer_has_its_share() -> None:
    """A tenant put in asks for that part of all requests, from the onset on, and dear ones."""
    before = ticks(rows(LATER, 3 * 3600, 3))
    onset = LATER // TICK_S + HOUR
    found = on_top(before, before.tick >= onset, 0.1, NEWCOMER, np.random.default_rng(1))
    new, after = found.take(found.tenant == NEWCOMER), found.take(found.tick >= onset)
    assert new.tick.min() >= onset
    assert new["n"].sum() / after["n"].sum() == pytest.approx(0.1, abs=0.01)
    assert new["cost"].sum() / new["n"].sum() > 2 * before["cost"].sum() / before["n"].sum()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_is_found(kind: str) -> None:
    """A large drift of every kind is found at all onsets within minutes."""
    past = Ticks.merge([ticks(rows(LATER - 4 * sample.HOUR, 6 * sample.HOUR, 3, cached=800.0))])
    size = {"prompt": 0.8, "output": 0.8, "cache": 1.0, "mix": 0.2, "tenant": 0.2}[kind]
    found = delays((kind, size), past, model(), SETTINGS, name, trials=3)
    assert (found.onsets, len(found.seconds)) == (3, 3)
    median = quantile(found, 0.5)
    assert median is not None
    assert median <= 180
