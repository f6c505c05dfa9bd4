"""Requests of the pipeline as rows of the detector."""

from __future__ import annotations

import numpy as np

from capwatch.capacity import work
from capwatch.config.schema import Pool
from capwatch.dedupe import digest
from capwatch.drift.rows import FAILED, Rows
from capwatch.record import MISSING, OUTCOMES, Floats, Ints, zeroed
from capwatch.seen import Seen

_FAILED = np.isin(OUTCOMES, list(FAILED))


def rows(seen: Seen, chosen: Ints, pool: Pool) -> Rows:
    """Some requests of a batch, those of one pool, in the order of their event time."""
    batch, groups = seen.batch, seen.groups
    chosen = chosen[np.argsort(seen.event_at[chosen], kind="stable")]
    of = groups.of[chosen]
    prompt, cached = batch["prompt_tokens"][chosen], batch["cached_tokens"][chosen]
    outcome = batch.outcome[chosen]
    return Rows(
        at=seen.event_at[chosen],
        tenant=groups.tenant[of],
        route=groups.route[of],
        klass=groups.klass[of],
        model=groups.model[of],
        group=_groups([batch.attempt_group[row] for row in chosen.tolist()]),
        prompt=prompt,
        cached=np.minimum(cached, prompt),
        output=batch["output_tokens"][chosen],
        failed=(outcome >= 0) & _FAILED[outcome],
        wait=_wait(seen, chosen, work.prefill(prompt, zeroed(cached), pool.prefill_tokens_per_second)),
    )


def _groups(texts: list[str | None]) -> Ints:
    """A number for each text, at least 0 and the same in every process; −1 for none."""
    numbers = [-1 if text is None or text in MISSING else digest(text) & ((1 << 62) - 1) for text in texts]
    return np.array(numbers, np.int64)


def _wait(seen: Seen, chosen: Ints, prefill: Floats) -> Floats:
    """S in the queue: as the log tells it, else what the first token took longer than the prompt's own work."""
    told, ttft = (seen.batch[name][chosen] for name in ("queue_s", "ttft_s"))
    return np.where(np.isnan(told), np.maximum(0.0, ttft - prefill), told)
