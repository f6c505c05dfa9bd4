"""The tables of the load: sums by slots of event time, per pool."""

from __future__ import annotations

from typing import Final

from capwatch import metrics as m
from capwatch.fleet import GAUGES
from capwatch.ledger import ENGINE, POOL, TENANT, Axis, Keys, Sketch, Table
from capwatch.seen import MOST_S
from capwatch.sketch import SLICE, SLICES

POOLS = Keys((POOL,))
FLOW = Table((POOL,), "flow", ("arrivals", "departures"))
PHASES = Table((POOL,), "phases", m.PHASES)
RECENT = Table((POOL,), "recent_phases", m.PHASES, slot_s=SLICE, slots=SLICES)
"""Residence of the requests that finished in each slice."""
RESIDENCE = Sketch((POOL,), "residence", lasting=False, recent=True)
SECONDS = Table((POOL,), "seconds", ("arrivals", "departures", "cost"), slot_s=1, slots=1560, closes=True)
"""Counts by second of the last 26 minutes: five minutes, behind them residences of `MOST_S`, and what may be late.
Cost counts in the second in which it arrived."""
WORK = Table(
    (POOL,),
    "work",
    (
        *("requests", "resent", "retries", "charged", "cost", "cost_squared", "prompt_tokens", "output_tokens"),
        *("served", "served_s", "held_s", "held_token_s", "waited", "late"),
    ),
    slot_s=SLICE,
    slots=SLICES,
)
"""What the requests that finished in each slice asked for.

requests, response-cache hits apart, those of them that only try again, and retries; charged: those that tell tokens,
their cost (replica-seconds) and its square, and their tokens; served: those that tell prefill and decode, and the
seconds of both; held: these seconds of those that tell tokens as well, and their tokens times these seconds; waited:
those that tell their wait, and how many of them waited longer than the budget.
"""
MILLISECOND = Axis("millisecond", 15)
STRETCHES: Final = 3
"""One slice in so many has its arrivals kept to the millisecond: enough to tell gaps, at a third of the bytes."""
ARRIVED = Table((POOL, MILLISECOND), "arrived", ("requests",), slot_s=SLICE, slots=2 * SLICES + MOST_S // SLICE)
"""Arrivals by millisecond of their slice."""
MEASURED = Table((POOL, ENGINE), "measured", ("requests", "samples"), slot_s=SLICE, slots=SLICES)
"""Requests waiting or running in each engine replica, summed over its samples of the last five minutes."""
ENGINES = Table((POOL, ENGINE), "engines", (*GAUGES, "state"), level=True)
"""What each replica last told."""
WAITING = Table((POOL,), "waiting", ("arrived",), level=True)
"""When the oldest request without a first token arrived (s, epoch); infinite where nobody waits."""
OVERLOADED = Table((POOL,), "overloaded", ("seconds",))
REFUSED = Table((TENANT,), "would_reject", ("requests",))
