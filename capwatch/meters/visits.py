"""Visits: how often requests go to each phase, the v_k of Little's law by phase, L_k = λ v_k W_k."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import POOL, Gathering, Table, Totals
from capwatch.ledger.series import Series, spread
from capwatch.record import Batch, Floats
from capwatch.seen import Seen

VISITS = Table((POOL,), "visits", m.VISITED_PHASES)
COUNTED: Final = {
    "retrieval": "retrieval_visits",
    "tool": "tool_visits",
    **dict.fromkeys(("queue", "prefill", "decode"), "model_visits"),
}
"""The number that tells how often a request went to a phase."""
MADE: Final = {"prefill": "prompt_tokens", "decode": "output_tokens"}
"""Tokens that tell of a visit, also where its time is not known."""


class Visits:
    """Metric `phase_visits_total`, beside those of contract 4.2."""

    tables = (VISITS,)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add the visits of each request."""
        into.add(VISITS, seen.groups.pool, *map(seen.groups.sums, visits(seen.batch)))

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        yield spread(m.PHASE_VISITS, VISITS, *totals.rows(VISITS), m.VISITED_PHASES)


def visits(batch: Batch) -> Floats:
    """Visits to each of `m.VISITED_PHASES`, float64[6, n].

    A phase was visited if the request is known to have spent time there, or to have tokens that were made there: once,
    or as often as the log says. What a log does not tell is no visit.
    """
    found = np.zeros((len(m.VISITED_PHASES), len(batch)))
    for row, phase in zip(found, m.VISITED_PHASES, strict=True):
        row[batch[f"{phase}_s"] > 0] = 1.0
        if phase in MADE:
            row[(batch[MADE[phase]] > 0) & ~batch.cache_hit] = 1.0
        if phase in COUNTED:
            told = batch[COUNTED[phase]]
            # The number of calls tells of prefill and decode without their times, of a wait only where there was one.
            row[:] = np.where(np.isnan(told) | ((phase == "queue") & (row == 0)), row, told)
    return found


def METER(config: Config) -> Visits:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Visits()
