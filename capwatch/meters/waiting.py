"""Who waits longest for a first token, where a log tells of requests while they go on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import Gathering, Totals
from capwatch.ledger.series import Series, plain
from capwatch.load.tables import WAITING
from capwatch.seen import Seen


class Waiting:
    """Metric `oldest_waiting_seconds` of contract 4.2; see `capwatch.waits`."""

    tables = (WAITING,)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Requests that finished wait no more."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, arrived = totals.rows(WAITING)
        yield plain(m.OLDEST_WAITING_SECONDS, WAITING, keys, np.maximum(0.0, totals.clock - arrived[:, 0]))


def METER(config: Config) -> Waiting:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Waiting()
