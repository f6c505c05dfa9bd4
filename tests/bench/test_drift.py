"""The parts of the drift bench are what they say: traffic, bound, rivals."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.drift.ticks import Ticks

from .drifts.bound import delay
from .drifts.rivals import RIVALS, Series, Tuned
from .drifts.traffic import (
    DAY,
    DECODE,
    DRIFTS,
    EPOCH,
    HOUR,
    NEWCOMER,
    PREFILL,
    SHARES,
    TRACES,
    Drift,
    Site,
    background,
    rake,
)


def site(name: str) -> Site:
    """A site with a seed of its own."""
    return Site(background(name), np.random.default_rng(4))


def test_the_mix_is_exact() -> None:
    """Over all tenants the classes have their shares, before and after the drift."""
    place = site("mix")
    assert SHARES @ place.mixes == pytest.approx([0.85, 0.14, 0.01])
    changed = rake(place.mixes * DRIFTS["mix"]["mix +26 %"].mix, np.array([0.80, 0.12, 0.08]))
    assert SHARES @ changed == pytest.approx([0.80, 0.12, 0.08])


def test_traffic_has_the_cost_that_it_should() -> None:
    """A day of `mix` costs 0.992 replica-seconds a request, and 26 % more with the drift."""
    place = site("mix")
    changes = Drift(), DRIFTS["mix"]["mix +26 %"]
    usual, drifted = (place.rows(EPOCH, EPOCH + DAY, one, EPOCH, np.random.default_rng(5)) for one in changes)
    before, after = (float((one.computed / PREFILL + one.output / DECODE).mean()) for one in (usual, drifted))
    assert before == pytest.approx(0.992, rel=0.03)
    assert after / before == pytest.approx(1.26, abs=0.03)
    assert np.isin(usual.at // DAY, [EPOCH // DAY]).all()
    assert (np.diff(usual.at) >= 0).all()


def test_a_newcomer_comes_at_the_onset() -> None:
    """Its share is 6 %, and nobody has seen it before."""
    rows = site("mix").rows(EPOCH, EPOCH + 4 * HOUR, DRIFTS["mix"]["new tenant +22 %"], EPOCH + 2 * HOUR)
    new = rows.tenant == NEWCOMER
    assert rows.at[new].min() >= EPOCH + 2 * HOUR
    assert new[rows.at >= EPOCH + 2 * HOUR].mean() == pytest.approx(0.06, abs=0.01)


def test_real_pairs_are_taken_in_order() -> None:
    """Neighbours of a class in a minute are neighbours in the real hour."""
    if not TRACES.exists():
        pytest.skip("the public traces are not here")
    rows = site("azure").rows(EPOCH, EPOCH + 60)
    from .drifts.traffic import azure

    pairs = {tuple(pair) for pair in azure()[0].tolist()}
    mine = rows.klass == 0
    assert {*zip(rows.prompt[mine].tolist(), rows.output[mine].tolist(), strict=True)} <= pairs


def test_the_bound_is_the_published_one() -> None:
    """0.0616 nats a request at a run length of 17.4 million: 209 requests."""
    assert delay(0.0616, 17.4e6) == pytest.approx(209, abs=0.5)


@pytest.mark.parametrize("name", sorted(RIVALS))
def test_a_rival_is_silent_on_its_history_and_sees_what_is_huge(name: str) -> None:
    """Its threshold is above all of its history; answers of four times the length cross it."""
    place = site("mix")
    ticks = Ticks.of(place.rows(EPOCH, EPOCH + DAY), PREFILL, DECODE)
    tuned = Tuned(RIVALS[name], Series.of(ticks))
    assert len(tuned.alarms(Series.of(ticks))) == 0
    huge = place.rows(EPOCH + DAY, EPOCH + DAY + 4 * HOUR, Drift(output=4.0), EPOCH + DAY + 2 * HOUR)
    alarms = tuned.alarms(Series.of(Ticks.of(huge, PREFILL, DECODE))) * 10
    assert (alarms > EPOCH + DAY + 2 * HOUR).any()
