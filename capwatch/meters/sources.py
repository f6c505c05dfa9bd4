"""capwatch's own books: the fate of every line, late records, overflow of labels, duplicates (contract, 4.7; law 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import ROUTE, SOURCE, Axis, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain
from capwatch.record import OUTCOMES, USAGES, Ints
from capwatch.seen import Seen

REASON = Axis("reason", 4, m.DROP_REASONS)
LIMIT = Axis("label", 4, m.OVERFLOW_LABELS)
LINES = Table((SOURCE,), "lines", ("read", "counted", "skipped"))
DROPS = Table((SOURCE, REASON), "drops", ("lines",))
RECORDS = Table((SOURCE,), "records", ("usage_unknown", "late"))
LAST_EVENT = Table((SOURCE,), "last_event", ("timestamp",), level=True)
OVERFLOW = Table((LIMIT,), "overflow", ("requests",))
DUPLICATES = Table((ROUTE,), "duplicates", ("count",))


class Sources:
    """What became of lines and records, by source."""

    tables = (LINES, DROPS, RECORDS, LAST_EVENT, OVERFLOW, DUPLICATES)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Count finished requests without token counts."""
        batch = seen.batch
        unknown = (batch.outcome == OUTCOMES.index("ok")) & (batch.usage == USAGES.index("missing"))
        source = np.array([seen.source])
        into.add(RECORDS, source, np.array([unknown.sum()]), np.zeros(1))

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
        lines(into, source, (0, 0, 0), dict.fromkeys(m.DROP_REASONS, 0))
        late(into, source, 0)
    overflow(into, dict.fromkeys(m.OVERFLOW_LABELS, 0.0))


def lines(into: Gathering, source: int, counts: tuple[int, int, int], dropped: Mapping[str, int]) -> None:
    """Book lines of a source: (read, counted, skipped), and the dropped by reason."""
    into.add(LINES, np.array([source]), *(np.array([count], np.float64) for count in counts))
    if dropped:
        reasons = np.array([m.DROP_REASONS.index(reason) for reason in dropped])
        into.add(DROPS, DROPS.pack(source, reasons), np.array(list(dropped.values()), np.float64))


def late(into: Gathering, source: int, count: int) -> None:
    """Book records that came too late for the window."""
    into.add(RECORDS, np.array([source]), np.zeros(1), np.array([float(count)]))


def newest(into: Gathering, source: int, at: float) -> None:
    """Set when (s, epoch) the newest event of a source was."""
    into.set(LAST_EVENT, np.array([source]), np.array([at]))


def overflow(into: Gathering, spilled: Mapping[str, float]) -> None:
    """Book requests that were counted as `other`, by the limit that did it."""
    if spilled:
        limits = np.array([m.OVERFLOW_LABELS.index(limit) for limit in spilled])
        into.add(OVERFLOW, limits, np.array(list(spilled.values())))


def duplicates(into: Gathering, routes: Ints) -> None:
    """Book rows that repeat a request, by route."""
    into.add(DUPLICATES, routes, np.ones(len(routes)))


def METER(config: Config) -> Sources:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Sources()
