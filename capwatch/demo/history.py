"""Two weeks that were never lived: made-up requests counted by the daemon's own pipeline, without the way over logs.

What is long ago goes the short road: it counts for life and in the five-minute rollups, but in no window and in no
count by second, which are most of the work and gone from the totals long before the demo begins. Waiting is left out,
too: at 66 % utilisation and less a request waits 1 ms on average. The last half hour is the live simulation's own,
with everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

import numpy as np

from capwatch.config.schema import Config
from capwatch.daemon.start import Begun, begin
from capwatch.demo.columns import columns
from capwatch.demo.draw import Floats, Rows, draw
from capwatch.demo.scene import GATEWAY
from capwatch.demo.simulation import Simulation
from capwatch.demo.workload import RATE, before
from capwatch.dialect import Decoded
from capwatch.keep.history import History
from capwatch.keep.state import Lock
from capwatch.ledger import LASTING, Gathering, Sketch, Table, Totals
from capwatch.ledger.series import Series
from capwatch.origin import Origin
from capwatch.seen import Meter, Seen

DAYS: Final = 14
DAY_S: Final = 86_400.0
WARM_S: Final = 1800.0
"""Before the live part, by the live simulation: longer than every window of the totals (25 minutes)."""
STRETCH_S: Final = 300.0
"""The rate is constant for so long: a rollup's slot."""
AT_ONCE: Final = 48
"""Stretches that are drawn and counted together, four hours: a batch of some 50,000 requests."""
NIGHT: Final = 0.15
"""The least rate of a day as a part of the greatest, which is now."""
FREE: Final = 0.5
"""The rate of a free day as a part of the others'."""
FREE_DAYS: Final = (3, 4)
"""Days before now, modulo a week, that are free: never today or yesterday, so that the live rate surprises nobody."""


def rate(before_now: Floats) -> Floats:
    """Requests a second so many seconds before now: a day's swing with its peak at this time of day.

    >>> rate(np.array([0.0, 43_200.0, 3.0 * 86_400])).round(2).tolist()
    [8.0, 1.2, 4.0]
    """
    swing = ((1 + np.cos(2 * np.pi * before_now / DAY_S)) / 2) ** 2
    free = np.isin(np.floor(before_now / DAY_S + 0.5) % 7, FREE_DAYS)
    return RATE * (NIGHT + (1 - NIGHT) * swing) * np.where(free, FREE, 1.0)


def fill(config: Config, live: Simulation, tell: Callable[[float], None]) -> None:
    """Fill the empty state of ``config`` with two weeks that end `WARM_S` after ``live`` began; it goes on from there.

    ``tell`` hears now and then which part, 0..1, is done.
    """
    now = live.begin + WARM_S
    lock = Lock(config.state_dir)  # makes the directory, too
    begun = begin(config, reset=False)
    with closing(begun.state), closing(History(config.state_dir, config.history.max_bytes)) as history:
        whole = begun.pipeline.meters
        begun.pipeline.meters = [ForLife(meter) for meter in whole]
        begun.pipeline.watches = False
        begins = np.arange(now - DAYS * DAY_S, now - WARM_S, STRETCH_S)
        for number, part in enumerate(np.array_split(begins, len(begins) // AT_ONCE)):
            generator = np.random.default_rng((live.seed, 1, number))
            rows = draw(generator, before(live.scenario), part, STRETCH_S, rates=rate(now - part), first=0)
            _count(begun, history, rows.take(np.argsort(rows.ended)), now)
            tell(float(part[-1] - begins[0]) / (DAYS * DAY_S))
        begun.pipeline.meters, begun.pipeline.watches = whole, True
        _count(begun, history, live.until(now), now)
        _close(begun)
    lock.release()


def _count(begun: Begun, history: History, rows: Rows, now: float) -> None:
    batch = columns(rows)
    # There are no lines, so none are told of.
    begun.pipeline.take(Origin(GATEWAY), Decoded(batch, np.arange(len(batch)), [], 0, 0, 0, Counter()), now)
    begun.totals.apply(begun.pipeline.freeze())
    history.keep(begun.totals.closed, begun.totals.closed_names(), begun.totals.clock)
    begun.totals.kept(len(begun.totals.closed))


def _close(begun: Begun) -> None:
    """Leave everything as a daemon leaves it that stops."""
    begun.state.checkpoint(begun.state.number, begun.chunks())


class ForLife:
    """A meter that looks at long ago: what it sees belongs to no window."""

    def __init__(self, meter: Meter) -> None:
        self.tables: Sequence[Table] = meter.tables
        self.sketches: Sequence[Sketch] = meter.sketches
        self.followers = meter.followers
        self._meter = meter

    def measure(self, seen: Seen, into: Gathering) -> None:
        """See `capwatch.seen.Meter`."""
        n = len(seen.batch)
        self._meter.measure(replace(seen, timely=np.zeros(n, np.bool_), slot=np.full(n, LASTING)), into)

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        return self._meter.show(totals)
