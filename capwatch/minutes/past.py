"""The minutes of one pool: four hours of it as a whole, the last ones by tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from capwatch.minutes.table import COLUMNS, Sums
from capwatch.record import Floats, Ints

KEPT: Final = 245
"""Minutes of a pool: four bursts on the hour, and what is usual before the first."""
BY_TENANT: Final = 75
"""Minutes by tenant: an hour to compare with, what is now, and a few between."""

Rows = tuple[Ints, Floats]
"""Tenants, ascending, and float64[tenants, columns]."""


class Past:
    """Minutes end with ``last``. Without traffic they hold zeros; before ``begun`` nothing is known."""

    def __init__(self, begun: int) -> None:
        self.begun = begun
        """The first minute of the pool."""
        self.last = begun - 1
        self.whole: Floats = np.zeros((KEPT, len(COLUMNS)))
        """float64[245, columns], the last minute at the end."""
        self.rows: dict[int, Rows] = {}
        """By minute."""

    def add(self, minute: int, tenants: Ints, values: Floats) -> None:
        """Take a minute that is later than all before."""
        self.go_on(minute)
        self.whole[-1] = values.sum(axis=0)
        self.rows[minute] = tenants, values

    def go_on(self, minute: int) -> None:
        """Let time run to a minute without traffic."""
        passed = min(minute - self.last, KEPT)
        if passed > 0:
            self.whole = np.concatenate([self.whole[passed:], np.zeros((passed, len(COLUMNS)))])
            self.last = minute
            self.rows = {one: rows for one, rows in self.rows.items() if one > minute - BY_TENANT}

    def knows(self, first: int) -> bool:
        """Whether a minute and all after it are known."""
        return first >= max(self.begun, self.last - KEPT + 1)

    def windows(self, firsts: Sequence[int] | Ints, minutes: int) -> Sums:
        """Windows that begin with these minutes: float64[windows, columns]."""
        sums = np.concatenate([np.zeros((1, len(COLUMNS))), self.whole.cumsum(axis=0)])
        place = np.asarray(firsts) - (self.last - KEPT + 1)
        return Sums(sums[place + minutes] - sums[place], minutes)

    def window(self, first: int, minutes: int) -> Sums:
        """One window: float64[columns]."""
        place = first - (self.last - KEPT + 1)
        return Sums(self.whole[place : place + minutes].sum(axis=0), minutes)

    def tenants(self, first: int, minutes: int) -> dict[int, Sums]:
        """One window by tenant."""
        parts = [self.rows[one] for one in range(first, first + minutes) if one in self.rows]
        if not parts:
            return {}
        found, of = np.unique(np.concatenate([tenants for tenants, _ in parts]), return_inverse=True)
        sums = np.zeros((len(found), len(COLUMNS)))
        np.add.at(sums, of, np.concatenate([values for _, values in parts]))
        return {tenant: Sums(row, minutes) for tenant, row in zip(found.tolist(), sums, strict=True)}
