"""Leaves out what clients send again after a failure: a retry storm is no change of the mix.

A request is a resend if an earlier attempt that failed, or was itself a resend, had the same key within 300 s; one
failure explains at most three. The key is the attempt group where the log has one, otherwise tenant, class, route,
model and computed prompt tokens. That the earlier attempt must have failed matters: chance collisions grow with the
rate, and common lengths would go first.

Many logs tell no token counts of failed attempts. Each such failure excuses at most one later request with the same
tenant, route and model. Only failures and resends of the last 300 s are remembered.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from capwatch.drift.rows import Rows
from capwatch.record import Bools, Ints

WITHIN_S: Final = 300.0
TRIES: Final = 3
"""Resends that one failure explains; without a bound, lengths that many requests share would chain for ever."""
_BITS: Final = 20
"""log2 of the size of the sieve: a million places for the failures of one block of rows."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 / golden ratio (Knuth): spreads a combined code over the places of the sieve."""


class ResendFilter:
    """Marks resends, block after block of rows."""

    def __init__(self) -> None:
        self._failed: dict[int, tuple[float, int]] = {}
        """Key → time of its last attempt that failed or was a resend, and how many resends are still explained."""
        self._excuses: dict[int, list[float]] = {}
        """Tenant, route and model → times of failures that told no tokens and excuse one request each."""

    def keep(self, rows: Rows) -> Bools:
        """Which requests are first attempts: bool[n]."""
        keep = np.ones(len(rows), np.bool_)
        if not len(rows):
            return keep
        keys, loose = _keys(rows)
        silent = rows.failed & ~rows.known
        suspects = _among(keys, keys[rows.failed], self._failed) | _among(loose, loose[silent], self._excuses)
        for row in np.flatnonzero(suspects).tolist():
            keep[row] = not self._resent(
                float(rows.at[row]), int(keys[row]), int(loose[row]), bool(rows.failed[row]), bool(silent[row])
            )
        self._forget(float(rows.at[-1]))
        return keep

    def _resent(self, at: float, key: int, loose: int, failed: bool, silent: bool) -> bool:
        before, left = self._failed.get(key, (-np.inf, 0))
        resent = left > 0 and at - before <= WITHIN_S
        if not resent and not silent:
            excuses = self._excuses.get(loose, [])
            while excuses and not resent:
                resent = at - excuses.pop(0) <= WITHIN_S
        if failed or resent:
            self._failed[key] = (at, TRIES if failed else left - 1)
        if silent:
            self._excuses.setdefault(loose, []).append(at)
        return resent

    def _forget(self, now: float) -> None:
        self._failed = {key: last for key, last in self._failed.items() if now - last[0] <= WITHIN_S}
        fresh = {key: [at for at in times if now - at <= WITHIN_S] for key, times in self._excuses.items()}
        self._excuses = {key: times for key, times in fresh.items() if times}

    def state(self) -> dict[str, object]:
        """What is remembered, as plain builtins."""
        return {"failed": dict(self._failed), "excuses": {key: list(times) for key, times in self._excuses.items()}}

    @classmethod
    def from_state(cls, state: dict[str, object]) -> ResendFilter:
        """A filter that goes on from `state`."""
        new = cls()
        new._failed = dict(state["failed"])  # type: ignore[call-overload]
        new._excuses = {key: list(times) for key, times in state["excuses"].items()}  # type: ignore[attr-defined]
        return new


def _keys(rows: Rows) -> tuple[Ints, Ints]:
    """The key of each request, and the looser one of tenant, route and model; equal numbers for equal keys.

    Different keys share a number with a chance of about 2⁻⁶² a pair, and then one request too many may be left out.
    """
    loose = _mixed(rows.tenant, rows.route, rows.model)
    tokens = np.where(rows.known, rows.computed, -1.0).astype(np.int64)
    keys = _mixed(loose, rows.klass, tokens)
    grouped = rows.group >= 0
    return np.where(grouped, _mixed(np.full(len(rows), -7), rows.group), keys), loose


def _mixed(*columns: Ints) -> Ints:
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(1)).astype(np.int64)


def _among(keys: Ints, wanted: Ints, more: Collection[int]) -> Bools:
    """Whether each key may be among the wanted ones: never a wrong no, seldom a wrong yes."""
    sieve = np.zeros(1 << _BITS, np.bool_)
    mask = np.int64((1 << _BITS) - 1)
    sieve[wanted & mask] = True
    if more:
        sieve[np.fromiter(more, np.int64, len(more)) & mask] = True
    return np.asarray(sieve[keys & mask])
