"""The names of one label: who has one of the limited places, and who of those in `other` has earned one.

Three quarters of the places go to whoever comes first. The last quarter is kept for late names that are several times
dearer than what is in `other`: the fuller it gets, the dearer a name must be, so that a crowd of equals never fills it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from statistics import median
from typing import Final

from capwatch.ledger import Axis

RESERVE: Final = 4
"""One part in four of the places is kept for late names (contract, section 5)."""
WAITING: Final = 4
"""Names in `other` are weighed in a table of this many times the limit (Space-Saving, Metwally 2005)."""
DEARER: Final = 4.0
"""How many times the mean of `other` a late name must cost; fewer than that many names are no basis for a mean."""

_NOTHING: Final = (0.0, 0.0)


@dataclass(slots=True)
class Places:
    """The places of one axis. Weights are costs in replica-seconds that fade, see `fade`."""

    axis: Axis
    limit: int
    seen: dict[int, float] = field(default_factory=dict)
    """Id that has a place → event clock (s, epoch) of its last request."""
    cost: dict[int, float] = field(default_factory=dict)
    """Id that has a place → its weight."""
    waiting: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Name in `other` → (weight, what of it was inherited): its own is between their difference and the weight."""

    @property
    def open(self) -> bool:
        """Whether the next one to come gets a place."""
        return len(self.seen) < self.limit - self.limit // RESERVE

    def take(self, number: int, name: str, cost: float, clock: float) -> None:
        """Give a place, or note more traffic of one who has it."""
        self.seen[number] = clock
        self.cost[number] = self.cost.get(number, 0.0) + cost
        self.waiting.pop(name, None)

    def leave(self, numbers: Iterable[int]) -> None:
        """Free the places of these ids."""
        for number in numbers:
            del self.seen[number]
            self.cost.pop(number, None)

    def weigh(self, costs: Mapping[str, float]) -> None:
        """Add to waiting names; when the table is full the lightest give up their places in it, and their weights."""
        size = WAITING * max(self.limit, RESERVE)
        for name in costs.keys() & self.waiting.keys():
            weight, inherited = self.waiting[name]
            self.waiting[name] = (weight + costs[name], inherited)
        fresh = sorted(costs.keys() - self.waiting.keys(), key=lambda name: (-costs[name], name))[:size]
        over = max(len(self.waiting) + len(fresh) - size, 0)
        lightest = nsmallest(over, self.waiting, key=lambda name: self.waiting[name][0])
        left = [self.waiting.pop(name)[0] for name in lightest]
        for name, inherited in zip(fresh, [*left, *[0.0] * (len(fresh) - over)], strict=True):
            self.waiting[name] = (costs[name] + inherited, inherited)

    def deserving(self, names: Iterable[str]) -> list[str]:
        """Which of these waiting names have earned one of the places kept for late ones, the dearest first."""
        found = {name: self.waiting.get(name, _NOTHING) for name in names}
        own = {name: weight - inherited for name, (weight, inherited) in found.items()}
        others, count = sum(weight for weight, _ in self.waiting.values()), len(self.waiting)
        chosen: list[str] = []
        for name in sorted(own, key=lambda name: (-own[name], name)):
            others, count = others - found[name][0], count - 1
            if own[name] <= self._price(others, count, self.limit - len(self.seen) - len(chosen)):
                break
            chosen.append(name)
        return chosen

    def _price(self, others: float, count: int, free: int) -> float:
        """What a late name must cost more than; the others of ``other`` weigh so much, and so many places are free."""
        if free <= 0:
            return float("inf")
        if count >= DEARER:
            return DEARER * (self.limit // RESERVE) / free * others / count
        return median(self.cost.values()) if self.cost else 0.0

    def fade(self, share: float) -> None:
        """Let this share of all weights remain: a name dear today is not measured against months of `other`."""
        self.cost = {number: cost * share for number, cost in self.cost.items()}
        self.waiting = {name: (weight * share, part * share) for name, (weight, part) in self.waiting.items()}
