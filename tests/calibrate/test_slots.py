"""Slots: the most sequences at once that keep the time per output token, never beyond what was seen."""

from __future__ import annotations

import pytest

from capwatch.calibrate.fit import fit
from capwatch.calibrate.slots import Slots, slots

from .engine import Engine, Served, observed, poisson, serve


def short_prompts(requests: list[Served]) -> list[Served]:
    """Prompts of one token, so that nothing stops a decode step."""
    for one in requests:
        one.prompt, one.output = 1.0, max(one.output, 50)
    return requests


def test_the_slots_of_a_known_engine() -> None:
    """A step of 20 + 0.6n ms keeps 30 ms up to n = 16.7, where nothing stops it."""
    found = fit(observed(serve(Engine(), short_prompts(poisson(4, 2000, 1)))))
    told = slots(found.rows, 0.030, 0.5)
    assert told.value == pytest.approx(16, abs=1)
    assert (told.at_least, told.why) == (False, "")


def test_more_than_was_seen_is_not_told() -> None:
    """A target that was never missed gives the most that was seen, as at least so many."""
    found = fit(observed(serve(Engine(), poisson(0.5, 500, 2))))
    told = slots(found.rows, 5.0, 0.95)
    assert told.at_least
    assert told.value is not None
    assert told.value <= 32
    assert told.why == "the target still held at the most that ran at once"


def test_a_target_below_one_step() -> None:
    """No number of sequences keeps it."""
    found = fit(observed(serve(Engine(), poisson(1, 500, 3))))
    assert slots(found.rows, 0.010, 0.95).value is None


def test_an_occupancy_that_does_not_vary() -> None:
    """Eight workers: either eight keep it, or nothing is known of fewer."""
    found = fit(observed(serve(Engine(), short_prompts(poisson(1, 500, 4)), 8)))
    kept = slots(found.rows, 0.030, 0.95)
    assert (kept.value, kept.at_least) == (8, True)
    assert slots(found.rows, 0.020, 0.95) == Slots(None, False, kept.why)
