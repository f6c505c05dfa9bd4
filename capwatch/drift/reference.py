"""What is usual: who asks how much at which hour, for which classes, how long and how dear; learnt from past ticks.

A *slot* is a tenant of the layout, `other`, `unseen` (absent from history), or the part of a tenant that runs by the
clock: minutes of the hour in which it regularly asks for much more are a slot of their own, so that hourly jobs are no
surprise. Levels are those of (slot, class) cells; shares of slots follow the hour of the day, working days and weekends
apart. Everything is shrunk towards what is known more surely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from capwatch.drift.layout import Layout
from capwatch.drift.ticks import HOUR, TICK_S, Ticks, added
from capwatch.record import Bools, Floats, Ints

HALF_LIFE_S: Final = 14 * 86_400.0
CELLS: Final = 168
"""Hours of the week, from Monday 00:00 UTC on."""
_KIND: Final = np.where(np.arange(CELLS) // 24 >= 5, 24, 0) + np.arange(CELLS) % 24
"""Hours of the day on working days, then on weekends: what the hours of the week are pooled to."""
_SURE: Final = 2.0
"""Standard deviations from which on an hour of the week counts as different from its kind."""
SHARE_PRIOR: Final = 200.0
"""Pseudo-requests that pull the shares of an hour towards those of all hours."""
SLOT_FLOOR: Final = 0.002
"""Share that every slot has in that pull, so that a slot never seen in an hour is rare and not impossible."""
CLASS_PRIOR: Final = 50.0
LEVEL_PRIOR: Final = 20.0
SPREAD_PRIOR: Final = 200.0
SHOCK_PRIOR: Final = 1000.0
LEAST_SD: Final = 0.05
LEVELS: Final = ("log_computed", "log_output", "log_cost", "log_ratio")
"""What has a level and a spread in every cell."""
MEANS: Final = ("prompt", "computed", "output", "cost", "root_cost")


@dataclass(frozen=True, slots=True)
class Reference:
    """Levels of one pool. S slots, K classes, R routes."""

    layout: Layout
    rate: Floats
    """float64[168, S]: requests per tick; 1 for the slots that run by the clock."""
    clock: Floats
    """float64[360, S]: factor of the rate by tick of the hour."""
    share: Floats
    """float64[S]: of all requests."""
    klass: Floats
    """float64[168, S, K]: share of each class in a slot's requests."""
    route: Floats
    """float64[168, R]."""
    route_level: dict[str, Floats]
    """float64[R]: mean of `prompt`, `computed`, `output` and `cost`."""
    level: dict[str, Floats]
    """float64[S, K]: mean of each of `LEVELS` and `MEANS`."""
    spread: dict[str, Floats]
    """float64[S, K]: standard deviation of each of `LEVELS`."""
    offset: dict[str, Floats]
    """float64[168]: what the hour adds to each of `LEVELS`."""
    factor: Floats
    """float64[168]: cost of an hour over the cost that its slots and classes explain."""
    shock: dict[str, Floats]
    """float64[S, K]: by how much sums of half an hour vary more than independent requests would, at least 1."""
    common: dict[str, Floats]
    """float64[K]: by how much more the slots of a class move together than on their own, at least 1."""
    wait: Floats
    """float64[168, K]: mean wait in s; NaN where none is told."""
    spread_cost: dict[str, float]
    """Standard deviation of `log_cost`, `root_cost` and `cost` over all requests."""

    def rates(self, tick: Ints, present: Bools) -> Floats:
        """Expected requests of each slot in each tick, 0 for slots that are not present: float64[T, S]."""
        return np.where(present, self.rate[cell(tick)] * self.clock[tick % HOUR], 0.0)


