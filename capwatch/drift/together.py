"""Have the requests of most tenants become longer at once? Told against each tenant's own last two hours.

Lengths of real tenants wander by half of themselves from one quarter of a day to the next, each tenant by itself: what
is usual over weeks is so wide there that a change by a fifth of all requests is hidden in it. Over two hours most
tenants are steady. So every five minutes the last ten are compared with the two hours before, tenant by tenant, and
what counts is the change that most tenants have reached, weighted by how steady each one is: a tenant that changes by
itself moves nothing. What is new to a tenant's classes is no change of its lengths, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.drift.history import History, pieces
from capwatch.drift.reference import Reference
from capwatch.drift.ticks import HOUR, Ticks, added
from capwatch.record import Bools, Floats

BLOCK: Final = HOUR // 12
"""Ticks of five minutes."""
NOW: Final = 2
"""Blocks that are compared …"""
REACH: Final = 24
"""… with those before, all together two hours."""
LATELY: Final = 6
"""Blocks in which a change that is seen has begun."""
LEAST_NOW: Final = 10.0
LEAST_PAST: Final = 30.0
"""Requests without which a tenant tells nothing."""
LEAST_TENANTS: Final = 4
MOST_WEIGHT: Final = 0.25
"""A tenant has no more than that part of the say."""
MOST: Final = 2 / 3
"""Part of the say that must have moved as far as the change that is told."""
LEAST: Final = 0.1
"""Change of log length under which this is left to channels that see more requests."""
TAIL: Final = 0.1
"""The tail is what the highest tenth of the half hours is made of, as for the channels."""
RARE: Final = 8.0
"""Each of the two lengths has one eighth of the allowed false alarms."""
KINDS: Final = ("computed", "output")
COLUMNS: Final = ("score computed", "information computed", "score output", "information output", "n", *KINDS)
"""What is summed up by slot: of each log length the sum of what is above the usual and the number of requests, both
over the variance; requests; tokens."""


@dataclass(frozen=True, slots=True)
class Calm:
    """How steady the tenants are. S slots."""

    wander: Floats
    """float64[2, S]: variance of the change of a tenant's mean log length beyond chance, by `KINDS`."""
    level: Floats
    """float64[2]: change of most tenants at which it is raised."""


