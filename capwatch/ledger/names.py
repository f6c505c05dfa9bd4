"""Ids for texts: every label value that the ledger keeps has a small number, given once and never again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from capwatch.ledger.table import WIDTHS, Axis

UNKNOWN: Final = 0
OTHER: Final = 1
RESERVED: Final = ("unknown", "other")
"""Ids 0 and 1 of every text axis: what a log does not tell, and what has no name of its own."""


class Names:
    """Texts by axis and id, and the way back.

    >>> names = Names()
    >>> names.id("tenant", "acme"), names.id("tenant", "acme"), names.text("tenant", 1)
    (2, 2, 'other')
    """

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, int]] = {}
        self._texts: dict[str, dict[int, str]] = {}
        self._next: dict[str, int] = {}
        self._fresh: list[tuple[str, int, str]] = []
        self._gone: list[tuple[str, int]] = []

    def id(self, axis: str, text: str) -> int:
        """The id of a text, new if it has none; that of `other` where no id is left that would fit into a key."""
        ids = self._axis(axis)
        found = ids.get(text)
        if found is None:
            found = self._next[axis]
            if found >> WIDTHS.get(axis, 62):
                return OTHER
            self.put([(axis, found, text)])
            self._fresh.append((axis, found, text))
        return found

    def find(self, axis: str, text: str) -> int | None:
        """The id of a text if it has one."""
        return self._axis(axis).get(text)

    def text(self, axis: str, number: int) -> str:
        """The text behind an id."""
        self._axis(axis)
        return self._texts[axis][number]

    def texts(self, axis: str) -> Mapping[int, str]:
        """All texts of an axis by id."""
        self._axis(axis)
        return self._texts[axis]

    def full(self, axis: Axis) -> bool:
        """Whether the axis has given all the ids it has room for."""
        self._axis(axis.name)
        return self._next[axis.name] >= 1 << axis.bits

    def fresh(self) -> list[tuple[str, int, str]]:
        """(axis, id, text) of the names given since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def gone(self) -> list[tuple[str, int]]:
        """(axis, id) of the names taken away since the last call."""
        gone, self._gone = self._gone, []
        return gone

    def put(self, named: Iterable[tuple[str, int, str]]) -> None:
        """Take over names given elsewhere."""
        for axis, number, text in named:
            self._axis(axis)[text] = number
            self._texts[axis][number] = text
            self._next[axis] = max(self._next[axis], number + 1)

    def forget(self, axis: str, number: int) -> None:
        """Take a name away; its id is not given again."""
        self._gone.append((axis, number))
        text = self._texts[axis].pop(number, None)
        if text is not None and self._ids[axis].get(text) == number:
            del self._ids[axis][text]

    def copy(self) -> Names:
        """The same names, independent from now on."""
        twin = Names()
        twin.load(self.save())
        return twin

    def save(self) -> list[tuple[str, int, list[tuple[int, str]]]]:
        """Everything, as plain builtins."""
        return [(axis, self._next[axis], list(self._texts[axis].items())) for axis in self._ids]

    def load(self, saved: Iterable[tuple[str, int, list[tuple[int, str]]]]) -> None:
        """Remember again what `save` gave."""
        for axis, following, named in saved:
            self.put((axis, number, text) for number, text in named)
            self._next[axis] = following

    def _axis(self, axis: str) -> dict[str, int]:
        if axis not in self._ids:
            self._ids[axis] = {text: number for number, text in enumerate(RESERVED)}
            self._texts[axis] = dict(enumerate(RESERVED))
            self._next[axis] = len(RESERVED)
        return self._ids[axis]
