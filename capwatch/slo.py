"""Does this request meet its service level? Good, missed, or not to be judged: exactly one of the three."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from capwatch.metrics import MISSED_REASONS, UNCLASSIFIED_REASONS
from capwatch.record import LIMITERS, OUTCOMES, Batch, Floats, Ints

VERDICTS: Final = ("good", *MISSED_REASONS, *UNCLASSIFIED_REASONS)
"""What `judge` returns indices into."""


class Targets(NamedTuple):
    """float64[n] each, seconds; NaN where no such bound is set. A bound itself is within."""

    ttft: Floats
    tpot: Floats
    e2e: Floats


def judge(batch: Batch, targets: Targets) -> Ints:
    """The verdict on each request: int64[n], an index into `VERDICTS`.

    The first rule that applies decides: a response-cache hit; what the client did; errors; no target; no timing;
    no tokens; then the bounds. TPOT needs two output tokens, with fewer only TTFT counts. A request that is no
    stream is judged by its e2e target alone. Missing data is never a hit or a miss.
    """
    ttft, tpot, duration, output = batch["ttft_s"], batch.tpot_s, batch["duration_s"], batch["output_tokens"]
    outcome = batch.outcome
    over_ttft = ttft > targets.ttft
    over_tpot = tpot > targets.tpot
    over_e2e = duration > targets.e2e
    untargeted = np.isnan(targets.ttft) & np.isnan(targets.tpot) & np.isnan(targets.e2e)
    tokenless = np.isnan(ttft) & ~(output > 0) & (batch.stream != 0)
    gave_up = tokenless & (duration > targets.ttft)  # left before the first token, after too long a wait
    whole = (batch.stream == 0) & ~np.isnan(targets.e2e) & ~np.isnan(duration)
    needs_ttft = ~(np.isnan(targets.ttft) & np.isnan(targets.tpot))
    rules = (
        (batch.cache_hit, "cache_hit"),
        (_among(outcome, "client_error", "content_filter"), "client"),
        (_among(outcome, "client_abort") & gave_up, "ttft"),
        (_among(outcome, "client_abort"), "client"),
        (_among(outcome, "timeout", "overload", "upstream_error", "gateway_error"), "error"),
        (_among(outcome, "rate_limited") & (batch.limiter == LIMITERS.index("gateway")), "client"),
        (_among(outcome, "rate_limited"), "error"),
        (untargeted, "no_slo"),
        (whole & over_e2e, "e2e"),
        (whole, "good"),
        (needs_ttft & np.isnan(ttft), "no_timing"),
        (~np.isnan(targets.e2e) & np.isnan(duration), "no_timing"),
        (~np.isnan(targets.tpot) & np.isnan(output), "no_tokens"),
        (~np.isnan(targets.tpot) & (output >= 2) & np.isnan(tpot), "no_timing"),
        (over_ttft & over_tpot, "both"),
        (over_ttft, "ttft"),
        (over_tpot, "tpot"),
        (over_e2e, "e2e"),
    )
    return np.select([rule for rule, _ in rules], [VERDICTS.index(name) for _, name in rules], VERDICTS.index("good"))


def _among(outcome: Ints, *names: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(outcome, [OUTCOMES.index(name) for name in names])
