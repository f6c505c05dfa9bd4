"""The requests of a log as what replicas did: who was served when, by whom, with what work."""

from __future__ import annotations

from typing import Final

import numpy as np

from capwatch.calibrate.windows import Observed
from capwatch.config.schema import Pool
from capwatch.errors import CapwatchError
from capwatch.observed import Requests
from capwatch.record import Bools, zeroed

SILENT: Final = 0.05
"""Share of requests without tokens or times above which too much work is not seen."""
CLOCKLESS: Final = 0.9
"""Share of requests that end at one and the same time, from which the log has no times of its own."""


def served(told: Requests, pool: Pool | None, notes: list[str]) -> tuple[Observed, Requests]:
    """What was served, and its requests; what is to be known about it is added to ``notes``.

    Raises:
        CapwatchError: nothing can be made of them; the text says what is missing.
    """
    told = told.take(~told.cache_hit)
    if not len(told):
        raise CapwatchError("no requests: nothing to calibrate from")
    first = told["finished_at"] - told["decode_s"]
    began = first - told["prefill_s"]
    computed = np.maximum(told["prompt_tokens"] - zeroed(told["cached_tokens"]), 0.0)
    columns = np.stack([began, first, told["finished_at"], computed, told["output_tokens"]])
    whole = np.isfinite(columns).all(axis=0) & (told["output_tokens"] >= 1) & (columns[1] >= columns[0])
    if not whole.any():
        raise CapwatchError(_missing(told))
    whole &= _placed(told, whole, notes)
    kept = told.take(whole)
    silent = 1 - len(kept) / len(told)
    if silent > SILENT:
        notes.append(
            f"{silent:.0%} of the requests tell no tokens or times: their work is not seen, rates come out low"
        )
    _, counts = np.unique(kept["finished_at"], return_counts=True)
    if counts.max() > max(2, CLOCKLESS * len(kept)):
        raise CapwatchError(
            "the log has no times of its own, so that nobody knows how many requests ran at once: keep it with the"
            " times of its container runtime (wrapper: cri, docker, journald)"
        )
    if np.isnan(kept["cached_tokens"]).all():
        notes.append("the log does not tell cached tokens: every prompt token is taken as computed")
    return Observed.of(columns[:, whole], _replicas(kept, pool, notes)), kept


def _missing(told: Requests) -> str:
    """What no request tells."""
    names = ("finished_at", "prefill_s", "decode_s", "prompt_tokens", "output_tokens")
    silent = [name for name in names if np.isnan(told[name]).all()]
    if not silent:
        return "no request tells tokens and times together"
    hint = "; ttft_s gives both times" if {"prefill_s", "decode_s"} & set(silent) else ""
    return f"no request tells {', '.join(silent)}{hint}"


def _placed(told: Requests, whole: Bools, notes: list[str]) -> Bools:
    """bool[n], which requests may stay: all, or but for a few those that tell an engine where others do."""
    engine = told.labels["engine"]
    silent = np.array([name is None for name in engine.names], np.bool_)[engine.codes]
    share = float(silent[whole].mean())
    if not 0 < share <= SILENT:
        return np.ones(len(told), np.bool_)
    notes.append(f"{share:.1%} of the requests do not tell which engine served them: their work is not seen")
    return ~silent


def _replicas(kept: Requests, pool: Pool | None, notes: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Who served each, as a number."""
    engine = kept.labels["engine"]
    seen = {engine.names[code] for code in np.unique(engine.codes).tolist()}
    if None not in seen:
        return engine.codes
    if len(seen) > 1:
        raise CapwatchError(
            "some requests do not tell which engine served them; calibrate from those of one engine's log"
        )
    replicas = pool.replicas if pool is not None else None
    if replicas == "observed" or (replicas or 1) > 1:
        raise CapwatchError(
            f"pool {pool.name if pool else ''} has several replicas, and no request tells which of them served it: give"
            " the engine in the log (field `engine`), the log of one engine, or results of a load generator (--results)"
        )
    if replicas is None:
        notes.append(
            "taken as one replica: the log does not tell which engine served, nor the configuration how many there are"
        )
    return np.zeros(len(kept), np.int64)
