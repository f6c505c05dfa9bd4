"""What is told of a week beside its requests: tries, work for nothing, engines, starts, lines, latency by length.

Everything is by pool and by a name, as a server's own gauges and counters are (`capwatch.review.asked`), so that a
section reads one thing whatever the source. What nothing tells is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.capacity.bursts import retry_amplification
from capwatch.keep import slot
from capwatch.keep.past import KINDS
from capwatch.keep.slot import Slot
from capwatch.meters.engine import STARTED
from capwatch.meters.lengths import BOUNDS, LENGTH, SPAN, SPANS
from capwatch.record import Floats, Ints
from capwatch.review.calendar import HOUR
from capwatch.review.hours import PLACE, Hours
from capwatch.review.stretch import IN_ENGINE
from capwatch.review.told import Told
from capwatch.review.week import Length
from capwatch.sketch import quantiles

QUANTILES: Final = (0.5, 0.95)


@dataclass(frozen=True, slots=True)
class Kept:
    """A table by the hour, of one pool or source: int64[n] hours ascending, float64[n] of each column."""

    at: Ints
    columns: Mapping[str, Floats]

    def sum(self, *names: str) -> float:
        """The sum of some columns over all hours."""
        return float(sum(self.columns[name].sum() for name in names))


def kept(name: str, slots: Iterable[Slot]) -> dict[str, Kept]:
    """The hours of a table of `KINDS` by the first of its names: pool or source."""
    columns = KINDS[name].table.columns
    rows: dict[str, list[tuple[int, Floats]]] = {}
    for one in slots:
        for names, values in zip(one.names, one.values, strict=True):
            rows.setdefault(names[0], []).append((one.at, values))
    found = {}
    for who, told in rows.items():
        values = np.array([row for _, row in told]).T
        found[who] = Kept(np.array([at for at, _ in told], np.int64), dict(zip(columns, values, strict=True)))
    return found


def quality(told: Told, begin: int, end: int) -> dict[str, dict[str, float]]:
    """What became of the lines of a stretch, by source: counts of each fate that occurred."""
    return {
        source: {name: float(values.sum()) for name, values in one.columns.items() if values.any()}
        for source, one in kept("books", told.beside("books", begin, end)).items()
    }


def shown(told: Told, hours: Hours, begin: int, end: int) -> dict[str, dict[str, float]]:
    """By pool, what the tables beside the requests tell of a stretch."""
    found: dict[str, dict[str, float]] = {}
    for pool, one in kept("cover", told.beside("cover", begin, end)).items():
        found.setdefault(pool, {}).update(tries(one))
    for pool, one in kept("fleet", told.beside("fleet", begin, end)).items():
        mine = found.setdefault(pool, {})
        mine.update(engines(one) | starts(one) | in_flight(one, hours.where("pool", pool)))
    return found


def tries(one: Kept) -> dict[str, float]:
    """Attempts, work for nothing, and how much of the engines' work the log tells of."""
    requests, resent, retries = (one.sum(name) for name in ("requests", "resent", "retries"))
    found = {"abandoned_requests": one.sum("abandoned"), "abandoned_replica_seconds": one.sum("abandoned_cost")}
    if one.sum("grouped"):
        found |= {"retries": retries, "resent_requests": resent, "resent_replica_seconds": one.sum("resent_cost")}
        unique = requests - resent
        amplification = retry_amplification(unique + retries, unique)
        if amplification is not None and unique > 0:
            found["retry_amplification_ratio"] = amplification
    engine = max(one.sum("engine_records"), one.sum("engine_counts"))
    if engine:
        found["coverage_ratio"] = one.sum("served") / engine
    if requests and one.sum("engine_records"):
        found["join_ratio"] = one.sum("joined") / requests
    return found


def engines(one: Kept) -> dict[str, float]:
    """Replicas as they were heard, and what happened to them; flaps: that came in an hour in which others left."""
    heard = one.columns["heard_s"] > 0
    if not heard.any():
        return {}
    replicas = one.columns["heard_s"][heard] / HOUR
    found = {
        "replicas_heard": float(replicas.mean()),
        "replicas_fewest": float(replicas.min()),
        "replicas_most": float(replicas.max()),
        "hours_heard": float(heard.sum()),
        "replicas_flapped": float(np.minimum(one.columns["came"], one.columns["left"]).sum()),
    }
    found |= {f"replicas_{name}": one.sum(name) for name in ("came", "left")}
    found |= {name: one.sum(name) for name in ("preemptions", "restarts")}
    if one.sum("recompute_told"):
        found["recomputed_tokens"] = one.sum("recomputed")
    if one.sum("kv_told_s"):
        found["kv_measured"] = one.sum("kv_s") / one.sum("kv_told_s")
    return found


def starts(one: Kept) -> dict[str, float]:
    """Cold starts by phase: how many reached it, and the mean seconds from their begin to it."""
    found: dict[str, float] = {}
    for name in STARTED:
        count = one.sum(name)
        if count:
            found |= {f"{name}_count": count, f"{name}_s": one.sum(f"{name}_s") / count}
    return found


def in_flight(one: Kept, hours: Hours) -> dict[str, float]:
    """Requests in the engines, as they count them and as λW, both the mean of the hours in which they tell them."""
    told = one.at[one.columns["in_flight_told_s"] > 0]
    if not len(told):
        return {}
    mine = np.isin(hours.at, told)
    law = float(hours.values[mine][:, [PLACE[name] for name in IN_ENGINE]].sum()) / (len(told) * HOUR)
    found = {"in_flight_measured": one.sum("in_flight_s") / (len(told) * HOUR), "in_flight_hours": float(len(told))}
    return found | ({"in_flight_law": law} if law else {})


def by_length(told: Told, begin: int, end: int) -> dict[str, list[Length]]:
    """Latency by prompt length of each pool, the shortest first."""
    slots = list(told.beside("lengths", begin, end))
    if not slots:
        return {}
    whole = slot.merged(slots, SPAN.bits, begin, end - begin)
    series, values, _ = quantiles(whole.cells, QUANTILES)
    spans: dict[int, dict[str, tuple[float, float]]] = {}
    for one, (half, most) in zip(series.tolist(), values.tolist(), strict=True):
        spans.setdefault(one >> SPAN.bits, {})[SPANS[one & 1]] = (half, most)
    found: dict[str, list[tuple[int, Length]]] = {}
    for row, (names, requests) in enumerate(zip(whole.names, whole.values[:, 0].tolist(), strict=True)):
        pool, length = names
        if length in LENGTH.values and requests:
            place = LENGTH.values.index(length)
            words = f"≤ {BOUNDS[place]:,}" if place < len(BOUNDS) else f"> {BOUNDS[-1]:,}"
            found.setdefault(pool, []).append((place, Length(words, requests, spans.get(row, {}))))
    return {pool: [one for _, one in sorted(rows, key=lambda row: row[0])] for pool, rows in found.items()}


def ready_s(shown: Mapping[str, float]) -> float | None:
    """Mean seconds from the start of an engine until it was ready; None where no start has told it."""
    return next((shown[name] for name in ("start_ready_s", "start_first_request_s") if name in shown), None)
