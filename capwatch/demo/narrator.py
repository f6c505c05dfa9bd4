"""The narrator: says in a line how things are, what has just changed, and what that did to the fleet.

All numbers are differences of the daemon's own counters between two of its pages; nothing is known from elsewhere but
the scenario's name. The narrator knows when the change came and compares; the alarms are the daemon's, which does not.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capwatch.capacity.sizing import needed
from capwatch.demo.readings import Name, Reading, Stretch, read
from capwatch.demo.workload import KINDS, REPLICAS, SLOTS, change

WINDOW_S: Final = 120.0
"""What is called the present, before the change and now: a thousand requests, whose mean cost is known to 4 %."""
LEAST_S: Final = 30.0
"""The shortest stretch that is a present."""
SETTLED_S: Final = 30.0
"""After the change until nearly all that began before it has ended: the longest class takes 19 s on average."""
EVIDENT_S: Final = 110.0
"""After the change until before and after are compared first, then at twice the time, and so on."""
SPREAD: Final = 1.15
"""Standard deviation over mean of a request's cost, with the mix after the change; before it is 0.8."""
STANDS_OUT: Final = 0.10
"""A share of the cost that grew by so much is named; by chance the largest tenant's moves by 3 % in two minutes."""
SAME_RATE: Final = 0.10
"""Two counts of a thousand differ by less in 19 of 20 cases where the rate is the same."""
TARGET: Final = 0.70
"""Utilisation to plan for, `target_utilisation`'s default."""


@dataclass(slots=True)
class Narrator:
    """What one is told of a scenario whose change comes at a time (s, epoch)."""

    scenario: str
    change_at: float
    every: float = 0.0
    """Least seconds of event time between two lines on how things are."""
    _past: deque[Reading] = field(default_factory=deque)
    _before: Stretch | None = None
    """The last present before the change; where there was none, all time before it."""
    _since: Reading | None = None
    """The first reading with nothing but the new mix to come."""
    _line_at: float = -math.inf
    _alarm_at: float = -math.inf
    """The newest drift that was told."""
    _compare_at: float = math.inf
    """When before and after are compared next; never before the change has been told."""

    def hear(self, page: str) -> Iterator[str]:
        """The lines that a page of metrics is worth, without line ends."""
        reading = read(page)
        present = self._present(reading)
        if reading.at < self.change_at:
            if reading.requests:
                self._before = present or Stretch(Reading(), reading)
        elif self._compare_at == math.inf:
            self._compare_at = self.change_at + EVIDENT_S
            yield f"{_clock(self.change_at)}  JUST NOW: {change(self.scenario)}"
        if self._since is None and reading.at >= self.change_at + SETTLED_S:
            self._since = reading
        if present and reading.at >= self._line_at + self.every:
            self._line_at = reading.at
            yield f"{_clock(reading.at)}  {_status(present)}"
        if self._before and self._since and reading.at >= max(self._compare_at, self._since.at + LEAST_S):
            self._compare_at = self.change_at + 2 * (reading.at - self.change_at)
            after = Stretch(self._since, reading)
            yield f"{_clock(reading.at)}  SINCE {_clock(self.change_at)}: {_comparison(self._before, after)}"

    def warn(self, events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """The lines that drifts are worth, as the daemon tells them, oldest first; each is told once."""
        for event in events:
            if event["at"] > self._alarm_at:
                self._alarm_at = event["at"]
                word = "ALARM" if event["event"] == "raised" else "NOTE"
                yield f"{_clock(event['at'])}  {word}: {event['sentence']}"

    def _present(self, reading: Reading) -> Stretch | None:
        """What happened lately; None where that is too short or nothing."""
        past = self._past
        past.append(reading)
        while len(past) > 2 and past[1].at <= reading.at - WINDOW_S:
            past.popleft()
        present = Stretch(past[0], reading)
        return present if present.seconds >= LEAST_S and present.requests > 0 else None


def _status(present: Stretch) -> str:
    in_flight = present.last.sums["inflight_littles_law"]
    return (
        f"{present.rate:4.1f} requests/s   {present.cost:.2f} replica-seconds per request   "
        f"utilisation {_percent(present.utilisation)}   {in_flight:.0f} in flight ({REPLICAS * SLOTS} slots)   "
        f"first token of {KINDS[0].name} {present.first_token:.2f} s"
    )


def _comparison(before: Stretch, after: Stretch) -> str:
    rate = before.rate if before.first.at else after.rate  # for life there is a mix, but no rate to compare with
    grown = after.cost / before.cost - 1
    chance = 2 * SPREAD * math.sqrt(1 / before.requests + 1 / after.requests)
    what = _causes(before, after) if abs(grown) > chance else f"within chance, ±{_percent(chance)}"
    required = needed(after.rate * after.cost, 1, TARGET)
    return (
        f"{_rates(rate, after.rate)}, work per request {before.cost:.2f} -> {after.cost:.2f} replica-seconds "
        f"({grown * 100:+.0f} %): {what}. "
        f"Utilisation {_percent(rate * before.cost / REPLICAS)} -> {_percent(after.utilisation)}; "
        f"{required} replicas needed at {_percent(TARGET)}, {REPLICAS} there."
    )


def _rates(before: float, after: float) -> str:
    same = abs(after / before - 1) <= SAME_RATE
    return f"same rate {after:.1f}/s" if same else f"rate {before:.1f}/s -> {after:.1f}/s"


def _causes(before: Stretch, after: Stretch) -> str:
    """Whose share of the cost grew most, if it stands out, and else what all requests have more of."""
    named = [text for one in ("tenant", "route", "class") if (text := _grown(one, before, after))]
    if named:
        return ", ".join(named)
    kinds = {"prompt_computed": "computed prompt tokens", "output": "output tokens"}
    tokens = (f"{said} {before.tokens(kind):,.0f} -> {after.tokens(kind):,.0f}" for kind, said in kinds.items())
    return f"no tenant, route or class stands out; per request {', '.join(tokens)}"


def _grown(dimension: str, before: Stretch, after: Stretch) -> str:
    def growth(name: Name) -> float:
        return after.share_of_cost(name) - before.share_of_cost(name)

    most = max((name for name in after.last.costs if name[0] == dimension), key=growth)
    if growth(most) < STANDS_OUT:
        return ""
    if dimension != "class":
        return " ".join(most)
    shares = (_percent(part.share_of_requests(most[1])) for part in (before, after))
    return f"class {most[1]} {' -> '.join(shares)} of requests"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
