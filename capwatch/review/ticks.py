"""The detector over the ticks of a history: it learns from what was before the week and watches the week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from capwatch.config.schema import Drift, Pool
from capwatch.drift.detector import Detector
from capwatch.drift.event import DIMENSIONS
from capwatch.drift.model import LEAST_DAYS, Settings, fit, long_enough
from capwatch.drift.sentence import Pool as Beside
from capwatch.drift.sentence import sentence
from capwatch.drift.ticks import DAY, TICK_S, Ticks
from capwatch.keep.slot import Names
from capwatch.record import Floats, Ints

LEARN_S: Final = 28 * 86400
"""A model is fitted on the ticks of four weeks."""


@dataclass(frozen=True, slots=True)
class PoolTicks:
    """Ticks of one pool, and the names behind their codes by dimension."""

    ticks: Ticks
    names: Mapping[str, list[str]]

    def name(self, dimension: str, code: int) -> str:
        """The name of a code."""
        texts = self.names[dimension]
        return texts[code] if 0 <= code < len(texts) else "unknown"


def by_pool(tick: Ints, row: Ints, values: Floats, known: Sequence[Names]) -> dict[str, PoolTicks]:
    """The ticks of each pool.

    Args:
        tick: int64[n], event time // 10 s, ascending.
        row: int64[n], index into ``known``.
        values: float64[n, columns of `SUMS`].
        known: pool, tenant, route and class.
    """
    pools = np.array([name[0] for name in known])
    found = {}
    for pool in np.unique(pools[row]).tolist():
        mine = (pools == pool)[row]
        found[pool] = _of_pool(tick[mine], row[mine], values[mine], known)
    return found


def _of_pool(tick: Ints, row: Ints, values: Floats, known: Sequence[Names]) -> PoolTicks:
    names: dict[str, list[str]] = {}
    columns: list[Ints] = []
    for place, dimension in enumerate(DIMENSIONS, start=1):  # names are pool, tenant, route, class
        texts = {text: code for code, text in enumerate(sorted({name[place] for name in known}))}
        names[dimension] = list(texts)
        columns.append(np.array([texts[name[place]] for name in known], np.int64)[row])
    return PoolTicks(Ticks.merge([Ticks(tick, columns[0], columns[1], columns[2], values)]), names)


def watch(
    told: PoolTicks, pool: Pool, drift: Drift, since: float, until: float
) -> tuple[tuple[Mapping[str, Any], ...], str]:
    """(the events of a stretch as the contract tells them, why some may be missing).

    Args:
        told: the ticks of the stretch and of what was before it.
        pool: the pool, with the rates that its ticks were summed with.
        drift: what the operator sets.
        since, until: s, epoch.
    """
    begin, end = int(since // TICK_S), int(until // TICK_S)
    settings = Settings(
        pool.prefill_tokens_per_second,
        pool.decode_tokens_per_second,
        drift.false_alarms_per_month,
        drift.minimum_effect,
    )
    before, rest = told.ticks.between(begin - LEARN_S // TICK_S, begin), told.ticks.between(begin, end)
    detector = Detector(settings, told.name)
    why = ""
    if long_enough(before):
        detector.learn(fit(before, settings))
    else:
        why = f"under {LEAST_DAYS} days of history before the week: only the wide rule was in force (+25 %)"
        if len(before):
            detector.feed(before, begin)
    beside = Beside(pool.replicas, pool.target_utilisation) if isinstance(pool.replicas, int) else None
    events = []
    for first in range(begin, end, DAY):
        last = min(first + DAY, end)
        told_now = detector.feed(rest.between(first, last), last)
        events += [event.line(pool.name) | {"text": sentence(event, beside)} for event in told_now]
    return tuple(one for one in events if one["at"] > since), why


def service_cv2(told: PoolTicks, since: float, until: float) -> float | None:
    """Cs² of the cost of requests in a stretch: n Σc²/(Σc)² − 1; None where nothing cost anything."""
    ticks = told.ticks.between(int(since // TICK_S), int(until // TICK_S))
    n, cost, squares = (float(ticks[name].sum()) for name in ("n", "cost", "cost2"))
    return max(0.0, n * squares / cost**2 - 1) if cost > 0 else None
