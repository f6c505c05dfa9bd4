"""Closed slots as the totals give them, from a few requests; and a process that keeps them until it is killed.

`python -m tests.keep.closing FOLDER` tells the first slots, one a `keep`, again and again from the beginning, and says
on stdout how far it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from capwatch.keep.history import History
from capwatch.ledger import CLASS, MODEL, POOL, ROUTE, TENANT, Closed, Names, Sums
from capwatch.load.tables import SECONDS
from capwatch.meters.rollup import COMBINATION, MEASURE, MEASURES, ROLLUPS, spell
from capwatch.sketch import Cells, count, gather, index, pack

START = 1_764_547_200
"""A full hour and a full day: 2025-12-01 00:00 UTC."""
FIVE = 300
HOUR = 3600
DAY = 86400

Requests = Sequence[tuple[str, float]]
"""Tenant, and seconds in the queue."""


def rollup(names: Names, at: int, requests: Requests) -> Closed:
    """The closed five minutes from ``at`` on with these requests."""
    keys = np.array([combination(names, tenant) for tenant, _ in requests], np.int64)
    queue = np.array([seconds for _, seconds in requests])
    values = np.zeros((len(requests), len(ROLLUPS.columns)))
    values[:, ROLLUPS.column("outcome_ok")] = 1
    values[:, ROLLUPS.column("queue")] = queue
    sums = Sums(len(ROLLUPS.columns))
    sums.add(*gather(keys, values))
    series = keys << MEASURE.bits | MEASURES.index("queue_s")
    return Closed("rollup", at // FIVE, sums, Cells(*count(pack(series, index(queue)))))


def second(names: Names, at: int, pools: dict[str, tuple[float, ...]]) -> Closed:
    """A closed second with arrivals, departures and cost by pool."""
    sums = Sums(len(SECONDS.columns))
    rows = sorted((names.id(POOL.name, pool), row) for pool, row in pools.items())
    sums.add(np.array([key for key, _ in rows]), np.array([row for _, row in rows], np.float64))
    return Closed("seconds", at, sums, Cells())


def combination(names: Names, tenant: str) -> int:
    """The id of a tenant's only combination."""
    texts = ((TENANT, tenant), (ROUTE, "/chat"), (MODEL, "m"), (POOL, "p"), (CLASS, "c"))
    return names.id(COMBINATION.name, spell(names.id(axis.name, text) for axis, text in texts))


def told(names: Names, number: int) -> list[Closed]:
    """What the process tells at its step ``number``: five minutes with as many requests, and a second of them."""
    at = START + number * FIVE
    return [rollup(names, at, [("acme", 0.25)] * number + [("zen", 1.5)]), second(names, at, {"p": (number, 1, 0.5)})]


def main(folder: str) -> None:
    """Keep for ever."""
    names, history = Names(), History(folder, 1 << 30)
    for number in _for_ever(60):
        history.keep(told(names, number), names, START)
        os.write(1, f"{number}\n".encode())


def _for_ever(most: int) -> Iterable[int]:
    while True:
        yield from range(most)


if __name__ == "__main__":
    main(*sys.argv[1:])
