"""Evidence: for each tick and channel, how much better "it has changed like this" explains the tick than "as usual".

Every channel is the log-likelihood ratio of a simple alternative (Page 1954, Lorden 1971), summed over the requests of
a tick from the tick's sums alone. Levels are compared inside (slot, class) cells and classes inside slots, so that
neither a busy tenant nor the hour is evidence of anything; shares of slots and routes, and the total cost, see
the rest. To add a channel, add it to `channels`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.drift.frame import Frame
from capwatch.drift.reference import Reference
from capwatch.record import Floats

STEPS: Final = {
    "log_cost": (0.07, 0.2, 0.5),
    "root_cost": (0.05, 0.12, 0.3),
    "root_cost_given_tenant": (0.05, 0.12, 0.3),
    "lengths": (0.08, 0.25),
    "length": (0.08, 0.2, 0.5),
    "part": (0.15, 0.5),
    "class": (2.0, 6.0),
    "name": (2.5, 8.0),
}
"""Sizes that each family looks for: in log units, in parts of the mean, as factors of a share."""
LARGE: Final = 0.5
"""Sizes that shocks of a class hardly reach: there it does not matter that slots move together."""
MOST_SHARE: Final = 0.9
"""A share multiplied by a factor stays under this."""
LEAST_FACTOR: Final = 1.05
CLUSTER_SIGMAS: Final = 3.0
CLUSTER_HITS: Final = 1.0
COST_FAMILIES: Final = ("log_cost", "root_cost", "root_cost_given_tenant")
"""Families that see any change of cost."""
UP, DOWN = 1, -1
LENGTHS: Final = (("computed", "prompt"), ("output", "output"))
"""Families of lengths, and the effect that each of them points to."""
PRIORS: Final = {
    "log_cost": 0.15,
    "root_cost": 0.15,
    "lengths": 0.15,
    "computed": 0.1,
    "output": 0.1,
    "cache": 0.05,
    "class output": 0.04,
    "class computed": 0.04,
    "class": 0.1,
    "tenant output": 0.02,
    "tenant computed": 0.02,
    "tenant": 0.05,
    "route": 0.03,
}
"""How likely each group of channels is to be the first to see a change; more names hardly slow what is about all."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One alternative. ``kind`` says what it points to: mix, prompt, output, cache or cost."""

    family: str
    kind: str
    size: float
    direction: int
    place: int = -1
    """Of the slot, class or route that it is about; −1: all."""


def channels(reference: Reference, direction: int) -> list[Channel]:
    """The channels of one direction, in a fixed order."""
    layout = reference.layout
    found = [*_of_all(direction)]
    if len(layout.classes) > 1:
        found += _of_classes(reference, direction)
    if len(layout.tenants) > 1:
        found += _of_tenants(reference, direction)
    if len(layout.routes) > 1:
        found += [
            Channel("route", "mix", size, direction, r) for r in range(len(layout.routes) + 2) for size in STEPS["name"]
        ]
    return found


def _of_all(way: int) -> Iterator[Channel]:
    for family in COST_FAMILIES:
        yield from (Channel(family, "cost", size, way) for size in STEPS[family])
    yield from (Channel("lengths", "cost", size, way) for size in STEPS["lengths"])
    for family, kind in LENGTHS:
        yield from (Channel(family, kind, size, way) for size in STEPS["length"])
    if way == UP:  # more hits alone are no fall: prompts may have grown by as much
        yield from (Channel("cache", "cache", size, way) for size in STEPS["part"])


def _of_classes(reference: Reference, way: int) -> Iterator[Channel]:
    """Shares of the classes that are dearer than the mean (cheaper, for falls), and lengths inside each."""
    joint = reference.share[:, None] * reference.klass.mean(axis=0)
    cost = reference.level["cost"]
    by_class = (joint * cost).sum(axis=0) / np.maximum(joint.sum(axis=0), 1e-12)
    for k in range(len(reference.layout.classes)):
        if way * (by_class[k] - (joint * cost).sum()) > 0:
            yield from (Channel("class", "mix", size, way, k) for size in STEPS["class"])
        if way == UP:
            for family, kind in LENGTHS:
                yield from (Channel(f"class {family}", kind, size, way, k) for size in STEPS["part"])


