"""The narrator: reads the daemon's own metrics, and says in a line how things are and what has just happened."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from capwatch.demo.scene import GATEWAY
from capwatch.demo.workload import KINDS, NEWCOMER, REPLICAS, change

WINDOW_S: Final = 120.0
"""What is called the present: the mean cost of a thousand requests is known to 4 %."""
EVIDENT_S: Final = 150.0
"""After the change until its effect is told: the present is then all new, and what began before has ended."""

_SAMPLE: Final = re.compile(r"capwatch_(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Reading:
    """What one page of metrics says, as far as it is told on."""

    at: float
    """The newest event, s since the epoch."""
    requests: float
    """Requests for life that tokens are known of."""
    cost: float
    """Their cost, replica-seconds for life."""
    newcomer: float
    """That of the new tenant."""
    in_flight: float
    duration: float
    """The 95th percentile of the first class, s, over the last five minutes; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Present:
    """Requests a second, replica-seconds a request, and the new tenant's share of them, in the present."""

    rate: float
    cost: float
    newcomer: float

    @property
    def utilisation(self) -> float:
        """λ·cost/replicas."""
        return self.rate * self.cost / REPLICAS


def read(page: str) -> Reading:
    """Find on a page in the text format what is told on."""
    sums: dict[str, float] = {}
    duration = float("nan")
    for line in page.splitlines():
        found = _SAMPLE.match(line)
        if not found:
            continue
        name, labels, value = found[1], dict(_LABEL.findall(found[2] or "")), float(found[3])
        if name == "class_duration_seconds" and labels["class"] == KINDS[0].name and labels["quantile"] == "0.95":
            duration = value
        if name == "cost_replica_seconds_total" and labels["tenant"] == NEWCOMER.name:
            sums["newcomer"] = sums.get("newcomer", 0.0) + value
        if name != "source_last_event_timestamp_seconds" or labels["source"] == GATEWAY:
            sums[name] = sums.get(name, 0.0) + value
    return Reading(
        at=sums.get("source_last_event_timestamp_seconds", 0.0),
        requests=sums.get("class_requests_total", 0.0),
        cost=sums.get("class_cost_replica_seconds_total", 0.0),
        newcomer=sums.get("newcomer", 0.0),
        in_flight=sums.get("inflight_littles_law", 0.0),
        duration=duration,
    )


@dataclass(slots=True)
class Narrator:
    """What one is told of a scenario whose change comes at a time (s, epoch)."""

    scenario: str
    change_at: float
    _past: deque[Reading] = field(default_factory=deque)
    _usual_cost: float = 0.0
    """Replica-seconds a request in all the time before the change."""
    _usual_rate: float = 0.0
    """Requests a second in the last present before it; 0 where there was none."""
    _told: int = 0
    """Of the two things there are to tell: that something changes, and what came of it."""

    def hear(self, page: str) -> Iterator[str]:
        """The lines that a page of metrics is worth, without line ends."""
        reading = read(page)
        past = self._past
        past.append(reading)
        while len(past) > 2 and past[1].at <= reading.at - WINDOW_S:
            past.popleft()
        if reading.at < self.change_at and reading.requests > 0:
            self._usual_cost = reading.cost / reading.requests
        if self._told == 0 and reading.at >= self.change_at:
            self._told = 1
            yield f"{_clock(self.change_at)}  JUST NOW: {change(self.scenario)}"
        present = _between(past[0], reading)
        if present is None:
            return
        if reading.at < self.change_at:
            self._usual_rate = present.rate
        yield _line(reading, present)
        if self._told == 1 and reading.at >= self.change_at + EVIDENT_S:
            self._told = 2
            yield f"{_clock(reading.at)}  SEEN: {self._effect(present)}"

    def _effect(self, present: Present) -> str:
        usual = Present(self._usual_rate or present.rate, self._usual_cost or present.cost, 0.0)
        told = (
            f"cost per request {usual.cost:.2f} -> {present.cost:.2f} replica-seconds ({_change(usual, present)}) at "
            f"{usual.rate:.1f} -> {present.rate:.1f} requests/s; utilisation {usual.utilisation:.0%} -> "
            f"{present.utilisation:.0%}"
        )
        if present.newcomer > 0:
            told += f"; {NEWCOMER.name} makes {present.newcomer:.0%} of the cost"
        return told


def _change(usual: Present, present: Present) -> str:
    return f"{present.cost / usual.cost - 1:+.0%}"


def _between(first: Reading, last: Reading) -> Present | None:
    """What happened between two readings; None where it was too short or nothing."""
    seconds, requests, cost = last.at - first.at, last.requests - first.requests, last.cost - first.cost
    if seconds < WINDOW_S / 4 or requests <= 0 or cost <= 0:
        return None
    return Present(requests / seconds, cost / requests, (last.newcomer - first.newcomer) / cost)


def _line(reading: Reading, present: Present) -> str:
    parts = [
        f"{_clock(reading.at)}",
        f"{present.rate:4.1f} requests/s",
        f"cost/request {present.cost:.2f}",
        f"utilisation {present.utilisation:.0%}",
        f"in flight {reading.in_flight:.0f}",
        f"p95 of {KINDS[0].name} {reading.duration:.1f} s",
    ]
    return "  ".join(parts)


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
