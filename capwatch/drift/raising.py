"""A drift as an event: what the window since its change point says, against what was usual before."""

from __future__ import annotations

from capwatch.drift.attribution import Names, explain
from capwatch.drift.event import Event
from capwatch.drift.frame import Frame
from capwatch.drift.model import Settings
from capwatch.drift.reference import Reference
from capwatch.drift.ticks import TICK_S, Ticks
from capwatch.drift.verdict import verdict


def raised(
    direction: str, window: tuple[Ticks, Frame], reference: Reference, settings: Settings, names: Names
) -> Event:
    """The event of a drift that began with the first tick of a window and is seen at its end.

    Args:
        direction: up or down.
        window: its cells, and the same laid out by the reference.
        reference: what was usual before.
    """
    ticks, frame = window
    found = explain(ticks, frame, reference, settings, names)
    change = found.cost_after / found.cost_before - 1 if found.cost_before > 0 else 0.0
    return Event(
        event="raised",
        direction=direction,
        at=float((frame.tick[-1] + 1) * TICK_S),
        started_at=float(frame.tick[0] * TICK_S),
        cost_before=found.cost_before,
        cost_after=found.cost_after,
        interval=found.interval,
        effects=found.effects,
        contributions=found.contributions,
        verdict=verdict(ticks, reference, change, settings.minimum_effect),
        rate_before=found.rate_before,
        rate_after=found.rate_after,
    )
