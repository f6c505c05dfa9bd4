"""The ledger: mergeable totals. Meters gather increments, a delta freezes them, totals are the sum of deltas."""

from capwatch.ledger.delta import LASTING, Delta, Gathering
from capwatch.ledger.names import OTHER, UNKNOWN, Names
from capwatch.ledger.table import (
    BOUND,
    CLASS,
    ENGINE,
    MODEL,
    POOL,
    RETIRED,
    ROUTE,
    SOURCE,
    TENANT,
    Axis,
    Keys,
    Sketch,
    Table,
)
from capwatch.ledger.totals import Closed, Follower, Sums, Totals

__all__ = [
    "BOUND",
    "CLASS",
    "ENGINE",
    "LASTING",
    "MODEL",
    "OTHER",
    "POOL",
    "RETIRED",
    "ROUTE",
    "SOURCE",
    "TENANT",
    "UNKNOWN",
    "Axis",
    "Closed",
    "Delta",
    "Follower",
    "Gathering",
    "Keys",
    "Names",
    "Sketch",
    "Sums",
    "Table",
    "Totals",
]
