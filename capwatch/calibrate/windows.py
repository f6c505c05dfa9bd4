"""What a replica had to do while each request waited, was prefilled and decoded: the rows of a linear model.

A replica that has work is never idle, so the time in which a request is in it is all work: of its own, and of others.
Every stretch of it is

    seconds = c · prompt tokens computed + a · steps + b · tokens put out (+ k, once before the first token)

where a step gives each running sequence a token and takes a + b · running (the weights are read once a step, the rest
is per sequence), and c is 1/prefill rate. So neither queueing nor interference has to be known, or guessed: what others
did in the meantime is counted from their own rows. A prompt is computed at the end of its wait, and tokens come between
the first and the last as evenly as prefills leave room for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.record import Bools, Floats, Ints

LEAST: Final = 1e-3
"""Share of the time that is left to decoding beside a prefill: above 0, so that tokens in it have a place."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Requests that were in the replicas, as columns of length n; those that ended badly too, where they tell times.

    Attributes:
        began: float64[n], s, begin of the prefill where the log tells it, else the arrival.
        first: float64[n], s, first token.
        ended: float64[n], s, last token.
        computed: float64[n], prompt tokens without the cached ones.
        output: float64[n], tokens.
        replica: int64[n], who served; all 0 where the log does not tell.
    """

    began: Floats
    first: Floats
    ended: Floats
    computed: Floats
    output: Floats
    replica: Ints

    @classmethod
    def of(cls, columns: Floats, replica: Ints) -> Observed:
        """From float64[5, n], in the order of the attributes."""
        began, first, ended, computed, output = columns
        return cls(began, first, ended, computed, output, replica)

    def take(self, rows: Bools) -> Observed:
        """Some of the requests."""
        return Observed(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Rows:
    """Stretches of time and what was done in them, as columns; two for each request."""

    seconds: Floats
    computed: Floats
    steps: Floats
    tokens: Floats
    before: Floats
    """1 before the first token, 0 after it."""
    began: Floats
    """s, when the stretch begins."""
    request: Ints
    """Whose it is: position among the observed."""

    @property
    def occupancy(self) -> Floats:
        """Sequences running at a mean step; NaN where there was none."""
        found: Floats = np.divide(self.tokens, self.steps, out=np.full(len(self.steps), np.nan), where=self.steps > 0)
        return found

    def take(self, rows: Bools) -> Rows:
        """Some of the stretches."""
        return Rows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class Model:
    """Seconds of a replica: for a computed prompt token, for a step, for each running sequence in it."""

    token: float
    step: float
    sequence: float


def rows(seen: Observed, model: Model) -> Rows:
    """The stretches of all requests, at least one.

    ``model`` is what is known so far: it places prefills behind a wait, and tokens beside prefills.
    """
    parts = [_of_replica(seen, np.flatnonzero(seen.replica == one), model) for one in np.unique(seen.replica)]
    return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__dataclass_fields__))


def _of_replica(seen: Observed, mine: Ints, model: Model) -> Rows:
    began, first, ended = seen.began[mine], seen.first[mine], seen.ended[mine]
    computed, later = seen.computed[mine], np.maximum(seen.output[mine] - 1, 0)
    prefilled = np.maximum(began, first - computed * model.token)
    edges = np.unique(np.concatenate([began, prefilled, first, ended]))

    def boxes(begin: Floats, end: Floats, height: Floats) -> Floats:
        change = np.bincount(np.searchsorted(edges, begin), height, len(edges))
        change -= np.bincount(np.searchsorted(edges, end), height, len(edges))
        return np.maximum(np.cumsum(change), 0.0)

    def integral(density: Floats) -> Floats:
        return np.concatenate([[0.0], np.cumsum(density[:-1] * np.diff(edges))])

    def within(total: Floats, begin: Floats, end: Floats) -> Floats:
        return total[np.searchsorted(edges, end)] - total[np.searchsorted(edges, begin)]

    prompts = boxes(prefilled, first, computed / np.maximum(first - prefilled, 1e-9))
    running = boxes(first, ended, np.ones(len(mine)))
    free = np.maximum(1 - model.token * prompts, LEAST)
    pace = free / (model.step + model.sequence * np.maximum(running, 1.0))
    clock = within(integral(pace), first, ended)
    scale = np.divide(later, clock, out=np.zeros(len(mine)), where=clock > 0)
    tokens = pace * boxes(first, ended, scale)
    steps = np.divide(tokens, running, out=np.zeros(len(edges)), where=running > 0.5)

    def did(density: Floats, begin: Floats, end: Floats, own: Floats) -> Floats:
        return np.maximum(within(integral(density), begin, end), own)

    nothing = np.zeros(len(mine))
    return Rows(
        seconds=np.concatenate([first - began, ended - first]),
        computed=np.concatenate([did(prompts, began, first, computed), did(prompts, first, ended, nothing)]),
        steps=np.concatenate([within(integral(steps), began, first), later]),
        tokens=np.concatenate([did(tokens, began, first, nothing), did(tokens, first, ended, later)]),
        before=np.repeat([1.0, 0.0], len(mine)),
        began=np.concatenate([began, first]),
        request=np.concatenate([mine, mine]),
    )