def cell(tick: Ints) -> Ints:
    """The hour of the week of each tick; the epoch began on a Thursday."""
    return (tick // HOUR + 3 * 24) % CELLS


def _pooled(by_cell: Floats) -> Floats:
    """Sums over the hours of the same kind, for each hour of the week."""
    kinds = np.zeros((48, *by_cell.shape[1:]))
    np.add.at(kinds, _KIND, by_cell)
    return np.asarray(kinds[_KIND])


def _peculiar(counts: Floats, expected: Floats) -> Floats:
    """Factors by which hours of the week surely differ from their kind: 1 where the difference may be chance.

    Args:
        counts, expected: float64[168, …].
    """
    ratio = np.log((counts + SHARE_PRIOR / 10) / (expected + SHARE_PRIOR / 10))
    noise = _SURE * 1.4826 * np.median(np.abs(ratio), axis=0) + 0.05
    return np.asarray(np.exp(ratio * np.maximum(0.0, 1 - (noise / np.maximum(np.abs(ratio), 1e-9)) ** 2)))


def weights(hours: Ints, now: int) -> Floats:
    """How much the requests of a half hour count: half for each two weeks of age."""
    return np.asarray(0.5 ** ((now - hours // (HOUR // 2) * (HOUR // 2)) * TICK_S / HALF_LIFE_S))


def learn(ticks: Ticks, layout: Layout, now: int, since: int | None = None) -> Reference:
    """Learn the levels from a history.

    Args:
        ticks: the history; cells of tenants that the layout does not know are left out.
        layout: which tenants, classes and routes have places.
        now: the tick as seen from which older requests count less; the history ends there or before.
        since: where the history begins, if that is not the first tick: sums of half hours begin before what they hold.
    """
    slots, classes = len(layout.owners), len(layout.classes) + 1
    slot, klass, hour = layout.slots(ticks), layout.class_places(ticks), cell(ticks.tick)
    weight = weights(ticks.tick, now) * (slot != layout.unseen)
    place = (hour * slots + slot) * classes + klass
    by_cell = {
        name: added(place, weight * ticks[name], CELLS, slots, classes)
        for name in ("n", *LEVELS, *MEANS, *(f"{name}2" for name in LEVELS), "cost2")
    }
    total = {name: sums.sum(axis=0) for name, sums in by_cell.items()}
    level, spread = _levels(total)
    shocks = _shocks(ticks, layout, level, spread)
    return Reference(
        layout=layout,
        **_rates(ticks, layout, weight, slot=slot, counts=by_cell["n"].sum(axis=2), span=(since, now)),
        share=total["n"].sum(axis=1) / max(1.0, total["n"].sum()),
        klass=_class_shares(by_cell["n"], layout.clocked),
        **_routes(ticks, layout, weight, hour),
        level=level,
        spread=spread,
        shock=shocks["shock"],
        common=shocks["common"],
        offset={name: _offset(by_cell["n"], by_cell[name], level[name]) for name in LEVELS},
        factor=_factor(by_cell["n"], by_cell["cost"], level["cost"]),
        wait=_waits(ticks, weight, hour, klass, classes),
        spread_cost={
            name: _sd(total["n"].sum(), total[name].sum(), total[squares].sum())
            for name, squares in (("log_cost", "log_cost2"), ("root_cost", "cost"), ("cost", "cost2"))
        },
    )


def _lasting(ticks: Ticks, since: int | None, now: int) -> tuple[Ints, Floats]:
    """The half hours that a history has, and the weight of the ticks that it has of each; only its ends cut one."""
    half = HOUR // 2
    halves = np.unique(ticks.tick // half) * half
    first = int(ticks.tick[0]) if since is None and len(ticks) else since or 0
    whole = np.minimum(halves + half, now) - np.maximum(halves, first)
    return halves, weights(halves, now) * np.clip(whole, 0, half)


def _rates(
    ticks: Ticks, layout: Layout, weight: Floats, *, slot: Ints, counts: Floats, span: tuple[int | None, int]
) -> dict[str, Any]:
    """Requests per tick by hour for usual slots, by tick of the hour for clocked ones."""
    halves, lasting = _lasting(ticks, *span)
    ticks_of = added(cell(halves), lasting, CELLS)
    clocked = layout.clocked
    alone = np.where(clocked, 0.0, counts)
    free, lasting_of = _pooled(alone), _pooled(ticks_of)
    total, overall = free.sum(axis=1, keepdims=True), free.sum(axis=0) / max(1.0, free.sum())
    floor = np.where(clocked, 0.0, SLOT_FLOOR)
    share = (free + SHARE_PRIOR * (overall + floor)) / (total + SHARE_PRIOR * (1 + floor.sum()))
    usual = alone.sum() / max(1.0, ticks_of.sum())
    volume = np.where(lasting_of > 0, total[:, 0] / np.maximum(1.0, lasting_of), usual)
    rate = share * np.maximum(volume, 1e-9)[:, None]
    rate *= (
        np.where((alone > 0) | (overall > 0), _peculiar(alone, rate * ticks_of[:, None]), 1.0)
        if len(halves) > CELLS
        else 1.0
    )
    # Minutes that run by the clock belong to another slot: the usual one has nothing there, and more elsewhere.
    clock = np.ones((HOUR, len(clocked)))
    for one, minute in layout.minutes:
        clock[minute * HOUR // 60 : (minute + 1) * HOUR // 60, one] = 0.0
    clock[:, ~clocked] /= np.maximum(1 / 60, clock[:, ~clocked].mean(axis=0))
    if clocked.any():
        place = (ticks.tick % HOUR) * len(clocked) + slot
        by_clock = added(place, weight * ticks["n"], HOUR, len(clocked))
        clock[:, clocked] = by_clock[:, clocked] / (lasting.sum() / HOUR)
    return {"rate": np.where(clocked, 1.0, rate), "clock": clock}


def _class_shares(counts: Floats, clocked: Bools) -> Floats:
    """Shares of the classes by hour and slot: those of the slot, times what the hour does to all slots.

    In the minutes of a job there is more or less of its tenant's usual traffic beside it, so the hour is its own there.
    """
    total = counts.sum(axis=0)
    overall = (total.sum(axis=0) + 0.2) / (total.sum() + 0.2 * total.shape[1])
    slot = (total + CLASS_PRIOR * overall) / (total.sum(axis=1, keepdims=True) + CLASS_PRIOR)
    hourly, explained = counts.sum(axis=1), counts.sum(axis=2) @ slot
    factor = (_pooled(hourly) + SHARE_PRIOR * overall) / (_pooled(explained) + SHARE_PRIOR * overall)
    factor *= _peculiar(hourly, explained * factor)
    share = slot * factor[:, None, :]
    jobs = _pooled(counts[:, clocked])
    share[:, clocked] = jobs + CLASS_PRIOR * slot[clocked]
    return np.asarray(share / share.sum(axis=2, keepdims=True))


def _routes(ticks: Ticks, layout: Layout, weight: Floats, hour: Ints) -> dict[str, Any]:
    """Shares of the routes by hour, and their mean costs."""
    routes = len(layout.routes) + 2
    place = layout.route_places(ticks)
    counts = added(hour * routes + place, weight * ticks["n"], CELLS, routes)
    counts = _pooled(counts)
    overall = counts.sum(axis=0) / max(1.0, counts.sum()) + SLOT_FLOOR
    share = (counts + SHARE_PRIOR * overall) / (counts.sum(axis=1, keepdims=True) + SHARE_PRIOR * overall.sum())
    n = added(place, weight * ticks["n"], routes)
    level = {}
    for name in ("prompt", "computed", "output", "cost"):
        sums = added(place, weight * ticks[name], routes)
        level[name] = (sums + LEVEL_PRIOR * sums.sum() / max(1e-9, n.sum())) / (n + LEVEL_PRIOR)
    return {"route": share, "route_level": level}


def _waits(ticks: Ticks, weight: Floats, hour: Ints, klass: Ints, classes: int) -> Floats:
    """Mean waits by hour and class, shrunk to those of the class; NaN where none is told."""
    place = hour * classes + klass
    n, sums = (added(place, weight * ticks[name], CELLS, classes) for name in ("waited", "wait"))
    with np.errstate(invalid="ignore", divide="ignore"):
        usual = sums.sum(axis=0) / n.sum(axis=0)
        return np.asarray((_pooled(sums) + LEVEL_PRIOR * usual) / (_pooled(n) + LEVEL_PRIOR))


def unlike(reference: Reference, judge: Ticks) -> dict[str, dict[str, Floats]]:
    """`shock` and `common` of a reference as ticks show them that it has not learnt: they may have moved away."""
    return _shocks(judge, reference.layout, reference.level, reference.spread)


def _shocks(
    ticks: Ticks, layout: Layout, level: dict[str, Floats], spread: dict[str, Floats]
) -> dict[str, dict[str, Floats]]:
    """How much more sums of half an hour vary than those of independent requests.

    Requests that come together share what they are about, so three times as many say less than three times as much.
    """
    shape = level["cost"].shape
    place = layout.slots(ticks) * shape[1] + layout.class_places(ticks)
    block = ticks.tick // (HOUR // 2)
    _, block = np.unique(block, return_inverse=True)
    blocks = int(block.max(initial=0)) + 1
    at = block * shape[0] * shape[1] + place
    n = added(at, ticks["n"], blocks, *shape)
    shock, common = {}, {}
    for name in LEVELS:
        sums = added(at, ticks[name], *n.shape)
        squares = ((sums - n * level[name]) / spread[name]) ** 2
        everyone = (squares.sum() + SHOCK_PRIOR) / (n.sum() + SHOCK_PRIOR)
        of_class = (squares.sum(axis=(0, 1)) + SHOCK_PRIOR * everyone) / (n.sum(axis=(0, 1)) + SHOCK_PRIOR)
        shock[name] = np.maximum(1.0, (squares.sum(axis=0) + SHOCK_PRIOR * of_class) / (n.sum(axis=0) + SHOCK_PRIOR))
        variance = spread[name] ** 2 * shock[name]
        scores, information = ((sums - n * level[name]) / variance).sum(axis=1), (n / variance).sum(axis=(0, 1))
        common[name] = np.maximum(1.0, (scores**2).sum(axis=0) / np.maximum(information, 1e-9))
    return {"shock": shock, "common": common}


def _levels(total: dict[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Means and standard deviations by slot and class, shrunk to the class, and that to all."""
    n = total["n"]
    of_class, of_all = n.sum(axis=0), max(1.0, n.sum())
    level, spread = {}, {}
    for name in (*LEVELS, *MEANS):
        everyone = total[name].sum() / of_all
        klass = (total[name].sum(axis=0) + LEVEL_PRIOR * everyone) / (of_class + LEVEL_PRIOR)
        level[name] = (total[name] + LEVEL_PRIOR * klass) / (n + LEVEL_PRIOR)
    for name in LEVELS:
        within = np.maximum(0.0, total[f"{name}2"] - total[name] ** 2 / np.maximum(n, 1e-9))
        everyone = within.sum() / of_all
        klass = (within.sum(axis=0) + SPREAD_PRIOR * everyone) / (of_class + SPREAD_PRIOR)
        variance = (within + SPREAD_PRIOR * klass) / (n + SPREAD_PRIOR)
        spread[name] = np.maximum(LEAST_SD, np.sqrt(variance))
    return level, spread


def _offset(counts: Floats, sums: Floats, level: Floats) -> Floats:
    """What each hour adds to a level, shrunk to nothing."""
    excess, n = (sums - counts * level).sum(axis=(1, 2)), counts.sum(axis=(1, 2))
    return np.asarray(_pooled(excess) / (_pooled(n) + 5 * SHARE_PRIOR))


def _factor(counts: Floats, cost: Floats, level: Floats) -> Floats:
    prior = SHARE_PRIOR * cost.sum() / max(1.0, counts.sum()) + 1e-12
    spent, usual = cost.sum(axis=(1, 2)), (counts * level).sum(axis=(1, 2))
    return np.asarray((_pooled(spent) + prior) / (_pooled(usual) + prior))


def _sd(n: float, total: float, squares: float) -> float:
    n = max(1.0, n)
    return float(max(LEAST_SD * abs(total / n), 1e-6, np.sqrt(max(0.0, squares / n - (total / n) ** 2))))
