"""A drift that was accepted: the time before it, told again as if the new mix had always held.

What the drift surely changed is moved in the old ticks: how often each slot and class asks, how long its prompts and
answers are, and who is new. All else (the hours of the day and of the week, who wanders how much, jobs by the clock)
stays as history has it, so that a detector is armed again from an hour or less of the new mix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from capwatch.drift.frame import Frame, dense, split
from capwatch.drift.history import History, coarse, pieces
from capwatch.drift.layout import Layout, lay_out
from capwatch.drift.model import Settings
from capwatch.drift.reference import Reference, learn
from capwatch.drift.ticks import COLUMN, HOUR, Ticks
from capwatch.record import Bools, Floats, Ints

UNSURE: Final = HOUR // 6
"""Ticks before the change point, an estimate, that are no time before: a newcomer may be among them."""
LEAST: Final = 300.0
"""Requests since the change point without which nothing is known of the new mix."""
SURE: Final = 2.0
"""Standard deviations of chance that a change exceeds."""
WANDER: Final = 0.25
"""By how much the log of a share wanders from hour to hour where nothing has changed; over longer spans less."""
PRIOR: Final = 1.0
"""Pseudo-requests of a share: no logarithm of nothing."""
LEFT: Final = 0.05
"""Least part that is left of what did not surely change."""
Sums = tuple[Floats, ...]
"""Of each slot and class, or of each class; the last one is how much they weigh."""
LENGTHS: Final = (("computed", "log_computed"), ("output", "log_output"), ("ratio", "log_ratio"))


@dataclass(frozen=True, slots=True)
class Shift:
    """What a change has made of slots and classes: S slots, K classes."""

    at: int
    """First tick of the new mix."""
    reference: Reference
    """What was usual before."""
    often: Floats
    """float64[S, K]: factor of the requests."""
    longer: dict[str, Floats]
    """float64[S, K]: what is added to the log of computed tokens, output and their ratio to the prompt."""
    strangers: Ticks
    """Cells of names that the time before does not have …"""
    span: tuple[int, int]
    """… in these ticks (first, last)."""
    dilution: float
    """Usual requests of these ticks over those that there were."""
    settings: Settings


@dataclass(frozen=True, slots=True)
class Rebased:
    """A history whose time before a change is told as if the change had always been."""

    history: History
    shift: Shift

    def between(self, first: int, last: int) -> Ticks:
        """See `History`."""
        ticks = self.history.between(first, last)
        old = ticks.between(first, self.shift.at)
        return Ticks.join([_moved(old, self.shift), ticks.between(self.shift.at, last)]) if len(old) else ticks


def shift(history: History, first: int, at: int, last: int, settings: Settings) -> Shift | None:
    """What has changed from tick ``at`` on.

    Args:
        history: from tick ``first`` on, read twice.
        first, at, last: the time before, and the ticks that show the new mix.
        settings: the rates are those that the ticks were summed with.

    Returns:
        The change; None where there are too few requests on either side to tell.
    """
    layout = lay_out(pieces(history, first, at - UNSURE))
    before = coarse(history, first, at - UNSURE, layout)
    if before["n"].sum() < LEAST:
        return None
    reference = learn(before, layout, at, first)
    size = len(layout.owners) * (len(layout.classes) + 1)
    silence, seen, strange = np.zeros(len(layout.owners)), [], []
    usual = 0.0
    for begin, count in split(at, last, size):
        ticks = history.between(begin, begin + count)
        new = _strange(ticks, layout)
        strange.append(ticks.take(new))
        frame = dense(ticks.take(~new), reference, begin, count, silence)
        seen.append(_seen(frame, reference))
        usual += float(frame.usual.sum())
    strangers = Ticks.join(strange)
    total = {name: np.sum([one[name] for one in seen], axis=0) for name in seen[0]}
    requests = float(total["n"].sum() + strangers["n"].sum())
    if requests < LEAST:
        return None
    return Shift(
        at=at,
        reference=reference,
        often=_often(total["n"], total["expected"], last - at) * (total["n"].sum() / requests),
        longer={name: _longer(total["n"], total[name], total[f"{name}2"]) for name, _ in LENGTHS},
        strangers=strangers,
        span=(at, last),
        dilution=usual / requests,
        settings=settings,
    )


def _strange(ticks: Ticks, layout: Layout) -> Bools:
    """Cells of a tenant, route or class that the layout does not know."""
    known = np.isin(ticks.tenant, layout.known) & np.isin(ticks.route, layout.known_routes)
    named = layout.class_places(ticks) < len(layout.classes)
    return np.asarray(~(known & (named | (len(layout.classes) >= 8))))


def _seen(frame: Frame, reference: Reference) -> dict[str, Floats]:
    """Sums over ticks by slot and class: requests, those expected, excess of log lengths and its variance."""
    found = {"n": frame.sums["n"].sum(axis=0), "expected": np.einsum("t,tsk->sk", frame.n, frame.joint)}
    for name, column in LENGTHS:
        level = reference.level[column] + reference.offset[column][frame.cell][:, None, None]
        found[name] = (frame.sums[column] - frame.sums["n"] * level).sum(axis=0)
        variance = reference.spread[column] ** 2 * reference.shock[column] * reference.common[column]
        found[f"{name}2"] = found["n"] * variance
    return found


def _changes(change: Callable[[Sums], Floats], noise: Callable[[Sums], Floats], sums: Sums) -> Floats:
    """What surely changed: each cell that did by itself, the others as their class: float64[S, K].

    That is as all cells of the class where most of it surely changed, and else as those others together: where one
    tenant has changed, the rest of the class has not.
    """

    def sure(some: Sums) -> Floats:
        found = change(some)
        return np.where(np.abs(found) > SURE * noise(some), found, 0.0)

    own = sure(sums)
    others = own == 0.0
    weight = sums[-1]
    mostly = np.where(others, 0.0, weight).sum(axis=0) > 0.5 * weight.sum(axis=0)
    whole = sure(tuple(part.sum(axis=0) for part in sums))
    rest = sure(tuple(np.where(others, part, 0.0).sum(axis=0) for part in sums))
    return np.where(others, np.where(mostly, whole, rest), own)


def _often(n: Floats, expected: Floats, ticks: int) -> Floats:
    """Factors of the requests of slots and classes; what did not surely change shares the rest."""
    wander = WANDER**2 * min(1.0, HOUR / ticks)
    change = _changes(
        lambda sums: np.log((sums[0] + PRIOR) / (sums[1] + PRIOR)),
        lambda sums: np.sqrt(wander + 1 / (sums[1] + PRIOR)),
        (n, expected),
    )
    sure, factor = change != 0.0, np.exp(change)
    left = expected.sum() - (factor * expected)[sure].sum()
    return np.where(sure, factor, max(LEFT, left / max(1e-9, expected[~sure].sum())))


def _longer(n: Floats, excess: Floats, variance: Floats) -> Floats:
    """By how much logs have moved, from sums of their excess and its variance."""
    return _changes(
        lambda sums: np.asarray(sums[0] / np.maximum(sums[2], 1e-9)),
        lambda sums: np.asarray(np.sqrt(sums[1]) / np.maximum(sums[2], 1e-9)),
        (excess, variance, n),
    )


def _moved(old: Ticks, change: Shift) -> Ticks:
    """Old ticks as if the change had been there."""
    layout = change.reference.layout
    place = layout.slots(old), layout.class_places(old)
    n = old["n"]
    by = {name: part[place] for name, part in change.longer.items()}
    grown = {"computed": by["computed"], "prompt": by["computed"] - by["ratio"], "output": by["output"]}
    sums = old.sums.copy()
    for name, log in grown.items():
        sums[:, COLUMN[name]] *= np.exp(log)
    cost = sums[:, COLUMN["computed"]] / change.settings.prefill_rate
    cost = cost + sums[:, COLUMN["output"]] / change.settings.decode_rate
    by["cost"] = np.log(cost / old["cost"])
    for name in ("computed", "output", "ratio", "cost"):
        # Σ(x + d)² = Σx² + 2dΣx + nd²
        x, more = f"log_{name}", by[name]
        sums[:, COLUMN[f"{x}2"]] += 2 * more * old[x] + n * more**2
        sums[:, COLUMN[x]] += n * more
    sums[:, COLUMN["cost"]] = cost
    sums[:, COLUMN["root_cost"]] *= np.exp(by["cost"] / 2)
    sums[:, COLUMN["cost2"]] *= np.exp(2 * by["cost"])
    moved = replace(old, sums=sums * change.often[place][:, None])
    return Ticks.merge([moved, _visited(np.unique(old.tick), change)])


def _visited(ticks: Ints, change: Shift) -> Ticks:
    """The strangers in old ticks: each gets those of some tick of the new mix, by what its hour usually brings."""
    first, last = change.span
    source = first + ticks * 2_654_435_761 % (1 << 32) % (last - first)  # mixed evenly, and the same every time
    begin, end = (np.searchsorted(change.strangers.tick, source, side) for side in ("left", "right"))
    count = end - begin
    of = np.repeat(np.arange(len(ticks)), count)
    index = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)
    here, there = (_volume(change.reference, some) for some in (ticks, source))
    factor = (here / there)[of] * change.dilution
    cells = change.strangers.take(index)
    return replace(cells, tick=ticks[of], sums=cells.sums * factor[:, None])


def _volume(reference: Reference, ticks: Ints) -> Floats:
    """Requests that each tick usually brings."""
    slots = np.ones((len(ticks), len(reference.layout.owners)), np.bool_)
    return np.asarray(np.maximum(1e-9, reference.rates(ticks, slots).sum(axis=1)))
