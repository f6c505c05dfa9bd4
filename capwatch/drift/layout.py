"""Which tenants, classes and routes have places of their own, and which cells of the ticks lie there.

The dearest twenty tenants have a slot each, the others share `other`; who is absent from history is `unseen`. A tenant
that regularly asks for much more in some minutes of the hour has a second slot for these: what runs by the clock is no
surprise at its time, and its usual traffic stays as sharp as that of others. Routes and classes have places likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from capwatch.drift.ticks import HOUR, Ticks, added
from capwatch.record import Bools, Floats, Ints

NAMED: Final = 20
CLASSES: Final = 8
MINUTE: Final = HOUR // 60
"""Ticks of a minute."""
_CLOCK_HOURS: Final = 20
"""Hours of history from which on a job by the clock can be told from chance."""
_CLOCK_SIGMAS: Final = 8.0
"""A minute runs by the clock when its mean excess is that many standard errors (over the hours) above nothing …"""
_CLOCK_EXCESS: Final = 1.0
"""… and at least as large as what the tenant asks in a minute otherwise."""


@dataclass(frozen=True)
class Layout:
    """Slots are the named tenants in order, `other`, `unseen`, and the clocked ones' second slots."""

    tenants: tuple[int, ...]
    classes: tuple[int, ...]
    """The last place is that of all classes that have none."""
    routes: tuple[int, ...]
    """Then follow `other` and `unseen`."""
    known: tuple[int, ...]
    """Tenants that history has."""
    known_routes: tuple[int, ...]
    minutes: tuple[tuple[int, int], ...] = ()
    """(slot, minute of the hour) that runs by the clock."""

    @property
    def other(self) -> int:
        """The slot of tenants that are known and have none."""
        return len(self.tenants)

    @property
    def unseen(self) -> int:
        """The slot of tenants that are not known."""
        return len(self.tenants) + 1

    @cached_property
    def owners(self) -> Ints:
        """Whose traffic a slot is, as the first slot of that tenant: int[S]."""
        clocked = sorted({slot for slot, _ in self.minutes})
        return np.array([*range(len(self.tenants) + 2), *clocked])

    @cached_property
    def clocked(self) -> Bools:
        """Which slots run by the clock: bool[S]."""
        return np.arange(len(self.owners)) > self.unseen

    def among(self, present: Sequence[int]) -> Layout:
        """The same places, when only these tenants are known."""
        return replace(self, known=tuple(sorted(set(self.known) & set(present))))

    def slots(self, ticks: Ticks) -> Ints:
        """The slot of every cell of the ticks."""
        slot = _places(ticks.tenant, self.tenants, self.known)
        if self.minutes:
            table = np.tile(np.arange(len(self.owners))[:, None], 60)
            for one, minute in self.minutes:
                table[one, minute] = np.flatnonzero((self.owners == one) & self.clocked)[0]
            slot = table[slot, ticks.tick % HOUR // MINUTE]
        return slot

    def class_places(self, ticks: Ticks) -> Ints:
        """The class place of every cell of the ticks."""
        return _places(ticks.klass, self.classes, ())[...].clip(max=len(self.classes))

    def route_places(self, ticks: Ticks) -> Ints:
        """The route place of every cell of the ticks."""
        return _places(ticks.route, self.routes, self.known_routes)


def lay_out(pieces: Iterable[Ticks]) -> Layout:
    """Give places to the dearest tenants, classes and routes of a history, and find what runs by the clock."""
    spent: dict[str, list[tuple[Ints, Floats]]] = {"tenant": [], "klass": [], "route": []}
    minutes: list[tuple[Ints, Ints, Floats]] = []
    hours: set[int] = set()
    for ticks in pieces:
        for name, parts in spent.items():
            codes, of = np.unique(getattr(ticks, name), return_inverse=True)
            parts.append((codes, added(of, ticks["cost"], len(codes))))
        minutes.append(_by_minute(ticks))
        hours.update(np.unique(ticks.tick // HOUR).tolist())
    tenants, known = _dearest(spent["tenant"], NAMED)
    classes, _ = _dearest(spent["klass"], CLASSES)
    routes, known_routes = _dearest(spent["route"], NAMED)
    plain = Layout(tenants, classes, routes, known, known_routes)
    return replace(plain, minutes=_by_the_clock(minutes, sorted(hours), tenants))


def _dearest(parts: Sequence[tuple[Ints, Floats]], most: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dearest names, in the order of their codes, and all of them; each part has codes and what they spent."""
    names = np.concatenate([np.zeros(0, np.int64), *(some for some, _ in parts)])
    cost = np.concatenate([np.zeros(0), *(some for _, some in parts)])
    codes, of = np.unique(names, return_inverse=True)
    dearest = np.argsort(-np.bincount(of, cost, len(codes)), kind="stable")[:most]
    return tuple(sorted(codes[dearest].tolist())), tuple(codes.tolist())


def _places(names: Ints, named: Sequence[int], known: Sequence[int]) -> Ints:
    """Place of each name: those with a place, then known others, then the unknown."""
    size = max([int(names.max(initial=-1)), *named, *known, -1]) + 2
    table = np.full(size, len(named) + 1)
    table[np.array(known, np.int64) + 1] = len(named)
    # A name that has a place and is not known is unseen all the same: halves of a history are judged by each other.
    mine = [(code, i) for i, code in enumerate(named) if not known or code in set(known)]
    for code, i in mine:
        table[code + 1] = i
    return table[names + 1]


def _by_minute(ticks: Ticks) -> tuple[Ints, Ints, Floats]:
    """(minute since the epoch, tenant, requests) of the minutes in which a tenant asks for anything."""
    size = int(ticks.tenant.max(initial=-1)) + 2
    keys, of = np.unique(ticks.tick // MINUTE * size + ticks.tenant + 1, return_inverse=True)
    return keys // size, keys % size - 1, added(of, ticks["n"], len(keys))


def _by_the_clock(
    parts: Sequence[tuple[Ints, Ints, Floats]], hours: Sequence[int], tenants: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Minutes of the hour in which a tenant regularly asks for much more."""
    slots = len(tenants)
    if len(hours) < _CLOCK_HOURS or not slots:
        return ()
    counts = np.zeros((len(hours), slots, 60))
    for minute, tenant, n in parts:
        named = np.isin(tenant, tenants)
        place = np.searchsorted(hours, minute[named] // 60), np.searchsorted(tenants, tenant[named]), minute[named] % 60
        np.add.at(counts, place, n[named])
    usual = np.median(counts, axis=2, keepdims=True)
    excess = counts - np.maximum(usual, counts.mean(axis=2, keepdims=True) / 2)
    mean, error = excess.mean(axis=0), excess.std(axis=0) / np.sqrt(len(hours)) + 1e-9
    marked = (mean > _CLOCK_SIGMAS * error) & (mean > np.maximum(2.0, _CLOCK_EXCESS * usual.mean(axis=0)))
    return tuple((int(slot), int(minute)) for slot, minute in np.argwhere(marked))
