"""The state's own history: how often it had to begin anew."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import Axis, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain
from capwatch.seen import Seen

RESET = Axis("reason", 2, m.RESET_REASONS)
RESETS = Table((RESET,), "resets", ("count",))


class Commits:
    """Contract 4.7: `state_resets_total`."""

    tables = (RESETS,)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Requests tell nothing of it."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        yield plain(m.STATE_RESETS, RESETS, *totals.rows(RESETS))


def reset(into: Gathering, reason: str | None) -> None:
    """Count a reset; None only makes the series appear, at 0."""
    reasons = np.arange(len(m.RESET_REASONS))
    into.add(RESETS, reasons, np.array([float(one == reason) for one in m.RESET_REASONS]))


def METER(config: Config) -> Commits:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Commits()
