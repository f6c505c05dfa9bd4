"""Findings: what the watchers say of each pool, latched. One finding for a cause, until it is over or has become usual.

It follows the table of minutes, so it is as durable as the totals, and the same minutes give the same findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from capwatch.ledger import Sums
from capwatch.minutes.past import BY_TENANT, KEPT, Past
from capwatch.minutes.table import COLUMNS, MINUTES
from capwatch.minutes.watcher import Change, Watcher, Who

USUAL: Final = 24 * 60
"""Minutes after which what has changed is what is usual."""
SILENT: Final = 15
"""Minutes without any traffic after which nothing is said of a pool."""
ENDED: Final = 50
"""Findings of the past that are kept."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one watcher has found in one pool."""

    pool: int
    """Id of its name."""
    watch: str
    change: Change
    now: float
    """The value of the last look."""
    raised: int
    """Minute at whose end it was found."""
    until: int | None = None
    """Minute at whose end it was over."""


@dataclass(slots=True)
class _State:
    """One watcher of one pool."""

    told: tuple[float, float] | None = None
    """Usual and present value, as last told."""
    held: int = 0
    """Looks in a row that found a change."""
    back: int = 0
    """Looks in a row that found it over."""
    finding: Finding | None = None


@dataclass(slots=True)
class _Pool:
    past: Past
    states: dict[str, _State] = field(default_factory=dict)


class Findings:
    """A follower of the table of minutes. Plain values: `save` and `load`."""

    name = "findings"
    table = MINUTES.name

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = {one.name: one for one in watchers}
        self.last = 0
        """The last minute that has closed."""
        self.ended: list[Finding] = []
        self._pools: dict[int, _Pool] = {}
        self._fresh: list[Finding] = []

    def close(self, minute: int, sums: Sums) -> None:
        """Take a minute; one that was taken already is too late."""
        if minute <= self.last:
            return
        pools, tenants = MINUTES.unpack(sums.keys)
        for number in np.unique(pools).tolist():
            mine = pools == number
            pool = self._pools.setdefault(number, _Pool(Past(minute)))
            pool.past.add(minute, tenants[mine], sums.values[mine])
        for number, pool in self._pools.items():
            # Over minutes in which no pool had traffic there is nothing to look at; a short gap is looked at whole.
            pool.past.go_on(minute)
            for watcher in self.watchers.values():
                self._look(number, pool, watcher)
        self.last = minute

    def _look(self, number: int, pool: _Pool, watcher: Watcher) -> None:
        state = pool.states.setdefault(watcher.name, _State())
        told = watcher.now(pool.past)
        if told is None:
            return
        state.told = told
        if state.finding is None:
            change = watcher.look(pool.past)
            state.held = 0 if change is None else state.held + 1
            if change is not None and state.held >= watcher.hold:
                state.finding = Finding(number, watcher.name, change, told[1], pool.past.last)
                state.back = 0
                self._fresh.append(state.finding)
            return
        found = state.finding
        state.finding = replace(found, now=told[1])
        over = watcher.over(pool.past, found.change)
        if over is not None:
            state.back = state.back + 1 if over else 0
        if state.back >= watcher.patience or pool.past.last - found.raised >= USUAL:
            gone = replace(state.finding, until=pool.past.last)
            state.finding, state.held = None, 0
            self.ended = [*self.ended, gone][-ENDED:]
            self._fresh.append(gone)

    def active(self, number: int) -> list[Finding]:
        """What holds now in a pool, by the number of its name."""
        pool = self._pools.get(number)
        if pool is None or self._silent(pool):
            return []
        return [state.finding for state in pool.states.values() if state.finding is not None]

    def told(self, number: int, watch: str) -> tuple[float, float] | None:
        """(usual, present) value of a watch in a pool; None where not known. Usual is what was before a finding."""
        pool = self._pools.get(number)
        if pool is None or self._silent(pool) or watch not in pool.states:
            return None
        state = pool.states[watch]
        found, told = state.finding, state.told
        return told if found is None or told is None else (found.change.before, told[1])

    def _silent(self, pool: _Pool) -> bool:
        return not pool.past.whole[-SILENT:].any()

    def fresh(self) -> list[Finding]:
        """Findings since the last call, and those that are over since; they are not saved."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def save(self) -> Mapping[str, Any]:
        """The minutes by tenant one by one, so that what did not change is equal to what it was."""
        parts: dict[str, Any] = {
            "state": [self.last, [_plain(one) for one in self.ended]],
        }
        for number, pool in self._pools.items():
            states = [
                [name, one.told, one.held, one.back, None if one.finding is None else _plain(one.finding)]
                for name, one in pool.states.items()
            ]
            parts[f"pool/{number}"] = [pool.past.begun, pool.past.last, states, pool.past.whole[:-BY_TENANT]]
            for minute, (tenants, values) in pool.past.rows.items():
                parts[f"minute/{number}/{minute}"] = [tenants, values]
        return parts

    def load(self, parts: Mapping[str, Any]) -> None:
        """Take over what `save` gave."""
        if "state" not in parts:
            return
        self.last, ended = parts["state"]
        self.ended = [_finding(one) for one in ended]
        for name, part in sorted(parts.items(), key=lambda pair: (-len(pair[0].partition("/")[0]), pair[0])):
            kind, _, rest = name.partition("/")
            if kind == "pool":
                self._pools[int(rest)] = _loaded(*part)
        for name, (tenants, values) in ((n, p) for n, p in parts.items() if n.startswith("minute/")):
            _, number, minute = name.split("/")
            past = self._pools[int(number)].past
            past.rows[int(minute)] = np.asarray(tenants, np.int64), np.asarray(values)
            past.whole[int(minute) - past.last - 1] = past.rows[int(minute)][1].sum(axis=0)
        for pool in self._pools.values():
            pool.past.rows = dict(sorted(pool.past.rows.items()))


def _loaded(begun: int, last: int, states: Sequence[Any], older: Any) -> _Pool:
    past = Past(begun)
    past.last = last
    past.whole[:-BY_TENANT] = np.asarray(older, np.float64).reshape(KEPT - BY_TENANT, len(COLUMNS))
    made = {
        name: _State(None if told is None else tuple(told), held, back, None if found is None else _finding(found))
        for name, told, held, back, found in states
    }
    return _Pool(past, made)


def _plain(finding: Finding) -> list[Any]:
    change = [
        finding.change.since,
        finding.change.before,
        finding.change.after,
        [list(one) for one in finding.change.who],
    ]
    return [finding.pool, finding.watch, change, finding.now, finding.raised, finding.until]


def _finding(saved: Sequence[Any]) -> Finding:
    pool, watch, (since, before, after, who), *rest = saved
    return Finding(pool, watch, Change(since, before, after, tuple(Who(*one) for one in who)), *rest)
