"""A model survives the state's bytes: what is read judges like what was written."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.drift.detector import Detector
from capwatch.drift.saved import load, save
from capwatch.drift.ticks import TICK_S
from capwatch.keep.codec import pack, unpack

from .sample import HOUR, LATER, SETTINGS, model, name, rows, ticks


def test_a_model_and_a_detector_survive_a_restart() -> None:
    """Packed, unpacked and loaded, both go on to the very same event."""
    quiet, drifted = ticks(rows(LATER, HOUR, 5)), ticks(rows(LATER + HOUR, HOUR // 4, 6, prompt=1.8))
    border, end = (LATER + HOUR) // TICK_S, (LATER + HOUR + HOUR // 4) // TICK_S
    one = Detector(SETTINGS, name, model(), begin=LATER // TICK_S)
    one.feed(quiet, border)
    again = load(unpack(pack(save(model()))))
    other = Detector.from_state(unpack(pack(one.state())), SETTINGS, name, again)
    expected, found = one.feed(drifted, end), other.feed(drifted, end)
    assert len(expected) == 1
    assert found == expected


def test_what_is_saved_is_the_model() -> None:
    """Every array comes back to the last bit."""
    before, after = model().reference, load(unpack(pack(save(model())))).reference
    assert after.layout == before.layout
    for part in ("rate", "clock", "share", "klass", "route", "factor"):
        assert np.array_equal(getattr(before, part), getattr(after, part)), part


def test_another_version_is_refused() -> None:
    """A model of another version is not taken for this one."""
    with pytest.raises(ValueError, match="version 7"):
        load({**save(model()), "version": 7})
