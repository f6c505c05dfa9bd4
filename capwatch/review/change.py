"""What changed in a week: the events of the detector, or a plain look at the cost by the hour; each with its windows.

An event is measured over all hours since its change point, and before it over the same hours of the week before (else
over the hours of the week until then), so that neither the hour of the day nor a single tick colours it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import numpy as np

from capwatch.record import Floats
from capwatch.review.calendar import DAY, HOUR, WEEK
from capwatch.review.stretch import Stretch, split, stretch
from capwatch.review.week import PoolWeek

SURE: Final = 6.0
"""Standard errors from which the best of some 300 splits, of hours that resemble their neighbours, is no chance."""
LEAST: Final = 0.04
"""Change of the cost that is too small to matter, as the detector has it."""
MOSTLY: Final = 0.9
"""Part of the hours of a window that the same window of the week before must have to stand for it."""
LEAST_HOURS: Final = 3
AGAIN_S: Final = 2 * HOUR
"""A drift that is raised again so soon after it was cleared has gone on: chance had hidden it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A drift, and the stretches before and after its change point; without `before` nothing is known of then."""

    event: Mapping[str, Any]
    before: Stretch | None
    after: Stretch

    @property
    def weight(self) -> float:
        """How much work it added or took away, replica-seconds a second."""
        return abs(self.after.cost - self.before.cost) * self.after.charged_rate if self.before is not None else 0.0


def changes(one: PoolWeek, begin: int, end: int) -> list[Change]:
    """The drifts of a week that were raised, the weightiest first."""
    events = one.events
    if events is None or (one.unjudged and not events):  # a detector that is learning sees only what nobody could miss
        found = by_hour(one, begin, end)
        events = () if found is None else (found,)
    course = _joined(events)
    raised = [event for event in course if event["event"] == "raised"]
    told = [_measured(one, event, _over(event, course, end), begin) for event in raised]
    return sorted((change for change in told if change is not None), key=lambda change: -change.weight)


def _joined(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """In order of time, without the end and the new begin of drifts that went on; an end with a note has a reason."""
    found: list[Mapping[str, Any]] = []
    for event in sorted(events, key=itemgetter("at")):
        same = [place for place, one in enumerate(found) if one["direction"] == event["direction"]]
        if event["event"] == "raised" and same and _went_on(found[same[-1]], event):
            del found[same[-1]]
        else:
            found.append(event)
    return found


def _went_on(end: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    by_chance = end["event"] == "cleared" and not end.get("note")
    return bool(by_chance and event["started_at"] - end["at"] < AGAIN_S)


def _over(event: Mapping[str, Any], events: Sequence[Mapping[str, Any]], end: int) -> float:
    """When a drift was over."""
    later = [
        float(one["at"])
        for one in events
        if one["event"] == "cleared" and one["direction"] == event["direction"] and one["at"] > event["at"]
    ]
    return min([*later, float(end)])


def _measured(one: PoolWeek, event: Mapping[str, Any], over: float, begin: int) -> Change | None:
    started = float(event["started_at"])
    first, last = -(-started // HOUR) * HOUR, over // HOUR * HOUR
    after = stretch(one.hours, one.pool, first, last) or stretch(one.hours, one.pool, started // HOUR * HOUR, over)
    if after is None:
        return None
    before = matched(one, after) or stretch(one.hours, one.pool, begin, started // HOUR * HOUR)
    return Change(retold(event, before, after), before, after)


def matched(one: PoolWeek, after: Stretch) -> Stretch | None:
    """The same hours of the week before; None where it has too few of them."""
    found = stretch(one.last, one.pool, after.since - WEEK, after.until - WEEK)
    if found is None or len(np.unique(found.hours.at)) < MOSTLY * len(np.unique(after.hours.at)):
        return None
    return found


def retold(event: Mapping[str, Any], before: Stretch | None, after: Stretch) -> Mapping[str, Any]:
    """The event with the costs, effects and contributions of its whole stretch."""
    if before is None:
        return event
    why = split(before, after)
    return dict(event) | {
        "cost_before": before.cost,
        "cost_after": before.cost + sum(why.effects.values()),
        "cost_change_ratio": after.cost / before.cost - 1,
        "interval": _interval(before, after),
        "request_rate_change_ratio": after.rate / before.rate - 1,
        "effects": dict(why.effects),
        "contributions": [dict(part) for part in why.contributions],
    }


def _interval(before: Stretch, after: Stretch) -> list[float] | None:
    """90 % of the relative change."""
    errors = before.error, after.error
    if errors[0] is None or errors[1] is None:
        return None
    change = after.cost / before.cost
    spread = 1.645 * change * float(np.hypot(errors[0] / before.cost, errors[1] / after.cost))
    return [change - 1 - spread, change - 1 + spread]


def by_hour(one: PoolWeek, begin: int, end: int) -> Mapping[str, Any] | None:
    """The one change point that hourly costs show, as an event; None where they show none.

    For sources without ticks: the split of the last two weeks, each hour against its hour of the day, with the largest
    difference over its error. The change point is told to the hour.
    """
    at, cost, weight = _hourly(one)
    level = _usual(at, cost, weight, begin)
    ratio = cost / level
    best, place = 0.0, 0
    for k in range(LEAST_HOURS, len(at) - LEAST_HOURS + 1):
        if at[k - 1] + HOUR <= begin:
            continue
        size = _distance(ratio, weight, k)
        if size > best:
            best, place = size, k
    if best < SURE or place >= len(at):
        return None
    started = int(at[place])
    return _event(one, started, begin, end)


def _event(one: PoolWeek, started: int, begin: int, end: int) -> Mapping[str, Any] | None:
    after = stretch(one.hours, one.pool, started, end)
    if after is None:
        return None
    before = matched(one, after) or stretch(one.hours, one.pool, begin, started)
    if before is None or abs(after.cost / before.cost - 1) < LEAST:
        return None
    told = {
        "event": "raised",
        "pool": one.name,
        "direction": "up" if after.cost > before.cost else "down",
        "at": float(started + HOUR),
        "started_at": float(started),
        "verdict": None,
        "note": "from costs by the hour: the detector had no ticks, or no history to learn from",
    }
    return retold(told, before, after)


def _hourly(one: PoolWeek) -> tuple[Floats, Floats, Floats]:
    """(begin, mean cost, charged requests) of each hour of this week and the one before."""
    parts: list[tuple[Floats, Floats, Floats]] = []
    for hours in (one.last, one.hours):
        at, charged = hours.by_hour(lambda some: some.charged_by_row)
        _, cost = hours.by_hour(lambda some: some.cost_by_row)
        kept = charged > 0
        parts.append((at[kept].astype(np.float64), cost[kept] / charged[kept], charged[kept]))
    first, second = parts
    return (
        np.concatenate([first[0], second[0]]),
        np.concatenate([first[1], second[1]]),
        np.concatenate([first[2], second[2]]),
    )


def _usual(at: Floats, cost: Floats, weight: Floats, begin: int) -> Floats:
    """The mean cost at each hour's time of day, from before the week; 1 where too little is known of then."""
    before = at < begin
    if len(np.unique(at[before] // DAY)) < LEAST_HOURS:
        return np.ones(len(at))
    of = (at % DAY // HOUR).astype(np.int64)
    n = np.bincount(of[before], weight[before], 24)
    spent = np.bincount(of[before], (weight * cost)[before], 24)
    level: Floats = np.divide(spent, n, out=np.full(24, spent.sum() / n.sum()), where=n > 0)[of]
    return level


def _distance(ratio: Floats, weight: Floats, k: int) -> float:
    """How many standard errors the means before and from place ``k`` on are apart."""
    parts = [(ratio[:k], weight[:k]), (ratio[k:], weight[k:])]
    means = [float(np.average(values, weights=w)) for values, w in parts]
    spread = sum(float((w * (values - mean) ** 2).sum()) for (values, w), mean in zip(parts, means, strict=True))
    variance = spread / max(1, len(ratio) - 2)
    error = float(np.sqrt(variance * sum(1 / w.sum() for _, w in parts)))
    return abs(means[1] - means[0]) / error if error > 0 else (np.inf if means[1] != means[0] else 0.0)
