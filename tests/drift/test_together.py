"""What most tenants do at once is seen against their own last hours, whatever the weeks have been."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capwatch.drift import together
from capwatch.drift.layout import lay_out
from capwatch.drift.reference import Reference, learn
from capwatch.drift.ticks import HOUR, Ticks
from capwatch.record import Floats
from tests.drift.sample import MONDAY, SETTINGS, rows

START = MONDAY // 10
TENANTS = 6
PRICE = together.Price(SETTINGS.prefill_rate, SETTINGS.decode_rate, SETTINGS.minimum_effect)


def wandering(hours: float, seed: int, *, longer: Floats | float = 1.0, last: float = 0.0) -> Ticks:
    """Six tenants whose prompts change by half every six hours, each at its own hour; ``longer`` in the last hours."""
    begun = rows(MONDAY, hours * 3600, seed, rate=3.0)
    rng = np.random.default_rng(seed)
    tenant = rng.integers(0, TENANTS, len(begun))
    quarter = ((begun.at - MONDAY + 3600 * tenant) // (6 * 3600)).astype(np.int64)
    own = np.exp(rng.normal(0.0, 0.5, (quarter.max() + 1, TENANTS)))
    factor = np.where(begun.at >= MONDAY + (hours - last) * 3600, np.broadcast_to(longer, TENANTS)[tenant], 1.0)
    prompt = np.round(begun.prompt * own[quarter, tenant] * factor)
    return Ticks.of(replace(begun, tenant=tenant, prompt=prompt), SETTINGS.prefill_rate, SETTINGS.decode_rate)


def known(ticks: Ticks) -> tuple[Reference, together.Calm]:
    """A reference of the ticks, and how calm their tenants are."""
    last = int(ticks.tick[-1]) + 1
    reference = learn(ticks, lay_out([ticks]), last)
    return reference, together.fit(ticks, START, last, reference, 7.5)


def hits(longer: Floats | float) -> tuple[list[int], int, Ticks, Reference, together.Calm]:
    """Ticks at which it rises, the onset, and what it was found with: two days are learnt, a third is watched."""
    reference, calm = known(wandering(48, 1))
    ticks = wandering(5.5, 2, longer=longer, last=0.5)
    last = START + 33 * HOUR // 6
    return (
        together.risen(ticks, reference, calm, PRICE, span=(START + 2 * HOUR, last), anew=0),
        last - HOUR // 2,
        ticks,
        reference,
        calm,
    )


def test_what_all_do_is_seen_within_ten_minutes() -> None:
    """Prompts of all tenants half longer, where each tenant's have wandered by half for days: the onset is told too."""
    found, onset, ticks, reference, calm = hits(1.5)
    assert onset < found[0] <= onset + HOUR // 6
    assert together.began(ticks, reference, calm, found[1]) == pytest.approx(onset, abs=3)


def test_what_two_tenants_do_is_not_what_all_do() -> None:
    """Two of six with prompts of three times the length, and four as ever, are no common change."""
    assert hits(np.array([3.0, 3.0, 1.0, 1.0, 1.0, 1.0]))[0] == []


def test_three_tenants_are_too_few_to_be_most() -> None:
    """Nothing is told by less than four tenants."""
    ticks = wandering(48, 1)
    few = ticks.take(ticks.tenant < 3)
    reference, calm = known(few)
    drifted = wandering(5.5, 2, longer=3.0, last=0.5)
    drifted = drifted.take(drifted.tenant < 3)
    span = (START + 2 * HOUR, START + 33 * HOUR // 6)
    assert together.risen(drifted, reference, calm, PRICE, span=span, anew=0) == []


def test_ticks_one_by_one_rise_as_all_at_once() -> None:
    """What is told at the end of a block does not depend on the span that it is asked in."""
    found, _, ticks, reference, calm = hits(1.5)
    single = [
        tick
        for first in range(START + 2 * HOUR, START + 33 * HOUR // 6)
        for tick in together.risen(
            ticks.between(first + 1 - 2 * HOUR, first + 1), reference, calm, PRICE, span=(first, first + 1), anew=0
        )
    ]
    assert single == found
