"""The running sums of one direction: brought forward over many ticks at once, up to the first alarm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from capwatch.drift.model import Watched
from capwatch.drift.scale import Stretch, Window, credible, crowded, since, trailing
from capwatch.record import Floats, Ints


@dataclass(slots=True)
class Watch:
    """CUSUMs of all channels of a direction, and what has happened since each one's last zero."""

    sums: Floats
    since: Ints
    """int64[A]: first tick after the last zero."""
    n: Floats
    excess: Floats
    """float64[A]: cost − expected cost, in the direction that is watched, as `gain`."""
    expected: Floats
    gain: Floats

    @classmethod
    def new(cls, size: int, tick: int) -> Watch:
        """Sums that begin at a tick."""
        return cls(np.zeros(size), np.full(size, tick), *(np.zeros(size) for _ in range(4)))

    def halve(self) -> None:
        """After a gap in the records the past counts half: neither forgotten nor held against a new day."""
        self.sums /= 2

    def advance(
        self, watched: Watched, tick: int, stretch: Stretch, before: Floats, *, way: int, effect: float
    ) -> tuple[int | None, int, Floats]:
        """Take ticks up to the first alarm.

        Args:
            watched: channels and levels.
            tick: the first one.
            stretch: all of them, without a gap.
            before: float64[5]: requests of the five ticks before.
            way: 1 for rises, −1 for falls.
            effect: the minimum effect.

        Returns:
            (row of the alarm or None, its channel, the score of every row up to there).
        """
        scale = watched.scale
        crowd = crowded(stretch.n, stretch.usual)[:, None]
        cap = scale.cap * crowd
        steps = np.minimum(scale.damped(stretch.found, trailing(stretch.n, before)), cap)
        total = self.sums + np.cumsum(steps, axis=0)
        sums = total - np.minimum(0.0, np.minimum.accumulate(total, axis=0))
        row = np.arange(1, len(steps) + 1)[:, None]
        zero = np.maximum.accumulate(np.where(sums == 0.0, row, 0), axis=0)
        n, expected = stretch.n[:, None] * crowd, stretch.expected[:, None] * crowd
        excess = way * (stretch.cost[:, None] * crowd - expected)
        window = Window(
            n=since(n, zero, self.n, n[:, 0]),
            excess=since(excess, zero, self.excess, n[:, 0]),
            expected=since(expected, zero, self.expected, n[:, 0]),
            gain=since(way * stretch.gain * crowd, zero, self.gain, n[:, 0]),
        )
        surprise = np.where(credible(window, scale, effect), scale.surprise(sums), 0.0)
        best = surprise.max(axis=1, initial=0.0)
        alarms = np.flatnonzero(best >= scale.level)
        last = int(alarms[0]) if len(alarms) else len(steps) - 1
        self.sums = sums[last]
        self.since = np.where(zero[last] > 0, tick + zero[last], self.since)
        self.n, self.excess, self.expected, self.gain = (part[last] for part in window)
        channel = int(surprise[last].argmax())
        return (last if len(alarms) else None), channel, best[: last + 1] / scale.level

    def state(self) -> dict[str, Any]:
        """As plain builtins."""
        return {name: getattr(self, name).tolist() for name in self.__slots__}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Watch:
        """Go on from `state`."""
        return cls(**{name: np.array(values) for name, values in state.items()})
