"""Simulated requests as the batch that their log lines would become: the short road into the pipeline."""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.demo.draw import LIMIT, Rows
from capwatch.demo.workload import KINDS, MODEL, TENANTS
from capwatch.demo.writers import CAP
from capwatch.record import LABELS, LIMITERS, NUMBERS, OUTCOMES, USAGES, Batch, Texts

# What a fate (`OK`, `ABORT`, `LIMIT`) is in a record.
_OUTCOME: Final = np.array([OUTCOMES.index(name) for name in ("ok", "client_abort", "rate_limited")])
_USAGE: Final = np.array([USAGES.index(name) for name in ("provider", "estimated", "missing")])
_STATUS: Final = np.array([-1, 499, 429])


def columns(rows: Rows) -> Batch:
    """What the gateway's log tells of requests, as its reader would find it; only their ids are left out."""
    n = len(rows)
    served = rows.fate != LIMIT
    nothing = np.full(n, np.nan)
    ttft = rows.gateway + rows.queue + rows.prefill
    duration = rows.ended - rows.arrived
    numbers = dict.fromkeys(NUMBERS, nothing) | {
        "started_at": rows.arrived,
        "finished_at": rows.ended,
        "duration_s": duration,
        "ttft_s": np.where(served, ttft, np.nan),
        "gateway_s": rows.gateway,
        "prefill_s": np.where(served, rows.queue + rows.prefill, np.nan),
        "decode_s": np.where(served, rows.decode, np.nan),
        "prompt_tokens": np.where(served, rows.computed + rows.cached, np.nan),
        "cached_tokens": np.where(served, rows.cached, np.nan),
        "output_tokens": np.where(served, rows.output, np.nan),
        "max_output_tokens": np.full(n, float(CAP)),
        "retries": np.zeros(n),
    }
    silent = Texts(np.zeros(n, np.int64), [None])
    labels = dict.fromkeys(LABELS, silent) | {
        "tenant": Texts(rows.tenant, list(TENANTS)),
        "route": Texts(rows.kind, [kind.route for kind in KINDS]),
        "model": Texts(np.zeros(n, np.int64), [MODEL]),
    }
    no_ids: list[str | None] = [None] * n
    return Batch(
        numbers=numbers,
        labels=labels,
        request_id=no_ids,
        attempt_group=no_ids,
        dedupe_key=no_ids,
        outcome=_OUTCOME[rows.fate],
        usage=_USAGE[rows.fate],
        status=_STATUS[rows.fate],
        stream=np.ones(n, np.int64),
        limiter=np.where(served, -1, LIMITERS.index("gateway")),
        cache_hit=np.zeros(n, np.bool_),
        uncapped=np.zeros(n, np.bool_),
        part=np.zeros(n, np.bool_),
    )
