"""The demo's clock: the wall clock until it is let go, and then as fast as was asked for."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """Seconds since the epoch; never back."""

    def __init__(self, speed: float, wall: Callable[[], float]) -> None:
        """``wall`` is the wall clock."""
        self._speed = speed
        self._wall = wall
        self._from: float | None = None

    def __call__(self) -> float:
        """What time it is."""
        now = self._wall()
        return now if self._from is None else self._from + (now - self._from) * self._speed

    def let_go(self) -> None:
        """From now on a second takes 1/speed of a second."""
        self._from = self._wall()
