"""Latency by prompt length, by the hour for the history: what a long prompt adds to the wait for its first token.

It shows nothing on a page. Buckets are eight to a doubling, 9 % wide: a seventh of the bytes that the grid's own would
take, and finer than the lengths are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from capwatch.config.schema import Config
from capwatch.ledger import LASTING, POOL, Axis, Gathering, Sketch, Table, Totals
from capwatch.ledger.series import Series
from capwatch.record import Floats, Ints
from capwatch.seen import ROLLUP_S, Seen
from capwatch.sketch import LOWEST, SCHEMA, ZERO, coarsen, index, pack

BOUNDS: Final = (256, 1024, 4096, 16_384, 65_536, 262_144)
"""Prompt tokens, inclusive; the last length has no bound."""
LENGTH: Final = Axis("length", 3, (*map(str, BOUNDS), "more"))
SPANS: Final = ("ttft_s", "tpot_s")
SPAN: Final = Axis("span", 1, SPANS)
FINENESS: Final = 3
"""Buckets to a doubling, as a power of two."""

HISTORY_ONLY: Final = True

LENGTHS = Table((POOL, LENGTH), "lengths", ("requests",), slot_s=3600, slots=2, closes=True)
SKETCHES = Sketch((POOL, LENGTH, SPAN), "lengths", lasting=False, recent=False, rolls_up="lengths")


class Lengths:
    """TTFT and time per output token of requests that tell the length of their prompt."""

    tables = (LENGTHS,)
    sketches = (SKETCHES,)
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add each request to its length in its hour."""
        prompt = seen.batch["prompt_tokens"]
        rows = np.flatnonzero((seen.rollup_slot > LASTING) & ~np.isnan(prompt))
        if not len(rows):
            return
        keys = LENGTHS.pack(seen.pool[rows], np.searchsorted(BOUNDS, prompt[rows]))
        hours = (seen.rollup_slot[rows] * ROLLUP_S // LENGTHS.slot_s).astype(np.int64)
        into.add_slots(LENGTHS, hours, keys, np.ones(len(rows)))
        for number, values in enumerate((seen.batch["ttft_s"][rows], seen.batch.tpot_s[rows])):
            told = ~np.isnan(values)
            into.observe(SKETCHES, pack(keys[told] << SPAN.bits | number, coarse(values[told])), hours[told])

    def show(self, totals: Totals) -> Iterable[Series]:  # noqa: ARG002 - it keeps, and shows nothing
        """Nothing."""
        return ()


def coarse(values: Floats) -> Ints:
    """The bucket of the grid that stands for the ones around it, the values of which are within 5 %; zero is exact.

    >>> coarse(np.array([0.0, 1.0, 1.01, 1.09])).tolist()
    [-2048, -4, 4, 4]
    """
    width = 1 << SCHEMA - FINENESS
    bucket = index(values)
    found = np.maximum(coarsen(np.maximum(bucket, LOWEST), FINENESS) * width - width // 2, LOWEST)
    return np.where(bucket == ZERO, ZERO, found)


def METER(config: Config) -> Lengths:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Lengths()
