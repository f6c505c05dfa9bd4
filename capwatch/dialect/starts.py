"""The starts of the engines that write one log: how often, and how long each took to its phases."""

from __future__ import annotations

from typing import Final, cast

from capwatch.dialect.value import REFUSED
from capwatch.dialect.verdict import Aside, Drop, Held, Skip, Verdict
from capwatch.record import EngineSample, Reached

MOST_ENGINES: Final = 256
"""Data-parallel engines of one server whose starts are remembered apart."""
LONGEST_S: Final = 86_400.0
"""What comes later than this is no part of a start."""
LAST: Final = "first_request"
"""With this a start is over."""


class Starts:
    """How often the server of a log was seen to start, what of that its engines have told, and how far it has come."""

    def __init__(self) -> None:
        self._seen = 0
        self._told: dict[str, int] = {}
        self._began: float | None = None
        self.phases: set[str] = set()
        """What the newest start has come to."""

    @property
    def ready(self) -> bool:
        """Whether the newest start has said that it is ready."""
        return "ready" in self.phases

    @property
    def open(self) -> bool:
        """Whether a start is under way, so that a line that could begin one is a part of it."""
        return self._began is not None and not self.ready

    def begin(self, at: float | None = None) -> Verdict:
        """A line of time ``at`` (s, epoch) says that the server, and with it all its engines, starts."""
        self._seen += 1
        self._began = None if at == REFUSED else at
        self.phases = set()
        verdict = Skip("start of the server")
        return verdict if self._began is None else Aside(verdict, Reached("start", 0.0, self._began))

    def reach(self, phase: str, at: float | None, verdict: Verdict) -> Verdict:
        """The verdict on a line of time ``at``, and that a start has come to a phase with it.

        A phase may be told several times, by the ranks of a server: the last of them counts.
        """
        if self._began is None or at is None or isinstance(verdict, Drop | Held | Aside):
            return verdict
        seconds = at - self._began
        if not 0 <= seconds <= LONGEST_S:
            return verdict
        self.phases.add(phase)
        if phase == LAST:
            self._began = None
        return Aside(verdict, Reached(phase, seconds, at))

    def tell(self, sample: EngineSample) -> EngineSample:
        """The sample with the starts of its engine that were not told yet."""
        engine = sample.engine or "0"
        told = self._told.get(engine, max(self._seen - 1, 0))  # what was before an engine's first word is not its own
        if self._seen > told and len(self._told) < MOST_ENGINES:
            sample.starts = float(self._seen - told)
            self._told[engine] = self._seen
        return sample

    def save(self) -> object:
        """Starts seen, told by engine, and the newest one."""
        return [self._seen, dict(self._told), self._began, sorted(self.phases)]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._seen, told, self._began, phases = cast("tuple[int, dict[str, int], float | None, list[str]]", saved)
        self._told, self.phases = dict(told), set(phases)
