"""What a pipeline remembers of single requests and cards, beside all that it adds up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from capwatch.attempts import Attempts
from capwatch.cards import Cards
from capwatch.coldstarts import ColdStarts
from capwatch.config.schema import DEFAULT_POOL
from capwatch.dedupe import Seen
from capwatch.dialect import Decoded
from capwatch.dialect.vocabulary import replica_name
from capwatch.joins import Joins
from capwatch.origin import Origin
from capwatch.record import Batch, Ints
from capwatch.waits import Waits
from capwatch.watching import Watching


class Part(Protocol):
    """One of those who remember. What they give and take are plain values; `()` is nothing."""

    def news(self) -> object:
        """What changed since the last call."""

    def absorb(self, news: Any) -> None:
        """Remember what `news` gave before a restart."""

    def save(self) -> object:
        """Everything."""

    def load(self, saved: Any) -> None:
        """Remember again what `save` gave."""


@dataclass(slots=True)
class Memory:
    """Ids seen, engine records held, failed attempts, those who watch, the GPUs, and starts of engines."""

    ids: Seen
    watching: Watching
    cards: Cards
    starts: ColdStarts
    waits: Waits
    joins: Joins = field(default_factory=Joins)
    attempts: Attempts = field(default_factory=Attempts)

    def take(self, origin: Origin, decoded: Decoded, pools_of: Callable[[Origin, Batch], Ints], now: float) -> None:
        """Remember what lines tell beside requests that are over: starts of engines, deploys, requests that go on."""
        for _, reached in decoded.reached:
            self.starts.hear(origin.pool or DEFAULT_POOL, replica_name(origin.engine, None), reached, now)
        self.watching.drifts.marks.add(note for _, note in decoded.notes)
        if decoded.going:
            going = [one for _, one in decoded.going]
            self.waits.hear(going, pools_of(origin, Batch.of([one.request for one in going])))
        self.waits.end(decoded.batch)

    def _parts(self) -> dict[str, Part]:
        return {
            "ids": self.ids,
            "told": self.joins,
            "attempts": self.attempts,
            "watching": self.watching,
            "cards": self.cards,
            "starts": self.starts,
            "waits": self.waits,
        }

    def news(self) -> Mapping[str, object]:
        """What changed since the last call."""
        return {name: part.news() for name, part in self._parts().items()}

    def absorb(self, news: Mapping[str, Any]) -> None:
        """Remember what `news` gave before a restart."""
        for name, part in self._parts().items():
            part.absorb(news.get(name, ()))

    def save(self) -> Mapping[str, object]:
        """Everything."""
        return {name: part.save() for name, part in self._parts().items()}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Remember again what `save` gave."""
        for name, part in self._parts().items():
            part.load(saved.get(name, ()))

    def inherit(self, other: Memory) -> None:
        """Go on from the memory of a pipeline with another configuration."""
        self.joins, self.attempts = other.joins, other.attempts
        self.ids.inherit(other.ids)
        self.watching.inherit(other.watching)
        self.cards.inherit(other.cards)
        self.starts.inherit(other.starts)
        self.waits.inherit(other.waits)

    def turn(self, clock: float) -> None:
        """Judge what is over at this event time (s, epoch), before it is frozen."""
        self.watching.drifts.turn(clock)
        self.waits.turn(clock)

    def expire(self, clock: float) -> None:
        """Forget what is over at this event time (s, epoch); ids go by themselves."""
        self.joins.expire(clock)
        self.attempts.expire(clock)
        self.watching.expire(clock)
