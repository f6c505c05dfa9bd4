"""The ledger: mergeable totals. Meters gather increments, a delta freezes them, totals are the sum of deltas."""

from capwatch.ledger.delta import LASTING, Delta, Gathering
from capwatch.ledger.names import OTHER, UNKNOWN, Names
from capwatch.ledger.sums import Closed, Follower, Sums
from capwatch.ledger.table import (
    BOUND,
    CLASS,
    DRIVER,
    ENGINE,
    GPU,
    GPU_NAME,
    MODEL,
    POOL,
    RETIRED,
    ROUTE,
    SOURCE,
    TENANT,
    UUID,
    XID,
    Axis,
    Keys,
    Sketch,
    Table,
)
from capwatch.ledger.totals import Totals

__all__ = [
    "BOUND",
    "CLASS",
    "DRIVER",
    "ENGINE",
    "GPU",
    "GPU_NAME",
    "LASTING",
    "MODEL",
    "OTHER",
    "POOL",
    "RETIRED",
    "ROUTE",
    "SOURCE",
    "TENANT",
    "UNKNOWN",
    "UUID",
    "XID",
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
