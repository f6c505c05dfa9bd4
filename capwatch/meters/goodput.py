"""Goodput: requests that met every target, that missed, and that cannot be judged. They add up to the requests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import ROUTE, TENANT, Axis, Gathering, Keys, Table, Totals
from capwatch.ledger.series import Series, plain, spread
from capwatch.seen import Seen
from capwatch.slo import VERDICTS

VERDICT = Axis("verdict", 4, VERDICTS)
PAIR = Keys((TENANT, ROUTE))
GOODPUT = Table((TENANT, ROUTE, VERDICT), "goodput", ("count",))


class Goodput:
    """Contract 4.1: `goodput_*`; law 4."""

    tables = (GOODPUT,)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Count each request under its verdict; a pair's keys are those of `PAIR` with the verdict behind."""
        groups = seen.groups
        group, verdict, count = groups.split(seen.verdict, len(VERDICTS))
        into.add(GOODPUT, PAIR.pack(groups.tenant, groups.route)[group] << VERDICT.bits | verdict, count)

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, counts = totals.rows(GOODPUT)
        pairs, of = np.unique(keys >> VERDICT.bits, return_inverse=True)
        values = np.full((len(pairs), len(VERDICTS)), np.nan)
        values[of, GOODPUT.ids(keys, VERDICT)] = counts[:, 0]
        missed = 1 + len(m.MISSED_REASONS)
        yield plain(m.GOODPUT_REQUESTS, PAIR, pairs, values[:, 0])
        yield spread(m.GOODPUT_MISSED, PAIR, pairs, values[:, 1:missed], m.MISSED_REASONS)
        unjudged = values[:, missed:]
        yield spread(m.GOODPUT_UNCLASSIFIED, PAIR, pairs, unjudged, m.UNCLASSIFIED_REASONS)


def METER(config: Config) -> Goodput:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Goodput()
