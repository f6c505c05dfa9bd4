"""What the replicas of a pool did every five minutes, from a history or from what a Prometheus scraped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.calibrate.means import Sums
from capwatch.errors import CapwatchError, UsageError
from capwatch.keep.past import Past
from capwatch.ledger import POOL
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES, PARTS
from capwatch.metrics import (
    COST_REPLICA_SECONDS,
    ENGINE_KV_CACHE_CAPACITY_TOKENS,
    PHASE_SECONDS,
    PREFILL_SAVED_REPLICA_SECONDS,
    REPLICAS,
    ROUTE_OUTPUT_TOKENS,
    ROUTE_PROMPT_TOKENS,
    ROUTE_TTFT_SECONDS,
)
from capwatch.observed.counters import STEP_S, Counters
from capwatch.observed.prometheus import Server
from capwatch.observed.scraped import WEEK_S
from capwatch.record import Floats
from capwatch.seen import ROLLUP_S
from capwatch.sketch import CELL_BITS

SILENT: Final = 0.05
"""Share of requests with tokens but without a first token above which too much work is not seen."""


@dataclass(frozen=True, slots=True)
class Where:
    """Of what, and from where."""

    pool: str
    source: str
    """`history` or `prometheus`."""
    place: str
    until: float
    """s, epoch: end of the newest window."""
    kv_tokens: int | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """The windows, each of one replica on average."""

    about: Where
    windows: Sequence[Sums]
    prompt: Floats
    """float64[windows], mean prompt tokens, cached ones included."""
    hit_rate: float | None

    @property
    def lengths(self) -> tuple[Floats, Floats]:
        """Mean prompt and output of each window, as often as it had requests."""
        n = np.array([max(1, round(one.requests)) for one in self.windows], np.int64)
        output = np.array([one.output / one.requests for one in self.windows])
        return np.repeat(self.prompt, n), np.repeat(output, n)


def of_state(folder: str, since: float, until: float, pool: str | None) -> Told:
    """From the five-minute rollups of a state directory.

    Raises:
        CapwatchError: there is no history, nothing in it is of that window and pool, or it does not tell the times.
    """
    past = Past(folder)
    try:
        place = [axis.name for axis in PARTS].index(POOL.name)
        begin = since if math.isfinite(since) else 0.0
        at, sums, counts, pools = [], [], [], set()
        for slot in past.rollups(begin, min(until, 1e11), int(ROLLUP_S)):
            pools |= {name[place] for name in slot.names}
            kept = np.array([pool in (None, name[place]) for name in slot.names], np.bool_)
            if kept.any():
                at.append(slot.at)
                sums.append(slot.values[kept].sum(axis=0))
                counts.append(_counts(slot.cells.arrays(), kept))
        name = _one(sorted(pools), pool, folder)
        settings = past.settings(float(at[-1])).get(name, {})
    finally:
        past.close()
    column = dict(zip(COLUMNS, np.array(sums).T, strict=True))
    told = dict(zip(MEASURES, np.array(counts).T, strict=True))
    replicas = settings.get("replicas") if isinstance(settings, dict) else None
    notes = [] if isinstance(replicas, int) else ["taken as one replica: the history does not tell how many there were"]
    about = Where(name, "history", folder, float(at[-1]) + ROLLUP_S, notes=notes)
    each = np.full(len(at), float(replicas) if isinstance(replicas, int) else 1.0)
    return _made(
        about, each,
        [
            told["output_tokens"], column["prompt_computed"], column["prompt_cached"], column["output"],
            column["queue"] + column["prefill"], column["decode"], told["ttft_s"],
        ],
    )  # fmt: skip


def of_server(server: Server, since: float, until: float, pool: str | None, now: float) -> Told:
    """From counters of capwatch; the week before now where no window is given.

    Raises:
        CapwatchError: the server is of no use, or tells of no request in that window and pool.
    """
    end = min(until, now)
    begin = since if math.isfinite(since) else end - WEEK_S
    every = Counters(server, begin // STEP_S * STEP_S, -(-end // STEP_S) * STEP_S, None)
    if not every.busy:
        raise every.missing()
    name = _one(sorted(every.busy), pool, server.url)
    counters = Counters(server, every.since, every.until, name)
    counted = {
        suffix: counters.rises(metric, part, STEP_S).total()
        for suffix, metric, part in (
            ("requests", ROUTE_OUTPUT_TOKENS, "_count"),
            ("prompt", ROUTE_PROMPT_TOKENS, "_sum"),
            ("output", ROUTE_OUTPUT_TOKENS, "_sum"),
            ("first", ROUTE_TTFT_SECONDS, "_count"),
            ("saved", PREFILL_SAVED_REPLICA_SECONDS, ""),
        )
    }
    phases = counters.rises(PHASE_SECONDS, step=STEP_S)
    prefill = counters.rises(COST_REPLICA_SECONDS, step=STEP_S).where(phase="prefill").total()
    saved = np.nan_to_num(counted["saved"])
    hit = np.divide(saved, saved + prefill, out=np.zeros(len(saved)), where=saved > 0)
    seen = counters.gauge(REPLICAS).total()[1:]
    notes = [] if not np.isnan(seen).all() else ["taken as one replica: no metric tells how many there were"]
    sizes = server.at(f'max({ENGINE_KV_CACHE_CAPACITY_TOKENS.name}{{pool="{name}"}})', counters.until)
    first_s = phases.where(phase="prefill").total() + np.nan_to_num(phases.where(phase="queue").total())
    kv_tokens = round(float(sizes.values[0, 0])) if len(sizes) else None
    return _made(
        Where(name, "prometheus", server.url, counters.until, kv_tokens, notes), np.where(np.isnan(seen), 1.0, seen),
        [
            counted["requests"], counted["prompt"] * (1 - hit), counted["prompt"] * hit, counted["output"],
            first_s, phases.where(phase="decode").total(), counted["first"],
        ],
    )  # fmt: skip


def _made(about: Where, replicas: Floats, columns: Sequence[Floats]) -> Told:
    """Columns are float64[windows]: requests, computed, cached and output tokens, seconds, those with first tokens."""
    known = ~np.isnan(np.array(columns)).any(axis=0) & (columns[0] > 0)
    requests, computed, cached, output, first_s, decode_s, first = (column[known] for column in columns)
    if not requests.sum():
        raise CapwatchError(f"{about.place}: no request of pool {about.pool} tells tokens there")
    silent = 1 - float(first.sum() / requests.sum())
    if silent > SILENT:
        raise CapwatchError(
            f"{about.place}: {silent:.0%} of the requests of pool {about.pool} tell no first token, so that when they"
            " were computed is not known; calibrate from a log of the engine"
        )
    each = replicas[known]
    rows = zip(*(column / each for column in (requests, computed, output, first_s, decode_s)), strict=True)
    prompts = float(computed.sum() + cached.sum())
    return Told(
        about,
        [Sums(STEP_S, *map(float, row)) for row in rows],
        (computed + cached) / requests,
        float(cached.sum()) / prompts if prompts else None,
    )


def _counts(cells: tuple[np.ndarray, np.ndarray], kept: np.ndarray) -> Floats:
    """float64[measures], how many requests tell each."""
    keys, counts = cells
    series = keys >> CELL_BITS
    mine = kept[series >> MEASURE.bits]
    return np.bincount(series[mine] & (1 << MEASURE.bits) - 1, counts[mine], len(MEASURES)).astype(np.float64)


def _one(there: Sequence[str], asked: str | None, place: str) -> str:
    """The pool to calibrate."""
    if not there:
        raise CapwatchError(f"{place}: its history has no request of that window")
    if asked is not None and asked not in there:
        raise UsageError(f"--pool: no request of {asked!r}; there are {', '.join(there)}")
    if asked is None and len(there) > 1:
        raise UsageError(f"--pool: several have requests; give one of {', '.join(there)}")
    return asked or there[0]
