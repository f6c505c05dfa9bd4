"""What is raised, what is not, and that neither restarts nor the size of the pieces matter (golden G2, G3, G11–G13)."""

from __future__ import annotations

import numpy as np
import pytest

from capwatch.drift.detector import Detector
from capwatch.drift.event import EFFECTS, Event
from capwatch.drift.model import fit
from capwatch.drift.rows import Rows
from capwatch.drift.ticks import TICK_S, Ticks

from .sample import DAY, HOUR, LATER, MONDAY, SETTINGS, model, name, rows, ticks

QUIET = 2 * HOUR


def watch(*stretches: Ticks) -> list[Event]:
    """What a detector says of stretches that follow each other."""
    together = Ticks.merge(stretches)
    return detector(together).feed(together, int(together.tick[-1]) + 1)


def detector(some: Ticks) -> Detector:
    """A fresh detector with the model of a quiet week."""
    return Detector(SETTINGS, name, model(), begin=int(some.tick[0]))


def stretch(begin: float, seconds: float, seed: int, **changes: float) -> Ticks:
    """Ticks of some traffic."""
    return ticks(rows(begin, seconds, seed, **changes))


def raised(events: list[Event]) -> list[Event]:
    """Rises alone."""
    return [event for event in events if event.event == "raised" and event.direction == "up"]


def drifted(changes: dict[str, float], seed: int = 21) -> list[Event]:
    """Events of two quiet hours and an hour of drift."""
    return watch(stretch(LATER - QUIET, QUIET, 20), stretch(LATER, HOUR, seed, **changes))


CASES = [
    pytest.param({"long": 0.12}, "mix", "class", "long", id="G2: the dear class becomes frequent"),
    pytest.param({"newcomer": 0.08}, "mix", "tenant", "acme", id="G2: a new tenant asks for dear things"),
    pytest.param({"prompt": 1.8}, "prompt", "class", "policy", id="G3: prompts get longer"),
    pytest.param({"output": 1.5}, "output", "class", "policy", id="answers get longer"),
]


@pytest.mark.parametrize(("changes", "effect", "dimension", "value"), CASES)
def test_a_drift_is_raised_once_and_named(changes: dict[str, float], effect: str, dimension: str, value: str) -> None:
    """One alarm within three minutes, of the right kind, naming who did it, dated within a minute of the change."""
    (event,) = raised(drifted(changes))
    assert event.at - LATER <= 180
    assert abs(event.started_at - LATER) <= 60
    assert max(EFFECTS, key=lambda one: abs(event.effects[one])) == effect
    assert (dimension, value, effect) in [(one.dimension, one.value, one.effect) for one in event.contributions]


@pytest.mark.parametrize(("changes", "effect", "dimension", "value"), CASES)
def test_effects_add_up(changes: dict[str, float], effect: str, dimension: str, value: str) -> None:
    """The four effects are exactly the change of the cost (law 6)."""
    for event in drifted(changes):
        assert sum(event.effects.values()) == pytest.approx(event.cost_after - event.cost_before, rel=1e-9)


