"""A new mix that was accepted: history told as if it had always held is what it would have been."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from capwatch.drift.detector import Detector
from capwatch.drift.event import Event
from capwatch.drift.model import Model, fit_span
from capwatch.drift.rebase import Rebased, shift
from capwatch.drift.ticks import TICK_S, Ticks

from .sample import DAY, HOUR, MONDAY, SETTINGS, name, rows, ticks

DAYS = 4
LATER = MONDAY + DAYS * DAY
FIRST, CHANGE = MONDAY // TICK_S, LATER // TICK_S
SEEN = HOUR // 2
END = (LATER + SEEN) // TICK_S
MIXES: dict[str, dict[str, float]] = {
    "prompts": {"prompt": 1.8},
    "answers": {"output": 1.4},
    "class": {"long": 0.1},
    "newcomer": {"newcomer": 0.1},
    "cache": {"cached": 900.0},
    "nothing": {},
}


@cache
def history() -> Ticks:
    """Some days without a drift."""
    return ticks(rows(MONDAY, DAYS * DAY, 1))


@cache
def retold(mix: str) -> Rebased:
    """Quiet days and half an hour of a new mix, as if the mix had always held."""
    whole = Ticks.join([history(), ticks(rows(LATER, SEEN, 31, **MIXES[mix]))])
    change = shift(whole, FIRST, CHANGE, END, SETTINGS)
    assert change is not None
    return Rebased(whole, change)


@cache
def learnt(mix: str) -> Model:
    """What it teaches."""
    return fit_span(retold(mix), FIRST, END, SETTINGS)


def watched(mix: str, begin: float, seconds: float, seed: int, **more: float) -> list[Event]:
    """What the detector says that has learnt from the retold history."""
    detector = Detector(SETTINGS, name, learnt(mix), begin=int(begin // TICK_S))
    requests = ticks(rows(begin, seconds, seed, **(MIXES[mix] | more)))
    return detector.feed(requests, int((begin + seconds) // TICK_S))


@pytest.mark.parametrize("mix", list(MIXES))
def test_the_past_is_as_if_the_mix_had_always_been(mix: str) -> None:
    """Levels, shares and volume are those of a week made with the new mix, as well as half an hour can tell them."""
    told, truth = retold(mix).between(FIRST, CHANGE), ticks(rows(MONDAY, DAYS * DAY, 32, **MIXES[mix]))
    for part in ("n", "computed", "output", "cost"):
        assert told[part].sum() / told["n"].sum() == pytest.approx(truth[part].sum() / truth["n"].sum(), rel=0.1)
    assert told["n"].sum() == pytest.approx(truth["n"].sum(), rel=0.05)
    for column in ("log_cost", "log_ratio"):
        assert told[column].sum() / told["n"].sum() == pytest.approx(truth[column].sum() / truth["n"].sum(), abs=0.1)
    spread = [np.sqrt(one["log_cost2"].sum() / one["n"].sum() - (one["log_cost"].sum() / one["n"].sum()) ** 2)
              for one in (told, truth)]  # fmt: skip
    assert spread[0] == pytest.approx(spread[1], rel=0.1)


@pytest.mark.parametrize("mix", ["prompts", "newcomer"])
def test_the_new_mix_is_no_drift_any_more(mix: str) -> None:
    """Neither in the next hours nor at another time of day."""
    assert watched(mix, LATER + SEEN, 3 * HOUR, 33) == []
    assert watched(mix, LATER + 13 * HOUR, 3 * HOUR, 34) == []


@pytest.mark.parametrize("mix", ["prompts", "newcomer"])
def test_another_drift_is_seen_at_once(mix: str) -> None:
    """The detector is armed again: answers half as long again are told within some minutes, a return as a fall."""
    begin = LATER + 4 * HOUR
    (event,) = watched(mix, begin, 600, 35, output=1.6)
    assert (event.direction, event.at - begin <= 180) == ("up", True)
    back = Detector(SETTINGS, name, learnt(mix), begin=int(begin // TICK_S))
    events = back.feed(ticks(rows(begin, HOUR, 36)), int((begin + HOUR) // TICK_S))
    assert {one.direction for one in events} == {"down"}


def test_too_few_requests_say_nothing() -> None:
    """A minute of the new mix is not enough."""
    whole = Ticks.join([history(), ticks(rows(LATER, 60, 31, prompt=1.8))])
    assert shift(whole, FIRST, CHANGE, CHANGE + 6, SETTINGS) is None
