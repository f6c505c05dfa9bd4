"""KV memory: what running sequences need of it."""

from __future__ import annotations

from capwatch.capacity.kv import demand_tokens
from capwatch.load.pools import Load


def demand(load: Load) -> float | None:
    """Tokens that running sequences hold at most (F50): their number times mean prompt and output of one that runs."""
    return None if load.running is None or load.live_tokens is None else demand_tokens(load.running, load.live_tokens)


def demand_ratio(load: Load) -> float | None:
    """That over what the replicas hold: configured, else as the engines tell it."""
    tokens, pool = demand(load), load.told("kv_capacity_tokens")
    if load.pool.kv_pool_tokens is not None and load.replicas is not None:
        pool = load.pool.kv_pool_tokens * load.replicas
    return None if tokens is None or not pool else tokens / pool
