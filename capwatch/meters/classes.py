"""Per class of request: how many, what they cost, how long they take and wait."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import CLASS, POOL, Axis, Gathering, Keys, Sketch, Table, Totals
from capwatch.ledger.series import SUMMARY, Series, plain
from capwatch.seen import Seen
from capwatch.sketch import index, pack, quantiles

TIME = Axis("time", 1, ("duration", "queue"))
COUNTS = Table((POOL, CLASS), "classes", ("requests", "cost"))
TIMES = Table((POOL, CLASS, TIME), "class_times", ("count", "sum"))
BY_CLASS = Sketch((POOL, CLASS, TIME), "class", lasting=False, recent=True)
_CLASSES = Keys((POOL, CLASS))


class Classes:
    """Contract 4.5 by class, and `queue_seconds` of 4.2."""

    tables = (COUNTS, TIMES)
    sketches = (BY_CLASS,)
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Count every request; time those that tell times."""
        groups = seen.groups
        classes = COUNTS.pack(groups.pool, groups.klass)
        ones = np.ones(len(seen.batch))
        into.add(COUNTS, classes, groups.sums(ones), groups.sums(seen.cost.total))
        for number, name in enumerate(("duration_s", "queue_s")):
            values = seen.batch[name]
            told = ~np.isnan(values)
            if told.any():
                keys = classes << TIME.bits | number
                told_by = groups.count(told)
                into.add(TIMES, keys[told_by > 0], told_by[told_by > 0], groups.sums(values)[told_by > 0])
                into.observe(BY_CLASS, pack(keys[groups.of[told]], index(values[told])), seen.slot[told])

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(COUNTS)
        yield plain(m.CLASS_REQUESTS, COUNTS, keys, values[:, 0])
        yield plain(m.CLASS_COST_REPLICA_SECONDS, COUNTS, keys, values[:, 1])
        keys, sums = totals.rows(TIMES)
        series, recent, _ = quantiles(totals.recent(BY_CLASS), m.QUANTILES)
        shown = np.full((len(keys), len(SUMMARY)), np.nan)
        shown[np.searchsorted(keys, series), : len(m.QUANTILES)] = recent
        shown[:, -2], shown[:, -1] = sums[:, 1], sums[:, 0]
        for number, metric in enumerate((m.CLASS_DURATION_SECONDS, m.QUEUE_SECONDS)):
            rows = TIMES.ids(keys, TIME) == number
            yield Series(metric, _CLASSES, keys[rows] >> TIME.bits, shown[rows], SUMMARY)


def METER(config: Config) -> Classes:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Classes()
