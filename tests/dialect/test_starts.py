"""Starts of engines in a log: counted for each of its engines, and timed to each phase."""

from __future__ import annotations

import json

import pytest

from capwatch.dialect import Aside, Drop, Skip
from capwatch.dialect.starts import LONGEST_S, Starts
from capwatch.dialect.value import REFUSED
from capwatch.record import EngineSample, Reached

LINE = Skip("a line")


def told(starts: Starts, *engines: str | None) -> list[float | None]:
    """The starts that samples of these engines carry."""
    return [starts.tell(EngineSample(engine=engine)).starts for engine in engines]


def test_each_engine_tells_a_start_once() -> None:
    """Those that were heard before tell all that they missed, a new one only its own."""
    starts = Starts()
    assert told(starts, None) == [None]
    starts.begin()
    assert told(starts, None, None, "0", "1") == [1, None, None, 1]
    starts.begin()
    starts.begin()
    assert told(starts, "1", "1", "2", None) == [2, None, 1, 2]


def test_phases_are_timed_from_the_start() -> None:
    """The line keeps its verdict; beside it stands what it says of the start."""
    starts = Starts()
    assert starts.begin(100.0) == Aside(Skip("start of the server"), Reached("start", 0.0, 100.0))
    assert starts.reach("weights", 112.5, LINE) == Aside(LINE, Reached("weights", 12.5, 112.5))
    assert [starts.open, starts.ready] == [True, False]
    starts.reach("ready", 120.0, LINE)
    assert [starts.open, starts.ready] == [False, True]
    assert starts.reach("first_request", 130.0, LINE) == Aside(LINE, Reached("first_request", 30.0, 130.0))
    assert starts.reach("ready", 140.0, LINE) == LINE


def test_a_rank_that_is_later_counts() -> None:
    """A phase may be told again until the first request."""
    starts = Starts()
    starts.begin(100.0)
    found = [starts.reach("weights", at, LINE) for at in (110.0, 115.0)]
    assert [one.reached.seconds for one in found if isinstance(one, Aside)] == [10, 15]


@pytest.mark.parametrize("at", [None, 99.0, 100.0 + LONGEST_S + 1])
def test_what_cannot_be_part_of_the_start_is_not(at: float | None) -> None:
    """Lines without a time, from before it, or of another day."""
    starts = Starts()
    starts.begin(100.0)
    assert starts.reach("ready", at, LINE) == LINE


def test_no_start_no_phase() -> None:
    """A log that is read from its middle tells nothing of how long it took; nor does one whose start has no time."""
    starts = Starts()
    assert starts.reach("ready", 5.0, LINE) == LINE
    assert starts.begin(REFUSED) == Skip("start of the server")
    assert starts.reach("ready", 5.0, LINE) == LINE


def test_a_dropped_line_says_nothing() -> None:
    """Nor does one that has said it already."""
    starts = Starts()
    aside = starts.begin(100.0)
    assert starts.reach("ready", 105.0, Drop("malformed")) == Drop("malformed")
    assert starts.reach("ready", 105.0, aside) == aside


def test_memory_survives_as_plain_values() -> None:
    """What was told is not told again, and a start goes on."""
    starts, other = Starts(), Starts()
    starts.begin(100.0)
    told(starts, "0")
    starts.reach("ready", 110.0, LINE)
    other.load(json.loads(json.dumps(starts.save())))
    assert told(other, "0", "1") == [None, 1]
    assert other.ready
    assert other.reach("first_request", 112.0, LINE) == Aside(LINE, Reached("first_request", 12.0, 112.0))
