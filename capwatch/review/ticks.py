"""The detector over the ticks of a history: it learns from what was before the week and watches the week."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from capwatch.config.schema import Drift, Pool
from capwatch.drift.detector import Detector
from capwatch.drift.history import pieces
from capwatch.drift.model import LEAST_DAYS, Settings, fit_span, reach
from capwatch.drift.sentence import Pool as Beside
from capwatch.drift.sentence import sentence
from capwatch.drift.ticks import DAY, TICK_S, Ticks
from capwatch.keep.bundle import Texts

LEARN_S: Final = 14 * 86400
"""A model is fitted on the ticks of two weeks: of older ones little would matter."""


@dataclass(frozen=True, slots=True)
class PoolTicks:
    """Ticks of one pool, and the names behind their codes by dimension.

    ``between`` is that of `capwatch.drift.history.History`: a week of a busy pool at once would be half a gibibyte.
    """

    between: Callable[[int, int], Ticks]
    texts: Texts

    def name(self, dimension: str, code: int) -> str:
        """The name of a code."""
        known = self.texts.texts[dimension]
        return known[code] if 0 <= code < len(known) else "unknown"


def watch(
    told: PoolTicks, pool: Pool, drift: Drift, since: float, until: float
) -> tuple[tuple[Mapping[str, Any], ...], str, float | None]:
    """(the events of a stretch as the contract tells them, why some may be missing, Cs² of the cost of requests).

    Cs² is n Σc²/(Σc)² − 1; None where nothing cost anything.

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
    detector = Detector(settings, told.name)
    why = ""
    before = begin - LEARN_S // TICK_S
    if (known := reach(told, before, begin)) is not None:
        detector.learn(fit_span(told, *known, settings))
    else:
        why = f"under {LEAST_DAYS} days of history before the week: only the wide rule was in force (+25 %)"
        for piece in pieces(told, before, begin):
            if len(piece):
                detector.feed(piece, int(piece.tick[-1]) + 1)
    beside = Beside(pool.replicas, pool.target_utilisation) if isinstance(pool.replicas, int) else None
    events, sums = [], np.zeros(3)
    for first in range(begin, end, DAY):
        last = min(first + DAY, end)
        day = told.between(first, last)
        sums += [day[name].sum() for name in ("n", "cost", "cost2")]
        told_now = detector.feed(day, last)
        events += [event.line(pool.name) | {"text": sentence(event, beside)} for event in told_now]
    n, cost, squares = sums.tolist()
    cv2 = max(0.0, n * squares / cost**2 - 1) if cost > 0 else None
    return tuple(one for one in events if one["at"] > since), why, cv2
