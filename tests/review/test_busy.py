"""The busy hour: found where a day swings, and not made of noise."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.config.schema import Pool
from capwatch.keep.past import HOUR
from capwatch.keep.slot import Slot
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES
from capwatch.record import Floats
from capwatch.review.calendar import DAY
from capwatch.review.facts import busy
from capwatch.review.hours import Hours
from capwatch.review.stretch import Stretch
from capwatch.sketch import Cells, index, pack
from tests.review.made import WEEK

NAME = ("acme", "/v1", "m", "pool", "all")


def stretch(requests: Floats) -> Stretch:
    """Hours from Monday on with so many requests each, of 160 output tokens: one replica-second."""
    slots = []
    for hour, count in enumerate(requests.tolist()):
        values = np.zeros((1, len(COLUMNS)))
        for column, value in (("outcome_ok", count), ("output", 160 * count), ("cost_decode", count)):
            values[0, COLUMNS.index(column)] = value
        key = pack(np.array([MEASURES.index("output_tokens")]), index(np.array([160.0])))
        assert MEASURE.bits
        slots.append(Slot(WEEK.since + hour * HOUR, HOUR, [NAME], values, Cells(key, np.array([int(count)]))))
    return Stretch(Hours.of(slots), Pool("pool"), WEEK.since, WEEK.since + len(requests) * HOUR)


@pytest.mark.parametrize("hours", [20, 38, 110, 168])
@pytest.mark.parametrize("rate", [40, 1000, 30_000])
def test_an_even_load_has_no_busy_hour(hours: int, rate: int) -> None:
    """Poisson arrivals of any rate: within three standard deviations of an hour divided by its days, on average."""
    draw = np.random.default_rng(hours)
    found = [busy(stretch(draw.poisson(rate, hours).astype(float))) for _ in range(20)]
    assert np.mean(found) - 1 < 0.7 / np.sqrt(rate)


def test_a_day_that_swings_has_one() -> None:
    """Twice the mean at its height, but for what the noise leaves in doubt."""
    draw = np.random.default_rng(1)
    level = 1000 * (1 + np.sin(2 * np.pi * np.arange(168) / (DAY / HOUR)))
    assert busy(stretch(draw.poisson(level) + 1.0)) == pytest.approx(2.0, rel=0.05)


def test_free_days_do_not_hide_it() -> None:
    """A quiet Saturday and Sunday are days of another kind."""
    level = np.tile(np.repeat([100.0, 900.0], 12), 7)
    level[5 * 24 :] = 50
    assert busy(stretch(level)) == pytest.approx(900 / level.mean(), rel=0.02)
