"""Per route: attempts that were retries, and requests that asked for no output cap."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import ROUTE, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain
from capwatch.seen import Seen

RETRIES = Table((ROUTE,), "retries", ("count",))
UNCAPPED = Table((ROUTE,), "uncapped", ("count",))


class Routes:
    """Contract 4.1: `retries_total` and `uncapped_requests_total`; duplicates never get here."""

    tables = (RETRIES, UNCAPPED)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add up what the log tells."""
        groups, batch = seen.groups, seen.batch
        told = ~np.isnan(batch["retries"])
        if told.any():
            told_by = groups.count(told) > 0
            into.add(RETRIES, groups.route[told_by], groups.sums(batch["retries"])[told_by])
        if batch.uncapped.any():
            uncapped = groups.count(batch.uncapped)
            into.add(UNCAPPED, groups.route[uncapped > 0], uncapped[uncapped > 0])

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        for metric, table in ((m.RETRIES, RETRIES), (m.UNCAPPED_REQUESTS, UNCAPPED)):
            keys, values = totals.rows(table)
            yield plain(metric, table, keys, values[:, 0])


def METER(config: Config) -> Routes:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Routes()
