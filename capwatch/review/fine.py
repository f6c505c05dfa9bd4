"""Failures and tenants by five minutes: what tells a burst that a service makes itself, or a clock of one tenant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch.capacity.shapes import Hints
from capwatch.keep.slot import Slot
from capwatch.meters.rollup import COLUMNS, OUTCOME_COLUMNS, PARTS

FAILED: Final = [
    COLUMNS.index(f"outcome_{name}") for name in ("timeout", "overload", "upstream_error", "gateway_error")
]
_OUTCOMES: Final = [COLUMNS.index(name) for name in OUTCOME_COLUMNS]
_POOL: Final = [axis.name for axis in PARTS].index("pool")
_TENANT: Final = [axis.name for axis in PARTS].index("tenant")
MOST: Final = 32
"""Tenants that are kept apart: a clock that makes a burst is one of the large ones."""
SLOT_S: Final = 300


class Fine:
    """Sums of one week by pool."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        self._size = max(0, -(-(end - begin) // SLOT_S))
        self._failed: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
        self._tenants: dict[str, dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]] = {}

    def add(self, slots: Iterable[Slot]) -> None:
        """Take rollups of five minutes."""
        for slot in slots:
            place = (slot.at - self._begin) // SLOT_S
            if slot.span > SLOT_S or not 0 <= place < self._size:
                continue
            failed, requests = slot.values[:, FAILED].sum(axis=1), slot.values[:, _OUTCOMES].sum(axis=1)
            for name, bad, count in zip(slot.names, failed.tolist(), requests.tolist(), strict=True):
                pool = name[_POOL]
                self._failed.setdefault(pool, np.zeros(self._size))[place] += bad
                tenants = self._tenants.setdefault(pool, {})
                tenants.setdefault(name[_TENANT], np.zeros(self._size))[place] += count

    def hints(self, pool: str, begin: int) -> Hints:
        """What is known of a pool from a time on."""
        skipped = max(0, (begin - self._begin) // SLOT_S)  # seconds begin with an hour
        if pool not in self._failed:
            return Hints(SLOT_S)
        tenants = sorted(self._tenants[pool].values(), key=lambda one: -float(one.sum()))[:MOST]
        return Hints(SLOT_S, self._failed[pool][skipped:], None, np.stack(tenants)[:, skipped:])
