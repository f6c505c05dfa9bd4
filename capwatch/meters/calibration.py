"""Calibrations of pools: their age, whether they still predict what is measured, and whether they are out of date."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.ledger import POOL, Gathering, Table, Totals
from capwatch.ledger.series import Series
from capwatch.load.pools import Load, loads
from capwatch.load.shown import by_pool
from capwatch.record import Floats, Ints, zeroed
from capwatch.seen import MOST_S, Seen
from capwatch.sketch import SLICE, SLICES

CHECKED = Table((POOL,), "checked", ("requests", "computed", "output", "seconds"), slot_s=SLICE, slots=SLICES)
"""Requests of calibrated pools that tell waiting, prefill and decode: their tokens, and the seconds of the two."""
RUNNING = Table((POOL,), "running", ("change",), slot_s=1, slots=1560)
"""How many more of them were running than in the second before; of 26 minutes, as long as a residence may be."""
DECODED = Table((POOL,), "decoded", CHECKED.columns, slot_s=SLICE, slots=SLICES)
"""The same of those that tell decode alone, and the seconds of it: their prefill has waiting in it."""
DECODING = Table((POOL,), "decoding", RUNNING.columns, slot_s=RUNNING.slot_s, slots=RUNNING.slots)
"""As `RUNNING`, of those and from their first token on."""
FULL: Final = 0.9
"""Share of the time that prefills take, from which what is left for decoding is not known well."""
FEWEST: Final = 30
"""Requests below which an error says nothing."""
FEWEST_LENGTHS: Final = 200
"""Requests below which a mean of lengths is off by a tenth by chance."""
RESIZED: Final = 0.02
"""Change of the KV cache that is another engine or other flags: starts of the same one differ by less."""
LONGER: Final = 1.5
"""Factor of mean lengths from which a profile is another: smaller changes are what a linear cost is for."""


class Calibrated:
    """Contract 4.5, of pools with a `calibration`."""

    tables = (CHECKED, RUNNING, DECODED, DECODING)
    sketches = ()
    followers = ()

    def __init__(self, config: Config) -> None:
        self._config = config
        self._names = [pool.name for pool in config.pools if pool.measured is not None]

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Add what tells its times, of the pools that have something to be checked."""
        if not self._names:
            return
        batch = seen.batch
        decoded = ~np.isnan(batch["decode_s"] + batch["output_tokens"]) & seen.timely & ~batch.cache_hit
        pools = np.array([into.names.id(POOL.name, name) for name in self._names])
        decoded &= np.isin(seen.pool, pools)
        whole = decoded & ~np.isnan(batch["queue_s"] + batch["prefill_s"])
        self._book(seen, into, np.flatnonzero(whole), batch["prefill_s"] + batch["decode_s"], (CHECKED, RUNNING))
        self._book(seen, into, np.flatnonzero(decoded & ~whole), batch["decode_s"], (DECODED, DECODING))

    @staticmethod
    def _book(seen: Seen, into: Gathering, rows: Ints, seconds: Floats, tables: tuple[Table, Table]) -> None:
        batch, checked, running = seen.batch, *tables
        served = seconds[rows]
        computed = zeroed(batch["prompt_tokens"][rows]) - zeroed(batch["cached_tokens"][rows])
        columns = (np.ones(len(rows)), np.maximum(computed, 0.0), batch["output_tokens"][rows], served)
        into.add_slots(checked, seen.slot[rows], seen.pool[rows], *columns)
        end = seen.event_at[rows]
        for at, sign in ((end - np.minimum(served, MOST_S), 1.0), (end, -1.0)):
            second = np.floor(at)
            # Part of the second is before it: that of the one before is the mean, a second late, and never in future.
            for slot, part in ((second - 1, 1 - (at - second)), (second, at - second)):
                into.add_slots(running, slot.astype(np.int64), seen.pool[rows], sign * part)

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        if not self._names:
            return
        found = [load for load in loads(self._config, totals) if load.pool.measured is not None]
        checked, decoded = totals.window(CHECKED), totals.window(DECODED)
        gauges = {
            m.CALIBRATION_AGE_SECONDS: lambda load: _age(load, totals.clock),
            m.CALIBRATION_ERROR_RATIO: lambda load: _either(
                _error(load, _of(checked, load), totals), _decode_error(load, _of(decoded, load), totals)
            ),
            m.CALIBRATION_STALE: _stale,
        }
        yield from by_pool(found, gauges)


