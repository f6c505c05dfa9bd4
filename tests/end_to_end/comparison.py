"""Two ways to tell the same quantity, side by side: how far apart they are, and how far apart they may be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison: two numbers, and by how much they may differ (a share of the greater; None: only shown)."""

    what: str
    one: float
    other: float
    within: float | None = 0.0

    @property
    def apart(self) -> float:
        """Their distance as a share of the greater."""
        return abs(self.one - self.other) / max(abs(self.one), abs(self.other), 1e-9)

    @property
    def holds(self) -> bool:
        """Whether they agree as well as they have to."""
        return self.within is None or self.apart <= self.within


def markdown(rows: Iterable[Row]) -> str:
    """The comparisons as a table."""
    head = "| what | one | other | apart | allowed | |\n|---|---|---|---|---|---|\n"
    return head + "".join(
        f"| {row.what} | {row.one:.6g} | {row.other:.6g} | {row.apart:.1%} | "
        f"{'shown only' if row.within is None else f'{row.within:.0%}'} | {'ok' if row.holds else '**differs**'} |\n"
        for row in rows
    )