def fit(history: History, first: int, last: int, reference: Reference, log_run: float) -> Calm:
    """Learn from a history how steady tenants are over two hours.

    Args:
        history: without drifts.
        first, last: its first tick and the one after its last.
        reference: learnt from it.
        log_run: ln of the half hours between false alarms.
    """
    begin = first // BLOCK
    sums = np.zeros(((last - 1) // BLOCK + 1 - begin, len(COLUMNS), len(reference.layout.owners)))
    for piece in pieces(history, first, last):
        if len(piece):
            low, high = int(piece.tick[0]) // BLOCK, int(piece.tick[-1]) // BLOCK + 1
            sums[low - begin : high - begin] += _sums(piece, reference, low, high - low)
    change, noise = _changes(*_now_and_past(sums))
    told = np.isfinite(change)
    excess = np.where(told, change**2 - noise, 0.0).sum(axis=0) / np.maximum(1, told.sum(axis=0))
    calm = Calm(np.where(told.any(axis=0), np.maximum(1e-4, excess), 1.0), np.full(len(KINDS), LEAST))
    maxima = _of_half_hours(_common(change, noise, calm))
    start = np.quantile(maxima, 1 - TAIL, axis=0) if len(maxima) else np.zeros(len(KINDS))
    above = np.maximum(0.0, maxima - start)
    slope = above.sum(axis=0) / np.maximum(1, (above > 0).sum(axis=0))
    return Calm(calm.wander, np.maximum(LEAST, start + slope * (log_run + np.log(TAIL) + np.log(RARE))))


@dataclass(frozen=True, slots=True)
class Price:
    """What tokens cost, and what change of cost matters."""

    prefill_rate: float
    decode_rate: float
    least: float
    """Relative change of the cost per request under which nothing is raised."""


def risen(
    ticks: Ticks, reference: Reference, calm: Calm, price: Price, *, span: tuple[int, int], anew: int
) -> list[int]:
    """Ticks first < tick ≤ last before which most tenants' requests have become longer, and dearer by that.

    Args:
        ticks: those of the span and of the two hours before it.
        span: (first, last).
        anew: tick before which nothing is compared.
    """
    first, last = span
    begin, end = first // BLOCK - REACH + 1, last // BLOCK
    if end * BLOCK <= first:
        return []
    known = ticks.between(max(anew, begin * BLOCK), end * BLOCK)
    now, past = _now_and_past(_sums(known, reference, begin, end - begin))
    change, noise = _changes(now, past)
    common = _common(change, noise, calm)
    raised = (common > calm.level) & (common > 0)
    hit = raised.any(axis=1) & _dearer(now, past, np.where(raised, common, 0.0), price)
    rows = np.flatnonzero(hit) + begin + 1
    return [tick for tick in (rows * BLOCK).tolist() if tick > first]


def began(ticks: Ticks, reference: Reference, calm: Calm, now: int) -> int:
    """The tick with which a change that was seen before tick ``now`` most probably began, half an hour ago at most.

    From there on the evidence for the change, by the say of each tenant, is the most.
    """
    first, lately = now - REACH * BLOCK, LATELY * BLOCK
    sums = _sums(ticks.between(first, now), reference, first, REACH * BLOCK, 1)
    past, recent = sums[:-lately].sum(axis=0), sums[-NOW * BLOCK :].sum(axis=0)
    change, noise = _changes(recent, past)
    common = np.maximum(0.0, _common(change, noise, calm))[:, None]
    n = COLUMNS.index("n")
    score, information = sums[-lately:, 0:n:2], sums[-lately:, 1:n:2]
    told = np.isfinite(change)
    level = np.divide(past[0:n:2], past[1:n:2], out=np.zeros_like(change), where=told)
    say = np.divide(_weights(change, noise, calm), recent[1:n:2], out=np.zeros_like(change), where=told)
    evidence = say * common * (score - (level + common / 2) * information)
    after = evidence.sum(axis=(1, 2))[::-1].cumsum()[::-1]
    return now - lately + int(after.argmax())


def _sums(ticks: Ticks, reference: Reference, first: int, blocks: int, size: int = BLOCK) -> Floats:
    """float64[blocks, COLUMNS, S]: by blocks of ``size`` ticks, ``first`` is the first of them."""
    layout = reference.layout
    slot, klass, n = layout.slots(ticks), layout.class_places(ticks), ticks["n"]
    place = (ticks.tick // size - first) * len(layout.owners) + slot
    values: list[Floats] = []
    for kind in KINDS:
        name = f"log_{kind}"
        variance = reference.spread[name][slot, klass] ** 2
        values += [(ticks[name] - n * reference.level[name][slot, klass]) / variance, n / variance]
    values += [n, *(ticks[kind] for kind in KINDS)]
    return np.stack([added(place, value, blocks, len(layout.owners)) for value in values], axis=1)


def _now_and_past(sums: Floats) -> tuple[Floats, Floats]:
    """The last blocks as each block ends, and those before: float64[blocks, COLUMNS, S] each."""
    total = np.concatenate([np.zeros((1, *sums.shape[1:])), np.cumsum(sums, axis=0)])
    end = np.arange(1, len(sums) + 1)
    recent = np.maximum(0, end - NOW)
    return total[end] - total[recent], total[recent] - total[np.maximum(0, end - REACH)]


def _changes(now: Floats, past: Floats) -> tuple[Floats, Floats]:
    """Change of each slot's mean log length, NaN where it tells nothing, and chance's variance: float64[…, 2, S]."""
    n = COLUMNS.index("n")
    told = (now[..., n : n + 1, :] >= LEAST_NOW) & (past[..., n : n + 1, :] >= LEAST_PAST)
    score, information = slice(0, n, 2), slice(1, n, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = now[..., score, :] / now[..., information, :] - past[..., score, :] / past[..., information, :]
        noise = 1 / now[..., information, :] + 1 / past[..., information, :]
    return np.where(told, change, np.nan), np.where(told, noise, np.inf)


def _weights(change: Floats, noise: Floats, calm: Calm) -> Floats:
    """The say of each slot: float64[…, 2, S]."""
    weight = np.where(np.isfinite(change), 1 / (noise + calm.wander), 0.0)
    for _ in range(8):  # each time what is cut lowers the sum; it settles quickly
        weight = np.minimum(weight, MOST_WEIGHT * weight.sum(axis=-1, keepdims=True))
    return weight


def _common(change: Floats, noise: Floats, calm: Calm) -> Floats:
    """The change that most tenants have reached, 0 where too few tell anything: float64[…, 2]."""
    weight = _weights(change, noise, calm)
    order = np.argsort(np.where(weight > 0, change, np.inf), axis=-1)
    said = np.cumsum(np.take_along_axis(weight, order, axis=-1), axis=-1)
    rank = (said < (1 - MOST) * said[..., -1:]).sum(axis=-1, keepdims=True).clip(max=change.shape[-1] - 1)
    reached = np.take_along_axis(change, np.take_along_axis(order, rank, axis=-1), axis=-1)[..., 0]
    enough = (weight > 0).sum(axis=-1) >= LEAST_TENANTS
    return np.where(enough, np.nan_to_num(reached), 0.0)


def _dearer(now: Floats, past: Floats, common: Floats, price: Price) -> Bools:
    """Where requests cost more by the least change by this alone, and have not become cheaper all the same."""
    n, rates = COLUMNS.index("n"), np.array([price.prefill_rate, price.decode_rate])[:, None]
    parts = (now[..., n + 1 :, :] / rates).sum(axis=-1)
    cost, before = ((one[..., n + 1 :, :] / rates).sum(axis=-2) for one in (now, past))
    told = past[..., n, :] >= LEAST_PAST
    usual = np.divide(before, past[..., n, :], out=np.zeros_like(before), where=told) * now[..., n, :]
    by_it = (parts * -np.expm1(-common)).sum(axis=-1)
    alone = by_it > price.least * (parts.sum(axis=-1) - by_it)
    return np.asarray(alone & ((cost * told).sum(axis=-1) > usual.sum(axis=-1)))


def _of_half_hours(common: Floats) -> Floats:
    size = HOUR // 2 // BLOCK
    whole = len(common) // size * size
    return np.asarray(common[:whole].reshape(-1, size, len(KINDS)).max(axis=1))