def _age(load: Load, clock: float) -> float | None:
    assert load.pool.measured is not None  # noqa: S101 - only those are asked
    return max(0.0, clock - load.pool.measured.measured_at) if clock else None


def _error(load: Load, checked: Floats, totals: Totals) -> float | None:
    """Predicted over measured seconds of prefill and decode, less 1.

    All who run wait while a prompt is computed: those that an arrival finds, which are as many as there are on average
    (Wolff 1982), and itself. A token takes a step with as many as run where one runs.
    """
    measured = load.pool.measured
    requests, computed, output, seconds = checked.tolist()
    if measured is None or measured.step is None or measured.sequence is None or requests < FEWEST or not seconds:
        return None
    mean, beside = (one / (load.replicas or 1) for one in _running(load.number, load.settled, totals))
    if not beside:
        return None
    step = measured.step + measured.sequence * max(1.0, beside)
    predicted = (1 + mean) * computed / measured.prefill + output * step
    return float(predicted / seconds - 1)


def _decode_error(load: Load, decoded: Floats, totals: Totals) -> float | None:
    """The same of decode alone: a token after the first takes a step, in the time that prefills leave."""
    measured = load.pool.measured
    requests, computed, output, seconds = decoded.tolist()
    if measured is None or measured.step is None or measured.sequence is None or requests < FEWEST or not seconds:
        return None
    replicas = load.replicas or 1
    beside = _running(load.number, load.settled, totals, DECODING)[1] / replicas
    prefilling = computed / measured.prefill / (load.length * replicas)
    if not beside or prefilling > FULL:
        return None
    step = measured.step + measured.sequence * max(1.0, beside)
    return float((output - requests) * step / (1 - prefilling) / seconds - 1)


def _either(first: float | None, second: float | None) -> float | None:
    return second if first is None else first


def _of(window: tuple[Ints, Floats], load: Load) -> Floats:
    keys, sums = window
    found: Floats = sums[keys == load.number].sum(axis=0)
    return found


def _running(number: int, settled: float, totals: Totals, table: Table = RUNNING) -> tuple[float, float]:
    """How many ran at once: on average over time, and where one ran; 0 where that is not known.

    Whoever runs at a time ends later, so that all changes from then on add up to minus their number.
    """
    slots = totals.slots(table)
    at = np.array([slot for slot in sorted(slots) if slot > totals.clock - SLICE * SLICES - (totals.clock - settled)])
    if not len(at):
        return 0.0, 0.0
    change = np.zeros(int(at[-1] - at[0]) + 1)
    for slot in at.tolist():
        sums = slots[slot]
        change[slot - int(at[0])] = sums.values[sums.keys == number, 0].sum()
    running = np.maximum(change.cumsum() - change.sum(), 0.0)[: max(1, math.floor(settled) - int(at[0]))]
    total = float(running.sum())
    return total / len(running), float((running**2).sum()) / total if total else 0.0


def _stale(load: Load) -> Iterator[float]:
    """Whether engine, profile are others than those that were measured; NaN where it is not known."""
    measured = load.pool.measured
    assert measured is not None  # noqa: S101 - only those are asked
    sizes = load.engines["kv_capacity_tokens"]
    sizes = sizes[~np.isnan(sizes)]
    then = measured.kv_pool_tokens
    yield float(np.abs(sizes / then - 1).max() > RESIZED) if then and len(sizes) else math.nan
    charged = load.work["charged"]
    pairs = ((load.work["prompt_tokens"], measured.prompt), (load.work["output_tokens"], measured.output))
    ratios = [tokens / charged / mean for tokens, mean in pairs if mean] if charged >= FEWEST_LENGTHS else []
    yield float(any(not 1 / LONGER <= ratio <= LONGER for ratio in ratios)) if ratios else math.nan


METER = Calibrated
