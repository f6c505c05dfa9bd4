"""capwatch's own books: the fate of every line, late records, overflow of labels, duplicates (contract, 4.7; law 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import LASTING, ROUTE, SOURCE, Axis, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain
from capwatch.record import OUTCOMES, USAGES, Ints
from capwatch.seen import ROLLUP_S, Seen

REASON = Axis("reason", 4, m.DROP_REASONS)
LIMIT = Axis("label", 4, m.OVERFLOW_LABELS)
LINES = Table((SOURCE,), "lines", ("read", "counted", "skipped"))
DROPS = Table((SOURCE, REASON), "drops", ("lines",))
RECORDS = Table((SOURCE,), "records", ("usage_unknown", "late"))
BOOKS = Table(
    (SOURCE,),
    "books",
    ("read", "counted", "skipped", "usage_unknown", "late", "duplicates", *m.DROP_REASONS),
    slot_s=3600,
    slots=2,
    closes=True,
)
"""The same by the hour, for the history: lines in the hour that the event clock had reached when they were read."""
LAST_EVENT = Table((SOURCE,), "last_event", ("timestamp",), level=True)
OVERFLOW = Table((LIMIT,), "overflow", ("requests",))
DUPLICATES = Table((ROUTE,), "duplicates", ("count",))


class Sources:
    """What became of lines and records, by source."""

    tables = (LINES, DROPS, RECORDS, BOOKS, LAST_EVENT, OVERFLOW, DUPLICATES)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Count finished requests without token counts."""
        batch = seen.batch
        unknown = (batch.outcome == OUTCOMES.index("ok")) & (batch.usage == USAGES.index("missing"))
        source = np.array([seen.source])
        into.add(RECORDS, source, np.array([unknown.sum()]), np.zeros(1))
        hours = seen.rollup_slot[unknown & (seen.rollup_slot > LASTING)] * ROLLUP_S // BOOKS.slot_s
        for hour, count in zip(*np.unique(hours, return_counts=True), strict=True):
            _in_hour(into, seen.source, hour * BOOKS.slot_s, {"usage_unknown": float(count)})

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(LINES)
        for column, metric in enumerate((m.LINES_READ, m.LINES_COUNTED, m.LINES_SKIPPED)):
            yield plain(metric, LINES, keys, values[:, column])
        yield plain(m.LINES_DROPPED, DROPS, *totals.rows(DROPS))
        keys, values = totals.rows(RECORDS)
        yield plain(m.USAGE_UNKNOWN, RECORDS, keys, values[:, 0])
        yield plain(m.LATE_RECORDS, RECORDS, keys, values[:, 1])
        yield plain(m.SOURCE_LAST_EVENT_TIMESTAMP_SECONDS, LAST_EVENT, *totals.rows(LAST_EVENT))
        yield plain(m.LABEL_OVERFLOW, OVERFLOW, *totals.rows(OVERFLOW))
        yield plain(m.DUPLICATES, DUPLICATES, *totals.rows(DUPLICATES))


def begin(into: Gathering, ids: Iterable[int]) -> None:
    """Let the series of sources, and of all limits, appear at 0."""
    for source in ids:
        into.add(LINES, np.array([source]), *np.zeros((3, 1)))
        into.add(DROPS, DROPS.pack(source, np.arange(len(m.DROP_REASONS))), np.zeros(len(m.DROP_REASONS)))
        into.add(RECORDS, np.array([source]), *np.zeros((2, 1)))
    overflow(into, dict.fromkeys(m.OVERFLOW_LABELS, 0.0))


def lines(into: Gathering, source: int, counts: tuple[int, int, int], dropped: Mapping[str, int], at: float) -> None:
    """Book lines of a source: (read, counted, skipped), and the dropped by reason.

    ``at`` (s, epoch) says in which hour of the history.
    """
    read, counted, skipped = counts
    _in_hour(into, source, at, {"read": read, "counted": counted, "skipped": skipped, **dropped})
    into.add(LINES, np.array([source]), *(np.array([count], np.float64) for count in counts))
    if dropped:
        reasons = np.array([m.DROP_REASONS.index(reason) for reason in dropped])
        into.add(DROPS, DROPS.pack(source, reasons), np.array(list(dropped.values()), np.float64))


def late(into: Gathering, source: int, count: int, at: float) -> None:
    """Book records that came too late for the window; ``at`` as in `lines`."""
    if count:
        _in_hour(into, source, at, {"late": count})
    into.add(RECORDS, np.array([source]), np.zeros(1), np.array([float(count)]))


def newest(into: Gathering, source: int, at: float) -> None:
    """Set when (s, epoch) the newest event of a source was."""
    into.set(LAST_EVENT, np.array([source]), np.array([at]))


def overflow(into: Gathering, spilled: Mapping[str, float]) -> None:
    """Book requests that were counted as `other`, by the limit that did it."""
    if spilled:
        limits = np.array([m.OVERFLOW_LABELS.index(limit) for limit in spilled])
        into.add(OVERFLOW, limits, np.array(list(spilled.values())))


def duplicates(into: Gathering, source: int, routes: Ints, at: float) -> None:
    """Book rows that repeat a request, by route; ``at`` as in `lines`."""
    if len(routes):
        _in_hour(into, source, at, {"duplicates": len(routes)})
    into.add(DUPLICATES, routes, np.ones(len(routes)))


def _in_hour(into: Gathering, source: int, at: float, told: Mapping[str, float]) -> None:
    row = (np.array([float(told.get(name, 0))]) for name in BOOKS.columns)
    into.add_slots(BOOKS, np.array([int(at // BOOKS.slot_s)]), np.array([source]), *row)


def METER(config: Config) -> Sources:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Sources()
