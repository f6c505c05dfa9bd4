"""Two weeks that were never lived: made-up requests counted by the daemon's own pipeline, without the way over logs.

What is long ago goes the short road: it counts for life and in the five-minute rollups, but in no window and in no
count by second, which are most of the work and gone from the totals long before the demo begins. Waiting is left out,
too: at 66 % utilisation and less a request waits 1 ms on average. The last half hour is the live simulation's own,
with everything. The drift detector sees that half hour; what it learns from are the ticks of the week before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

import numpy as np

from capwatch.config.schema import Config
from capwatch.daemon.learning import fitted
from capwatch.daemon.start import Begun, begin
from capwatch.demo.columns import columns
from capwatch.demo.draw import LIMIT, OK, Floats, Rows, draw
from capwatch.demo.scene import GATEWAY
from capwatch.demo.simulation import Simulation
from capwatch.demo.workload import DECODE_RATE, KINDS, MODEL, PREFILL_RATE, RATE, TENANTS, before
from capwatch.dialect import Decoded
from capwatch.drift.resend import ResendFilter
from capwatch.drift.rows import Rows as DriftRows
from capwatch.drift.ticks import Ticks
from capwatch.keep.bundle import Texts
from capwatch.keep.history import History
from capwatch.keep.state import Lock
from capwatch.ledger import LASTING, Gathering, Sketch, Table, Totals
from capwatch.ledger.series import Series
from capwatch.origin import Origin
from capwatch.seen import Meter, Seen

DAYS: Final = 14
LEARNT_DAYS: Final = 7
"""What the drift detector learns from: every day of the week once, in half the time of the whole."""
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


def free_days(now: float) -> tuple[int, ...]:
    """Days before now, modulo a week, that are free: the weekend, or two working days where now is one.

    So at this hour of a day like this one the rate always was the live one. Yesterday is none in any case: whoever
    compares with the day before is not surprised.

    >>> free_days(0.0), free_days(4 * 86_400.0), free_days(2 * 86_400.0)  # a Thursday, a Monday, a Saturday
    ((4, 5), (2,), (3, 4))
    """
    weekday = int(now // DAY_S + 3) % 7
    if weekday >= 5:
        return 3, 4
    return tuple(days for days in (weekday + 1, weekday + 2) if days > 1)


def rate(before_now: Floats, free: Sequence[int] = (3, 4)) -> Floats:
    """Requests a second so many seconds before now: a day's swing with its peak at this time of day.

    >>> rate(np.array([0.0, 43_200.0, 3.0 * 86_400])).round(2).tolist()
    [8.0, 1.2, 4.0]
    """
    swing = ((1 + np.cos(2 * np.pi * before_now / DAY_S)) / 2) ** 2
    slow = np.isin(np.floor(before_now / DAY_S + 0.5) % 7, free)
    return RATE * (NIGHT + (1 - NIGHT) * swing) * np.where(slow, FREE, 1.0)


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
        texts, resends = _texts(), ResendFilter()
        for number, part in enumerate(np.array_split(begins, len(begins) // AT_ONCE)):
            generator = np.random.default_rng((live.seed, 1, number))
            rows = draw(
                generator, before(live.scenario), part, STRETCH_S, rates=rate(now - part, free_days(now)), first=0
            )
            rows = rows.take(np.argsort(rows.ended))
            _count(begun, history, rows, now)
            if part[-1] >= now - LEARNT_DAYS * DAY_S:
                history.keep_ticks(MODEL, ticks(rows.take(rows.ended < now - WARM_S), resends), texts)
            tell(float(part[-1] - begins[0]) / (DAYS * DAY_S))
        begun.pipeline.meters, begun.pipeline.watches = whole, True
        _count(begun, history, live.until(now), now)
        _learn(begun, config.state_dir)
        _close(begun)
    lock.release()


def _count(begun: Begun, history: History, rows: Rows, now: float) -> None:
    batch = columns(rows)
    # There are no lines, so none are told of.
    begun.pipeline.take(Origin(GATEWAY), Decoded(batch, np.arange(len(batch)), [], 0, 0, 0, Counter()), now)
    begun.totals.apply(begun.pipeline.freeze())
    history.keep(begun.totals.closed, begun.totals.closed_names(), begun.totals.clock)
    begun.totals.kept(len(begun.totals.closed))


def ticks(rows: Rows, resends: ResendFilter) -> Ticks:
    """What the drift detector would keep of requests by their end; names are codes of `TENANTS` and `KINDS`."""
    served = rows.fate != LIMIT
    prompt = np.where(served, rows.computed + rows.cached, np.nan)
    wait = np.maximum(0.0, rows.gateway + rows.queue + rows.prefill - rows.computed / PREFILL_RATE)
    told = DriftRows(
        at=rows.ended,
        tenant=rows.tenant,
        route=rows.kind,
        klass=rows.kind,
        model=np.zeros(len(rows), np.int64),
        group=np.full(len(rows), -1),
        prompt=prompt,
        cached=rows.cached.astype(np.float64),
        output=np.where(served, rows.output, np.nan),
        failed=rows.fate != OK,
        wait=np.where(served, wait, np.nan),
    )
    return Ticks.of(told.take(resends.keep(told)), PREFILL_RATE, DECODE_RATE)


def _texts() -> Texts:
    """The names behind the codes of `ticks`."""
    texts = Texts()
    texts.codes("tenant", TENANTS)
    texts.codes("route", (kind.route for kind in KINDS))
    texts.codes("class", (kind.name for kind in KINDS))
    return texts


def _learn(begun: Begun, folder: str) -> None:
    """Let the detector learn as a daemon's does, but here: the demo must not depend on how long it takes.

    Raises:
        ChildProcessError: the process that learns has failed.
    """
    drifts = begun.pipeline.drifts
    for pool in drifts.due():
        told = fitted(folder, drifts.job(pool) | {"hurry": True})
        if told is not None:
            drifts.learn(pool, told)
    begun.totals.apply(begun.pipeline.freeze())


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
