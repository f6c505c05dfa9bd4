"""Replica-seconds: what a request costs the pool that served it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capwatch.capacity import work
from capwatch.record import OUTCOMES, Batch, Floats, zeroed

GIVEN_UP = tuple(OUTCOMES.index(name) for name in ("client_abort", "timeout"))
"""Outcomes of requests that nobody waited for to the end: their cost is for nothing."""


class Cost(NamedTuple):
    """float64[n] each, replica-seconds; NaN where the log tells no token counts, 0 for response-cache hits."""

    prefill: Floats
    decode: Floats
    saved: Floats
    """Prefill that cached tokens spared."""

    @property
    def total(self) -> Floats:
        """Prefill + decode."""
        return self.prefill + self.decode


def of(batch: Batch, prefill_rate: Floats, decode_rate: Floats) -> Cost:
    """Cost = (prompt − cached)/prefill rate + output/decode rate (capacity text A, F1).

    Args:
        batch: the requests; one of both counts may be unknown and then costs nothing.
        prefill_rate: float64[n], tokens/s of a replica of each request's pool.
        decode_rate: float64[n], the same for output tokens.
    """
    prompt, cached, output = batch["prompt_tokens"], batch["cached_tokens"], batch["output_tokens"]
    known = ~(np.isnan(prompt) & np.isnan(output))
    spared = zeroed(cached)
    prefill = np.where(known, zeroed(work.prefill(prompt, spared, prefill_rate)), np.nan)
    decode = np.where(known, zeroed(work.decode(output, decode_rate)), np.nan)
    saved = np.where(known, work.prefill(spared, 0.0, prefill_rate), np.nan)
    for part in (prefill, decode, saved):
        part[batch.cache_hit & known] = 0.0
    return Cost(prefill, decode, saved)
