"""Parting with names that are gone: which rows are theirs, and what of them stays counted (contract, section 5)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capwatch.ledger.table import ENGINE, RETIRED, ROUTE, TENANT, Keys, Table
from capwatch.record import Bools, Floats, Ints

_PAIR = Keys((TENANT, ROUTE))


def of_pairs(keys: Keys, packed: Ints, pairs: Iterable[tuple[int, int]]) -> Bools:
    """Which keys belong to one of these (tenant, route) ids; none where the keys have not both labels."""
    if TENANT not in keys.axes or ROUTE not in keys.axes:
        return np.zeros(len(packed), np.bool_)
    gone = np.array([_PAIR.pack(*pair) for pair in pairs], np.int64)
    return np.isin(_PAIR.pack(keys.ids(packed, TENANT), keys.ids(packed, ROUTE)), gone)


def of_names(keys: Keys, packed: Ints, axis: str, gone: Iterable[int]) -> Bools:
    """Which keys belong to one of these tenants or routes, and to none of the other of the two, or to these engines."""
    owner = {TENANT.name: TENANT, ROUTE.name: ROUTE, ENGINE.name: ENGINE}.get(axis)
    if owner is None or {TENANT, ROUTE, ENGINE}.intersection(keys.axes) != {owner}:
        return np.zeros(len(packed), np.bool_)
    return np.isin(keys.ids(packed, owner), np.array([*gone], np.int64))


def retired(table: Table, values: Floats) -> Floats:
    """What rows of a table amount to in `RETIRED`: float64[1, columns]."""
    moved = np.zeros((1, len(RETIRED.columns)))
    for column, parts in table.retires.items():
        moved[0, RETIRED.column(column)] = values[:, [table.column(part) for part in parts]].sum()
    return moved
