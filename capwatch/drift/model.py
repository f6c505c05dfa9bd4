"""What a detector compares ticks with: a reference, and for each direction its channels and their alarm levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any, Final

import numpy as np

from capwatch.drift import channels as bank
from capwatch.drift import scale, together
from capwatch.drift.channels import DOWN, UP, Channel
from capwatch.drift.frame import Frame, dense, split
from capwatch.drift.history import History, coarse, pieces
from capwatch.drift.layout import lay_out
from capwatch.drift.reference import Reference, learn, unlike
from capwatch.drift.scale import MONTH, Scale, Stretch
from capwatch.drift.ticks import DAY, HOUR, Ticks
from capwatch.drift.together import Calm
from capwatch.record import Floats

LEAST_DAYS: Final = 3
"""Days of history under which levels would be guesses."""
FALLS: Final = 0.25
"""Part of the false alarms that may be falls: they inform, so most of the allowance is for rises."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator sets."""

    prefill_rate: float
    """tokens/s that a replica computes of prompts."""
    decode_rate: float
    """tokens/s that a replica puts out."""
    false_alarms_per_month: float = 1.0
    minimum_effect: float = 0.04
    """Change of cost per request under which there is no alarm."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Channels of one direction and their levels."""

    channels: tuple[Channel, ...]
    scale: Scale


@dataclass(frozen=True, slots=True)
class Model:
    """Fitted on a history; never changed."""

    reference: Reference
    watched: dict[int, Watched]
    """By direction."""
    calm: Calm
    """How steady tenants are over hours."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A stretch of ticks with its evidence by direction."""

    frame: Frame
    evidence: dict[int, tuple[Floats, Floats]]
    """(log-likelihood ratios, gains) by direction: float64[T, A] each."""


def judge(ticks: Ticks, model: Model, first: int, count: int, silence: Floats) -> Judged:
    """Evidence of ``count`` ticks from ``first`` on; ``silence`` as in `dense`."""
    frame = dense(ticks, model.reference, first, count, silence)
    return Judged(
        frame,
        {way: bank.evidence(frame, model.reference, one.channels) for way, one in model.watched.items()},
    )


def long_enough(ticks: Ticks) -> bool:
    """Whether a history that is in memory may be fitted, see `reach`."""
    return bool(len(ticks)) and reach(ticks, int(ticks.tick[0]), int(ticks.tick[-1]) + 1) is not None


def reach(history: History, first: int, last: int) -> tuple[int, int] | None:
    """First tick of a history inside a span and the one after its last, where it may be fitted: at least three days
    lie between them, and traffic on each; else None.
    """
    days: set[int] = set()
    ends: list[int] = []
    for ticks in pieces(history, first, last):
        if len(ticks):
            ends += [int(ticks.tick[0]), int(ticks.tick[-1]) + 1]
            days.update(np.unique(ticks.tick // DAY).tolist())
    if len(days) < LEAST_DAYS or ends[-1] - ends[0] <= LEAST_DAYS * DAY - HOUR:
        return None
    return ends[0], ends[-1]


def fit(ticks: Ticks, settings: Settings) -> Model:
    """Fit a model on a history without drifts that is in memory, see `fit_span`."""
    return fit_span(ticks, int(ticks.tick[0]), int(ticks.tick[-1]) + 1, settings)


def fit_span(history: History, first: int, last: int, settings: Settings) -> Model:
    """Fit a model on a history without drifts, which is read six times, piece by piece.

    Levels come from evidence that the reference had not seen: each half of the history is judged by the other. A tenant
    that is absent from one half counts there as unseen, so a site with many new tenants gets levels that allow for it.
    Memory: 8 bytes for each tick and channel of a direction, 105 MB for two weeks and twenty tenants.

    Args:
        history: at least `LEAST_DAYS` days, see `long_enough`; only the last weeks matter much.
        first, last: its first tick and the one after its last.
        settings: the rates are those that the ticks were summed with.
    """
    layout = lay_out(pieces(history, first, last))
    middle = (first + last) // 2 // HOUR * HOUR
    halves = coarse(history, first, middle, layout), coarse(history, middle, last, layout)
    early, late = (
        learn(half, layout.among(np.unique(half.tenant).tolist()), last, since)
        for half, since in zip(halves, (first, middle), strict=True)
    )
    shocks = _together(unlike(early, halves[1]), unlike(late, halves[0]))
    early, late, reference = (
        replace(one, shock=shocks["shock"], common=shocks["common"])
        for one in (early, late, learn(Ticks.join(halves), layout, last, first))
    )
    del halves
    spans = (late, first, middle), (early, middle, last)
    allowed = {UP: 1 - FALLS, DOWN: FALLS}
    log_run = {way: log(MONTH / settings.false_alarms_per_month / part) for way, part in allowed.items()}
    watched = {}
    for way in (UP, DOWN):
        some = tuple(bank.channels(reference, way))
        levels = scale.fit(
            _out_of_sample(history, spans, some),
            np.log(bank.priors(some)),
            bank.peers(some, reference),
            noise=reference.spread_cost["cost"],
            log_run=log_run[way],
            effect=settings.minimum_effect,
            way=way,
        )
        watched[way] = Watched(some, levels)
    return Model(reference, watched, together.fit(history, first, last, reference, log_run[UP]))


def _observed(n: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Ticks outside gaps of more than ten minutes."""
    busy = np.flatnonzero(n > 0)
    last = np.maximum.accumulate(np.where(n > 0, np.arange(len(n)), -1))
    following = np.searchsorted(busy, np.arange(len(n)))
    following = np.append(busy, len(n) + 60)[following]
    return np.asarray(following - last <= 60)


def _together(one: dict[str, dict[str, Floats]], other: dict[str, dict[str, Floats]]) -> dict[str, dict[str, Floats]]:
    """Means of two looks at the same factors."""
    return {kind: {name: (part + other[kind][name]) / 2 for name, part in by.items()} for kind, by in one.items()}


def _out_of_sample(history: History, spans: Sequence[tuple[Reference, int, int]], some: tuple[Channel, ...]) -> Stretch:
    """Evidence of each span of ticks by a reference that has not seen it, without gaps; piece by piece."""
    size = spans[-1][2] - spans[0][1]
    found, gain = _singles(len(some), size), _singles(len(some), size)
    n, cost, expected, usual = np.empty((4, size))
    for reference, first, last in spans:
        layout = reference.layout
        slots = len(layout.owners)
        silence = np.zeros(slots)
        for begin, count in split(first, last, slots * (len(layout.classes) + 1)):
            frame = dense(history.between(begin, begin + count), reference, begin, count, silence)
            rows = slice(begin - spans[0][1], begin - spans[0][1] + count)
            found[rows], gain[rows] = bank.evidence(frame, reference, some)
            n[rows], cost[rows], usual[rows] = frame.n, frame.cost, frame.usual
            expected[rows] = frame.n * frame.expected
    seen = _observed(n)
    if not seen.all():
        found, gain = found.T[:, seen].T, gain.T[:, seen].T
    return Stretch(found, gain, n[seen], cost[seen], expected[seen], usual[seen])


def _singles(channels: int, ticks: int) -> Floats:
    """float[ticks, channels] of half the usual size; what is of one channel lies together."""
    some: Any = np.empty((channels, ticks), np.float32).T
    return some  # type: ignore[no-any-return]