def _of_tenants(reference: Reference, way: int) -> Iterator[Channel]:
    """The same of the tenants; one that is unseen may be dear or cheap."""
    layout = reference.layout
    by_slot = (reference.klass.mean(axis=0) * reference.level["cost"]).sum(axis=1)
    for s in range(len(layout.owners)):
        if s == layout.unseen or way * (by_slot[s] - reference.share @ by_slot) > 0:
            yield from (Channel("tenant", "mix", size, way, s) for size in STEPS["name"])
    if way == UP:
        for s in range(len(layout.tenants)):
            for family, kind in LENGTHS:
                yield from (Channel(f"tenant {family}", kind, size, way, s) for size in STEPS["part"][1:])


def priors(chosen: Sequence[Channel]) -> Floats:
    """Chance of each channel before anything is seen: that of its group, shared evenly inside it."""
    group = [next(name for name in PRIORS if channel.family.startswith(name)) for channel in chosen]
    total = sum(PRIORS[name] for name in set(group))
    return np.array([PRIORS[name] / total / group.count(name) for name in group])


def peers(chosen: Sequence[Channel], reference: Reference) -> list[str]:
    """Which channels are alike: those of all tenants that history has, those of all routes."""
    unseen = {"tenant": reference.layout.unseen, "route": len(reference.layout.routes) + 1}
    return [
        f"{one.family} {one.size}"
        if one.family.startswith(("tenant", "route")) and one.place != unseen.get(one.family)
        else ""
        for one in chosen
    ]


def evidence(frame: Frame, reference: Reference, chosen: Sequence[Channel]) -> tuple[Floats, Floats]:
    """(log-likelihood ratios, gains) of the ticks: float64[T, channels] each.

    The gain is the part of the change of cost, in replica-seconds, that the channel's own cause explains.
    """
    found, gain = np.empty((2, len(frame), len(chosen)))
    sources = _Sources(frame, reference)
    for i, channel in enumerate(chosen):
        found[:, i], gain[:, i] = sources.of(channel)
    return found, gain


