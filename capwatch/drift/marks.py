"""Deploy notes beside change points: which one came shortly before the cost of a request began to move."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from capwatch.record import Note

NEAR_S: Final = 900.0
"""A change point so long after a note is told with it: a rollout takes minutes."""
SLACK_S: Final = 60.0
"""Change points are estimates, up to 40 s too early (detection, section 4.5), and ticks have 10 s."""
KEPT_S: Final = 8 * 86400.0
"""Notes are kept as long as a drift may be active, and a day more."""
MOST: Final = 10_000
"""Notes kept, the oldest go first: a thousand deploys a day."""


class Marks:
    """The notes of the last days, in order of time; the same one again is one."""

    def __init__(self) -> None:
        self._notes: list[tuple[float, str, str]] = []
        self._fresh: list[Note] = []

    def add(self, notes: Iterable[Note]) -> None:
        """Keep notes that were just read, see `fresh`."""
        found = list(notes)
        self._fresh += found
        self.recall(found)

    def recall(self, notes: Iterable[Note]) -> None:
        """Keep notes that the history has."""
        for at, pool, text in notes:
            one = (at, pool or "", text)
            place = bisect_left(self._notes, one)
            if self._notes[place : place + 1] != [one]:
                self._notes.insert(place, one)
        del self._notes[:-MOST]

    def expire(self, clock: float) -> None:
        """Forget what is too old at this event time (s, epoch)."""
        self._notes = [one for one in self._notes if one[0] >= clock - KEPT_S]

    def near(self, change: float, pool: str, unsure: float = SLACK_S) -> Note | None:
        """The last note about a pool, or about all, in the quarter of an hour before a change point (s, epoch).

        ``unsure`` is by how much (s) the change may have come later.

        >>> marks = Marks()
        >>> marks.add([Note(600.0, None, "4 to 8 chunks"), Note(900.0, "other", "new image")])
        >>> marks.near(840.0, "chat"), marks.near(1600.0, "chat")
        (Note(at=600.0, pool=None, text='4 to 8 chunks'), None)
        """
        for at, about, text in reversed(self._notes):
            if at <= change + unsure and about in ("", pool):
                return Note(at, about or None, text) if at >= change - NEAR_S else None
        return None

    def fresh(self) -> list[Note]:
        """The notes that were read since the last call, for the history."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def inherit(self, other: Marks) -> None:
        """Go on from the notes of another pipeline."""
        self._notes, self._fresh = other._notes, [*other._fresh, *self._fresh]
