"""The starts of the engines that write one log: each is told once, with the next thing that an engine says."""

from __future__ import annotations

from typing import Final, cast

from capwatch.record import EngineSample

MOST_ENGINES: Final = 256
"""Data-parallel engines of one server whose starts are remembered apart."""


class Starts:
    """How often the server of a log was seen to start, and how much of that each of its engines has told."""

    def __init__(self) -> None:
        self._seen = 0
        self._told: dict[str, int] = {}

    def begin(self) -> None:
        """A line says that the server, and with it all its engines, starts."""
        self._seen += 1

    def tell(self, sample: EngineSample) -> EngineSample:
        """The sample with the starts of its engine that were not told yet."""
        engine = sample.engine or "0"
        told = self._told.get(engine, max(self._seen - 1, 0))  # what was before an engine's first word is not its own
        if self._seen > told and len(self._told) < MOST_ENGINES:
            sample.starts = float(self._seen - told)
            self._told[engine] = self._seen
        return sample

    def save(self) -> object:
        """Starts seen, and told by engine."""
        return [self._seen, dict(self._told)]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._seen, told = cast("tuple[int, dict[str, int]]", saved)
        self._told = dict(told)