def test_the_cost_told_is_that_of_the_window() -> None:
    """cost_after is the mean cost of all requests since the change point."""
    (event,) = raised(drifted({"output": 1.5}))
    window = Ticks.merge([stretch(LATER - QUIET, QUIET, 20), stretch(LATER, HOUR, 21, output=1.5)])
    window = window.between(int(event.started_at // TICK_S), int(event.at // TICK_S))
    assert event.cost_after == pytest.approx(window["cost"].sum() / window["n"].sum())


def test_g11_twice_the_rate_is_no_drift() -> None:
    """More requests of the same kind raise nothing."""
    assert drifted({"rate": 6.0}) == []


def test_g12_more_hits_of_longer_prompts_are_no_drift() -> None:
    """Prompt tokens rise, computed tokens do not: nothing costs more."""
    assert drifted({"cached": 900.0}) == []


def test_g13_one_very_long_prompt_is_no_drift() -> None:
    """A tenant with twenty requests an hour that sends one very long prompt raises nothing."""
    quiet = rows(LATER - QUIET, QUIET + HOUR, 30, rate=20 / 3600)
    quiet.prompt[-5] = 500_000
    assert watch(ticks(quiet)) == []


def test_a_burst_of_twenty_seconds_is_no_drift() -> None:
    """Four hundred dear requests of one tenant within twenty seconds raise nothing."""
    burst = rows(LATER, 20, 31, rate=200.0)
    burst.klass[:], burst.route[:], burst.tenant[:] = 1, 1, 2
    assert watch(stretch(LATER - QUIET, QUIET + HOUR, 20), ticks(burst)) == []


def test_a_tenants_death_is_no_drift() -> None:
    """The largest tenant falls silent: what the others cost is not a change."""
    after = rows(LATER, HOUR, 33)
    assert raised(watch(stretch(LATER - QUIET, QUIET, 20), ticks(after.take(after.tenant != 0)))) == []


def test_a_drift_that_ends_is_cleared() -> None:
    """A quarter of an hour after the cost has come back, the drift is over, and the next one is raised again."""
    events = watch(
        stretch(LATER - QUIET, QUIET, 20),
        stretch(LATER, HOUR, 21, output=1.5),
        stretch(LATER + HOUR, HOUR, 22),
        stretch(LATER + 2 * HOUR, HOUR, 23, output=1.5),
    )
    up = [event for event in events if event.direction == "up"]
    assert [event.event for event in up] == ["raised", "cleared", "raised"]
    assert up[1].at - (LATER + HOUR) <= 20 * 60
    assert up[2].at - (LATER + 2 * HOUR) <= 180


def test_pieces_and_restarts_change_nothing() -> None:
    """Tick by tick, with a restart after every tenth, the events are those of one piece."""
    together = Ticks.merge([stretch(LATER - HOUR, HOUR, 20), stretch(LATER, HOUR // 2, 21, long=0.12)])
    first, last = int(together.tick[0]), int(together.tick[-1]) + 1
    whole = detector(together).feed(together, last)
    one, pieces = detector(together), []
    for tick in range(first, last):
        if tick % 10 == 0:
            one = Detector.from_state(one.state(), SETTINGS, name, model())
        pieces += one.feed(together.between(tick, tick + 1), tick + 1)
    assert [(event.event, event.at, event.started_at) for event in pieces] == [
        (event.event, event.at, event.started_at) for event in whole
    ]
    assert len(whole) == 1
    assert pieces[0].effects == pytest.approx(whole[0].effects)


def test_a_gap_of_weeks_is_skipped() -> None:
    """After weeks without records the detector goes on and finds the next drift."""
    far = LATER + 21 * DAY
    events = watch(
        stretch(LATER - QUIET, QUIET, 20), stretch(far, QUIET, 22), stretch(far + QUIET, HOUR, 23, prompt=1.8)
    )
    assert [event.at - far - QUIET <= 180 for event in raised(events)] == [True]


def test_without_history_only_what_nobody_could_miss() -> None:
    """While learning, +18 % is left alone and +60 % over ten minutes is raised, with its cause."""
    for factor, expected in ((1.25, []), (1.9, ["output"])):
        young = Detector(SETTINGS, name, begin=MONDAY // TICK_S)
        some = Ticks.merge([stretch(MONDAY, 5 * HOUR, 40), stretch(MONDAY + 5 * HOUR, HOUR, 41, output=factor)])
        events = raised(young.feed(some, int(some.tick[-1]) + 1))
        assert young.learning
        assert [max(event.effects, key=lambda one: event.effects[one]) for event in events] == expected


def test_nobody_asks() -> None:
    """Hours without a request raise nothing and divide by nothing."""
    one = detector(stretch(LATER, 60, 20))
    with np.errstate(all="raise"):
        assert one.feed(Ticks.empty(), LATER // TICK_S + 5 * 360) == []


def test_waits_tell_queueing_from_composition() -> None:
    """G2: a dearer mix with longer waits is `both`, with usual waits `composition`; without waits nothing is told."""
    waiting = fit(ticks(rows(MONDAY, 4 * DAY, 1, wait=0.024)), SETTINGS)
    for wait, expected in ((0.286, "both"), (0.025, "composition"), (np.nan, None)):
        some = Ticks.merge(
            [stretch(LATER - HOUR, HOUR, 20, wait=0.024), stretch(LATER, HOUR // 2, 21, long=0.12, wait=wait)]
        )
        one = Detector(SETTINGS, name, waiting, begin=int(some.tick[0]))
        (event,) = raised(one.feed(some, int(some.tick[-1]) + 1))
        assert event.verdict == expected


def test_unknown_state_is_refused() -> None:
    """A state of another version is not taken for this one."""
    state = detector(stretch(LATER, 60, 20)).state()
    with pytest.raises(ValueError, match="version 99"):
        Detector.from_state({**state, "version": 99}, SETTINGS, name, model())


def test_rows_take() -> None:
    """Rows keep their columns together."""
    some: Rows = rows(LATER, 100, 1)
    assert some.take(np.array([3])).prompt[0] == some.prompt[3]


def test_a_silence_that_is_watched_blinds_nobody() -> None:
    """Half a day without a request, ten seconds at a time: no number breaks, and the drift after it is seen."""
    detector = Detector(SETTINGS, name, model(), begin=LATER // TICK_S)
    detector.feed(ticks(rows(LATER, HOUR, 51)), (LATER + HOUR) // TICK_S)
    for hour in range(1, 13):
        assert detector.feed(Ticks.empty(), (LATER + (hour + 1) * HOUR) // TICK_S) == []
    begin = LATER + 13 * HOUR
    detector.feed(ticks(rows(begin, HOUR, 52)), (begin + HOUR) // TICK_S)
    assert np.isfinite(detector.score)
    events = detector.feed(ticks(rows(begin + HOUR, 600, 53, prompt=1.8)), (begin + HOUR + 600) // TICK_S)
    assert [event.direction for event in events] == ["up"]
