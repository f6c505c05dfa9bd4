"""One drift or two: what clears and is raised again at once has gone on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capwatch.record import Note
from capwatch.review import change
from capwatch.review.calendar import DAY, HOUR
from capwatch.review.gather import gathered
from capwatch.review.week import PoolWeek

from . import made
from .test_story import WEDNESDAY, rows


@pytest.fixture(scope="module")
def pool() -> PoolWeek:
    """A week whose Wednesday brings longer prompts, without any event."""
    before = made.kind(made.CONFIG, rows(1500, 0.0, 0.375, 4.625))
    after = made.kind(made.CONFIG, rows(2700, 0.0, 0.675, 9.7))
    notes: list[Note] = []
    past = made.Made(lambda at: after if at >= WEDNESDAY else before, made.WEEK.since - 7 * DAY, made.WEEK.until, notes)
    return gathered(past, made.WEEK, made.CONFIG, "made").pools["chat-70b"]


def event(kind: str, at: float, started: float) -> dict[str, Any]:
    """As the detector tells it."""
    return {"event": kind, "pool": "chat-70b", "direction": "up", "at": at, "started_at": started}


@pytest.mark.parametrize(("hours", "drifts"), [(0.5, 1), (6.0, 2)])
def test_a_drift_that_went_on(hours: float, drifts: int, pool: PoolWeek) -> None:
    """Cleared by chance: raised again half an hour later it is the same until the end, six hours later another."""
    cleared = WEDNESDAY + 15 * HOUR
    events = (
        event("raised", WEDNESDAY + 600, WEDNESDAY),
        event("cleared", cleared, WEDNESDAY),
        event("raised", cleared + hours * HOUR + 600, cleared + hours * HOUR),
    )
    found = change.changes(replace(pool, events=events), made.WEEK.since, made.WEEK.until)
    assert len(found) == drifts
    first = min(found, key=lambda one: one.after.since)
    assert (first.after.since, first.after.until) == (WEDNESDAY, made.WEEK.until if drifts == 1 else cleared)
    assert first.event["cost_after"] == pytest.approx(1.3)