class _Sources:
    """Computes each sum over cells once, whatever the number of channels that use it."""

    def __init__(self, frame: Frame, reference: Reference) -> None:
        self._frame, self._reference = frame, reference
        self._kept: dict[tuple[str, bool], tuple[Floats, Floats]] = {}
        self._slots = frame.sums["n"].sum(axis=2)
        self._mean = {name: self._expected(name) for name in ("log_cost", "root_cost")}
        usual = reference.level["cost"] * reference.factor[frame.cell][:, None, None]
        self._within = frame.sums["cost"] - frame.sums["n"] * usual
        self._usual = usual
        self._slot_cost = (reference.klass[frame.cell] * usual).sum(axis=2)

    def of(self, channel: Channel) -> tuple[Floats, Floats]:
        """Evidence and gain of one channel: float64[T] each."""
        family = channel.family
        if family in COST_FAMILIES:
            return self._total(channel)
        if family == "class":
            return self._class(channel)
        if family == "tenant":
            return self._tenant(channel)
        if family == "route":
            return self._route(channel)
        return self._length(channel)

    def _length(self, channel: Channel) -> tuple[Floats, Floats]:
        scope, _, name = channel.family.rpartition(" ")
        score, information = self._cells(name, alone=bool(scope) or channel.size >= LARGE)
        within = self._within
        if scope == "class":
            score, information, within = (part[:, :, channel.place] for part in (score, information, within))
        elif scope == "tenant":
            score, information, within = (part[:, channel.place] for part in (score, information, within))
        axes = tuple(range(1, score.ndim))
        delta = channel.direction * channel.size
        found = delta * score.sum(axis=axes) - delta**2 / 2 * information.sum(axis=axes)
        return found, within.sum(axis=axes)

    def _cells(self, name: str, *, alone: bool = False) -> tuple[Floats, Floats]:
        """Score and information of a shift of a log length by δ = 1 in each cell: float64[T, S, K] each.

        What slots do together counts less, unless each is taken ``alone``.
        """
        if name == "lengths":
            (score, information), (more, further) = self._cells("computed"), self._cells("output")
            return score + more, information + further
        if (name, alone) not in self._kept:
            frame, reference = self._frame, self._reference
            n = frame.sums["n"]
            column = {"computed": "log_computed", "output": "log_output", "cache": "log_ratio"}[name]
            level = reference.level[column] + reference.offset[column][frame.cell][:, None, None]
            variance = reference.spread[column] ** 2 * reference.shock[column]
            variance = variance if alone else variance * reference.common[column]
            self._kept[name, alone] = (frame.sums[column] - n * level) / variance, n / variance
        return self._kept[name, alone]

    def _expected(self, name: str) -> Floats:
        """Mean of a request in each tick, as the shares of the hour have it."""
        frame, reference = self._frame, self._reference
        mean = (frame.joint * reference.level[name]).sum(axis=(1, 2))
        if name == "log_cost":
            return np.asarray(mean + reference.offset[name][frame.cell])
        return np.asarray(mean * np.sqrt(reference.factor[frame.cell]))

    def _total(self, channel: Channel) -> tuple[Floats, Floats]:
        frame, reference = self._frame, self._reference
        way, size = channel.direction, channel.size
        gain = frame.cost - frame.n * frame.expected
        if channel.family == "log_cost":
            excess = frame.sums["log_cost"].sum(axis=(1, 2)) - frame.n * self._mean["log_cost"]
            return (way * size * excess - size**2 / 2 * frame.n) / reference.spread_cost["log_cost"] ** 2, gain
        mean, total = self._mean["root_cost"], frame.sums["root_cost"].sum(axis=(1, 2))
        usual = frame.n * mean
        if channel.family == "root_cost_given_tenant":
            root = np.sqrt(reference.factor[frame.cell])
            by_slot = (reference.klass[frame.cell] * reference.level["root_cost"]).sum(axis=2)
            usual = (self._slots * by_slot).sum(axis=1) * root
            gain = frame.cost - (self._slots * self._slot_cost).sum(axis=1)
        delta = size * mean
        return (way * delta * (total - usual) - delta**2 / 2 * frame.n) / reference.spread_cost["root_cost"] ** 2, gain

    def _class(self, channel: Channel) -> tuple[Floats, Floats]:
        """Share of a class inside every slot."""
        expected = self._reference.klass[self._frame.cell][:, :, channel.place]
        hits = self._frame.sums["n"][:, :, channel.place]
        dearer = self._usual[:, :, channel.place] - self._slot_cost
        gain = ((hits - self._slots * expected) * dearer).sum(axis=1)
        return _share(channel, hits, self._slots, expected).sum(axis=1), gain

    def _tenant(self, channel: Channel) -> tuple[Floats, Floats]:
        frame, place = self._frame, channel.place
        hits, share = self._slots[:, place], frame.share[:, place]
        gain = (hits - frame.n * share) * (self._slot_cost[:, place] - frame.expected)
        if place in (self._reference.layout.other, self._reference.layout.unseen):
            gain = frame.sums["cost"][:, place].sum(axis=1) - hits * frame.expected
        return _share(channel, hits, frame.n, share), gain

    def _route(self, channel: Channel) -> tuple[Floats, Floats]:
        frame, reference, place = self._frame, self._reference, channel.place
        hits, share = frame.route[:, place], reference.route[frame.cell, place]
        gain = frame.route_cost[:, place] - hits * frame.expected
        usual = share * (reference.route_level["cost"][place] - frame.expected)
        return _share(channel, hits, frame.n, share), gain - frame.n * usual


def _share(channel: Channel, hits: Floats, n: Floats, share: Floats) -> Floats:
    """Evidence that a share is ``size`` times what is expected.

    One client's burst is no shift: hits of one place and tick count up to three standard deviations above what is
    expected of it, and one more.
    """
    usual = n * share
    hits = np.minimum(hits, usual + CLUSTER_SIGMAS * np.sqrt(usual) + CLUSTER_HITS)
    factor = np.minimum(channel.size, MOST_SHARE / np.maximum(share, 1e-12))
    factor = np.where(factor < LEAST_FACTOR, 1.0, factor)
    # In a silence the last slot that is expected at all has everything; ln 0 would be no evidence but the end of it.
    rest = np.log1p(-np.minimum(factor * share, 1 - 1e-9)) - np.log1p(-np.minimum(share, 1 - 1e-9))
    return np.asarray(np.where(factor == 1.0, 0.0, hits * np.log(factor) + (n - hits) * rest))
