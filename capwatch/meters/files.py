"""The files of the sources: bytes read, passed over, lost and still to read; rotations (contract, 4.7; law 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import SOURCE, Axis, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain
from capwatch.seen import Seen

LOSSES: Final = ("deleted", "truncated")
"""Why bytes can be lost: their file went before it was opened, or was truncated before it was read."""
LOSS = Axis("reason", 2, LOSSES)
FILES = Table((SOURCE,), "files", ("read", "skipped", "lag", "rotations", "truncations", "up"), level=True)
LOST = Table((SOURCE, LOSS), "lost", ("bytes",), level=True)
SHOWN: Final = (
    m.SOURCE_BYTES_READ,
    m.SOURCE_BYTES_SKIPPED,
    m.SOURCE_LAG_BYTES,
    m.SOURCE_ROTATIONS,
    m.SOURCE_TRUNCATIONS,
    m.SOURCE_UP,
)
"""The metric of each column of `FILES`."""


class Files:
    """What the followers tell; their counts are since the first start, so they are set, not added."""

    tables = (FILES, LOST)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Requests tell nothing of files."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(FILES)
        for column, metric in enumerate(SHOWN):
            yield plain(metric, FILES, keys, values[:, column])
        yield plain(m.SOURCE_BYTES_LOST, LOST, *totals.rows(LOST))


def book(into: Gathering, source: int, numbers: tuple[float, ...], lost: Mapping[str, int]) -> None:
    """Set a source's numbers, in the order of `FILES`, and its lost bytes by reason."""
    into.set(FILES, np.array([source]), *(np.array([number], np.float64) for number in numbers))
    reasons = np.arange(len(LOSSES))
    into.set(LOST, LOST.pack(source, reasons), np.array([lost.get(reason, 0) for reason in LOSSES], np.float64))


def METER(config: Config) -> Files:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Files()
