"""What a detector compares ticks with: a reference, and for each direction its channels and their alarm levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Final

import numpy as np

from capwatch.drift import channels as bank
from capwatch.drift import scale
from capwatch.drift.channels import DOWN, UP, Channel
from capwatch.drift.frame import Frame, dense, split
from capwatch.drift.layout import lay_out
from capwatch.drift.reference import Reference, learn, unlike
from capwatch.drift.scale import MONTH, Scale, Stretch
from capwatch.drift.ticks import DAY, Ticks
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
    """Whether a history may be fitted: at least three days from its first tick to its last, and traffic on each."""
    return (
        bool(len(ticks))
        and len(np.unique(ticks.tick // DAY)) >= LEAST_DAYS
        and bool(ticks.tick[-1] - ticks.tick[0] >= LEAST_DAYS * DAY - DAY // 24)
    )


def fit(ticks: Ticks, settings: Settings) -> Model:
    """Fit a model on a history without drifts.

    Levels come from evidence that the reference had not seen: each half of the history is judged by the other. A tenant
    that is absent from one half counts there as unseen, so a site with many new tenants gets levels that allow for it.

    Args:
        ticks: at least `LEAST_DAYS` days, see `long_enough`; only the last weeks matter much.
        settings: the rates are those that the ticks were summed with.
    """
    first, last = int(ticks.tick[0]), int(ticks.tick[-1]) + 1
    layout = lay_out(ticks)
    middle = (first + last) // 2
    halves = ticks.between(first, middle), ticks.between(middle, last)
    early, late = (learn(half, layout.among(np.unique(half.tenant).tolist()), last) for half in halves)
    shocks = _together(unlike(early, halves[1]), unlike(late, halves[0]))
    early, late, reference = (
        replace(one, shock=shocks["shock"], common=shocks["common"])
        for one in (early, late, learn(ticks, layout, last))
    )
    chosen = {way: tuple(bank.channels(reference, way)) for way in (UP, DOWN)}
    parts = [
        *_out_of_sample(halves[0], late, chosen, (first, middle)),
        *_out_of_sample(halves[1], early, chosen, (middle, last)),
    ]
    n, cost, expected, usual = (np.concatenate([part[i] for part, _ in parts]) for i in range(4))
    seen = _observed(n)
    watched = {}
    for way, some in chosen.items():
        found, gain = (np.concatenate([evidence[way][i] for _, evidence in parts])[seen] for i in range(2))
        levels = scale.fit(
            Stretch(found, gain, n[seen], cost[seen], expected[seen], usual[seen]),
            np.log(bank.priors(some)),
            bank.peers(some, reference),
            noise=reference.spread_cost["cost"],
            log_run=log(MONTH / settings.false_alarms_per_month / (1 - FALLS if way == UP else FALLS)),
            effect=settings.minimum_effect,
            way=way,
        )
        watched[way] = Watched(some, levels)
    return Model(reference, watched)


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


def _out_of_sample(
    judged: Ticks, reference: Reference, chosen: dict[int, tuple[Channel, ...]], span: tuple[int, int]
) -> list[tuple[tuple[Floats, ...], dict[int, tuple[Floats, Floats]]]]:
    """Evidence of one half by what the other has taught, piece by piece."""
    layout = reference.layout
    slots = len(layout.owners)
    silence, parts = np.zeros(slots), []
    for begin, count in split(*span, slots * (len(layout.classes) + 1)):
        frame = dense(judged.between(begin, begin + count), reference, begin, count, silence)
        found = {
            way: tuple(part.astype(np.float32) for part in bank.evidence(frame, reference, some))
            for way, some in chosen.items()
        }
        parts.append(((frame.n, frame.cost, frame.n * frame.expected, frame.usual), found))
    return parts  # type: ignore[return-value]
