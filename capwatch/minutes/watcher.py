"""What a watcher is: it looks at the minutes of a pool and says what has changed, since when and through whom.

`Compared` is most of them: the last minutes against the hour before. It speaks only of changes that are large, that
stand out of how the same number of minutes has varied in that hour, and that hold for two minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from capwatch.minutes.past import Past
from capwatch.minutes.table import Sums
from capwatch.record import Floats

HOUR: Final = 60
"""Minutes that are compared with."""
SIGMAS: Final = 5.0
"""Standard deviations of earlier windows that a change must have, beside its size …"""
UNSURE: Final = 2.0
"""… and more of few windows, whose deviation is not well known: 1 + this / their number times as many."""
FEWEST: Final = 4
"""Earlier windows below which nothing is said."""
NAMED: Final = 0.2
"""Part of a change from which a tenant is told …"""
PLENTY: Final = 1.5
"""… where it is that many times the tenant's part of the requests: when all have changed alike, it is none of them."""


class Who(NamedTuple):
    """A tenant behind a change."""

    tenant: int
    """Id of its name."""
    part: float
    """Of the change."""


class Change(NamedTuple):
    """What a watcher says."""

    since: int
    """The first minute of it."""
    before: float
    after: float
    who: tuple[Who, ...]


class Watcher(Protocol):
    """One of the shelf. It remembers nothing: the minutes are all it knows."""

    @property
    def name(self) -> str:
        """One of `capwatch.metrics.WATCHES`."""

    @property
    def hold(self) -> int:
        """Looks in a row that must find a change."""

    @property
    def patience(self) -> int:
        """Looks in a row that must find that it is over."""

    def now(self, past: Past) -> tuple[float, float] | None:
        """(usual, present) value; None where there is nothing to look at in this minute."""

    def look(self, past: Past) -> Change | None:
        """What has changed, where ``now`` has told something; None where nothing has."""

    def over(self, past: Past, change: Change) -> bool | None:
        """Whether a change is over, where ``now`` has told something; None where that tells nothing of it."""

    def said(self, change: Change) -> str:
        """What has changed, from what to what, for people."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The last ``minutes`` against the hour before them."""

    name: str
    title: str
    """What it watches, for a sentence."""
    value: Callable[[Sums], Floats]
    """The value of windows; NaN where they do not tell it."""
    seen: Callable[[Sums], Floats]
    """How many requests stand behind it."""
    changed: Callable[[Sums, Sums, float, float], bool]
    """Whether this is a change: sums of now and of the hour, values before and after."""
    adds: Callable[[Sums, Sums], Floats]
    """What one tenant adds to the change: its sums of now and of the hour."""
    words: Callable[[float], str]
    minutes: int = 5
    fewest: int = 100
    """Requests in a window below which chance is all."""
    hold: int = 2
    patience: int = 5

    def _firsts(self, past: Past) -> list[int]:
        """First minutes of the present window and of those before it, newest first."""
        first = past.last + 1 - self.minutes
        return [begin for begin in range(first, first - HOUR - 1, -self.minutes) if past.knows(begin)]

    def now(self, past: Past) -> tuple[float, float] | None:
        """See `Watcher`."""
        firsts = self._firsts(past)
        if len(firsts) <= FEWEST:
            return None
        before = past.window(firsts[-1], firsts[0] - firsts[-1])
        present = past.window(firsts[0], self.minutes)
        values = float(self.value(before)), float(self.value(present))
        return None if np.isnan(values).any() or self.seen(present) < self.fewest else values

    def look(self, past: Past) -> Change | None:
        """See `Watcher`."""
        told = self.now(past)
        if told is None:
            return None
        before, after = told
        firsts = self._firsts(past)
        hour, present = past.window(firsts[-1], firsts[0] - firsts[-1]), past.window(firsts[0], self.minutes)
        if not self.changed(present, hour, before, after):  # the cheapest question first: most minutes are usual
            return None
        earlier = past.windows(firsts[1:], self.minutes)
        known = self.value(earlier)[self.seen(earlier) >= self.fewest]
        known = known[~np.isnan(known)]
        if len(known) < FEWEST:
            return None
        if abs(after - before) <= SIGMAS * (1 + UNSURE / len(known)) * float(known.std(ddof=1)):
            return None
        since = self._since(past, before, after)
        begin = firsts[-1]
        return Change(
            since,
            before,
            after,
            self.who(past.tenants(since, past.last + 1 - since), past.tenants(begin, since - begin)),
        )

    def _since(self, past: Past, before: float, after: float) -> int:
        """The minute with the largest likelihood ratio of a step there: squared deviation since, times its length."""
        firsts = range(past.last - 2 * self.minutes, past.last + 1)
        lengths = past.last + 1 - np.array(firsts)
        windows = [past.window(first, past.last + 1 - first) for first in firsts]
        deviation = np.nan_to_num(
            np.sign(after - before) * (np.array([float(self.value(one)) for one in windows]) - before)
        )
        return firsts[int(np.argmax(np.maximum(0.0, deviation) ** 2 * lengths))]

    def over(self, past: Past, change: Change) -> bool:
        """Whether less than half of the change is left."""
        told = self.now(past)
        if told is None:
            return False
        sign = 1 if change.after > change.before else -1
        return sign * (told[1] - (change.before + change.after) / 2) < 0

    def who(self, now: Mapping[int, Sums], before: Mapping[int, Sums]) -> tuple[Who, ...]:
        """The tenants behind a change, the largest first."""
        nothing = Sums(np.zeros_like(next(iter(now.values())).values), 1) if now else None
        adds = {one: max(0.0, float(self.adds(sums, before.get(one, nothing or sums)))) for one, sums in now.items()}
        return behind(adds, {one: float(sums["requests"]) for one, sums in now.items()})

    def said(self, change: Change) -> str:
        """See `Watcher`."""
        return f"{self.title} {self.words(change.before)} → {self.words(change.after)}"


def behind(adds: Mapping[int, float], requests: Mapping[int, float]) -> tuple[Who, ...]:
    """The tenants that add more to a change than their part of the requests explains, the largest first."""
    whole, asked = sum(adds.values()), sum(requests.values())
    if not whole or not asked:
        return ()
    alone = len(requests) == 1
    parts = [Who(one, value / whole) for one, value in adds.items()]
    named = [one for one in parts if one.part >= NAMED and (alone or one.part >= PLENTY * requests[one.tenant] / asked)]
    return tuple(sorted(named, key=lambda one: -one.part))
