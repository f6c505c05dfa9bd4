"""A history read piece by piece teaches what the whole of it teaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from capwatch.drift.history import coarse
from capwatch.drift.layout import lay_out
from capwatch.drift.model import fit, fit_span, long_enough, reach
from capwatch.drift.reference import learn
from capwatch.drift.ticks import HOUR, TICK_S, Ticks

from .sample import DAY, MONDAY, SETTINGS, history, model, rows, ticks


def clocked() -> Ticks:
    """Three days in which one tenant asks 60 times in the first and in the last minute of every hour."""
    usual = rows(MONDAY, 3 * DAY, 8, rate=1.0)
    rng = np.random.default_rng(9)
    hours = np.arange(72).repeat(120)
    at = MONDAY + 3600 * hours + rng.uniform(0, 60, len(hours)) + 3540 * rng.integers(0, 2, len(hours))
    jobs = usual.take(rng.integers(0, len(usual), len(at)))
    return Ticks.merge([ticks(usual), ticks(replace(jobs, at=at, tenant=np.full(len(at), 2)))])


@pytest.mark.parametrize("whole", [history, clocked])
def test_half_hours_teach_what_ticks_teach(whole: Callable[[], Ticks]) -> None:
    """The reference is the same from sums of half hours, slots that run by the clock among them."""
    told = whole()
    first, last = int(told.tick[0]), int(told.tick[-1]) + 1
    layout = lay_out([told])
    assert bool(layout.minutes) == (whole is clocked)
    few = coarse(told, first, last, layout)
    assert len(few) < len(told) / 20
    expected, found = learn(told, layout, last), learn(few, layout, last, first)
    for part in fields(expected):
        one, other = getattr(expected, part.name), getattr(found, part.name)
        if part.name == "layout":
            assert one == other
            continue
        pairs = [(one[name], other[name]) for name in one] if isinstance(one, dict) else [(one, other)]
        for before, after in pairs:
            np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12, err_msg=part.name)


@pytest.mark.parametrize("days", [3, 14])
def test_a_part_of_an_hour_is_no_hour(days: int) -> None:
    """A flat rate is flat in every hour, also in the one in which the history begins and ends."""
    requests = rows(MONDAY, DAY, 1)
    at = MONDAY + 16 * 60 + np.arange(0.0, days * DAY, 5.0)
    told = ticks(replace(requests.take(np.zeros(len(at), np.int64)), at=at))
    first, last = int(told.tick[0]), int(told.tick[-1]) + 1
    layout = lay_out([told])
    now = np.arange(last, last + 6)
    present = np.ones(len(layout.owners), np.bool_)
    for one in (learn(told, layout, last), learn(coarse(told, first, last, layout), layout, last, first)):
        assert one.rates(now, present).sum(axis=1) == pytest.approx(2.0, rel=0.02)


def test_places_are_given_by_pieces() -> None:
    """Who is dear and what runs by the clock does not depend on how the history is cut."""
    told = clocked()
    cuts = [told.between(begin * HOUR, (begin + 7) * HOUR) for begin in range(0, 600_000, 7)]
    assert lay_out([part for part in cuts if len(part)]) == lay_out([told])


class Torn:
    """A history that may be read in pieces of a few hours only."""

    def __init__(self, whole: Ticks) -> None:
        self.whole = whole
        self.most = 0

    def between(self, first: int, last: int) -> Ticks:
        """See `Ticks.between`."""
        self.most = max(self.most, last - first)
        return self.whole.between(first, last)


def test_the_whole_is_never_in_memory() -> None:
    """A fit asks for some hours at a time, and tells the same as the one in memory."""
    torn = Torn(history())
    span = int(history().tick[0]), int(history().tick[-1]) + 1
    assert reach(torn, *span) == span
    found = fit_span(torn, *span, SETTINGS)
    assert torn.most * TICK_S <= DAY
    for way, expected in model().watched.items():
        assert found.watched[way].scale.level == expected.scale.level
        assert np.array_equal(found.watched[way].scale.start, expected.scale.start)


def test_three_days_with_traffic_are_enough() -> None:
    """Two and a half days are too short, and so is a day on either side of a silence."""
    whole = history()
    first = int(whole.tick[0])
    assert long_enough(whole.between(first, first + 72 * HOUR))
    assert not long_enough(whole.between(first, first + 60 * HOUR))
    ends = [whole.between(first, first + 20 * HOUR), whole.between(first + 76 * HOUR, first + 90 * HOUR)]
    assert not long_enough(Ticks.join(ends))
    assert fit(whole.between(first, first + 72 * HOUR), SETTINGS).reference.layout.tenants == (0, 1, 2, 3)
