"""The workload profile of a state directory: its seconds and rollups instead of single requests.

Quantiles are those of sketches, within 0.55 %; sums are exact. What is in no rollup (streaming, the spread of cost) is
null, with the reason.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import numpy as np

from capwatch.capacity.bursts import weighted
from capwatch.capacity.profile import arrivals_of, distribution_of
from capwatch.errors import CapwatchError
from capwatch.keep.past import HOUR, Past
from capwatch.keep.slot import Slot
from capwatch.ledger import CLASS, MODEL, POOL, ROUTE, TENANT
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES, OUTCOME_COLUMNS, PARTS
from capwatch.record import Floats
from capwatch.seen import ROLLUP_S
from capwatch.sketch import CELL_BITS, bucket_of, middle

Sums = Mapping[str, float]
_OUTCOMES: Final = [COLUMNS.index(name) for name in OUTCOME_COLUMNS]


def profile(folder: str, since: float, until: float, pool: str | None) -> dict[str, object]:
    """The document of a window, whose ends are moved outwards to those of rollups.

    Args:
        folder: the state directory.
        since, until: s, epoch; infinite where all there is is meant.
        pool: one pool; None: all.

    Raises:
        CapwatchError: there is no history, or nothing in it is of that window and pool.
    """
    past = Past(folder)
    try:
        span = int(ROLLUP_S) if math.isfinite(since) else HOUR
        begin = since // span * span if math.isfinite(since) else 0.0
        end = -(-until // span) * span if math.isfinite(until) else 1e11
        slots = list(past.rollups(begin, end, span))
        window = _Window(slots, pool)
        if not window.requests:
            raise CapwatchError(
                f"{folder}: its history has no request of that window{f' and pool {pool}' if pool else ''}"
            )
        first, last = float(slots[0].at), float(slots[-1].at + slots[-1].span)
        counts = np.zeros(int(last - first))
        for name in window.names(POOL.name):
            at, columns = past.seconds(name, first, last)
            np.add.at(counts, at - int(first), columns[:, 0])
        return window.document(first, last, counts, past.settings(last))
    finally:
        past.close()


class _Window:
    """The sums and sketches of all slots, by what they are about."""

    def __init__(self, slots: list[Slot], pool: str | None) -> None:
        self.sums: dict[tuple[str, ...], Floats] = defaultdict(lambda: np.zeros(len(COLUMNS)))
        self.lengths: dict[str, dict[int, int]] = {"prompt_tokens": defaultdict(int), "output_tokens": defaultdict(int)}
        self.told: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: dict.fromkeys(self.lengths, 0.0))
        place = [axis.name for axis in PARTS].index(POOL.name)
        for slot in slots:
            kept = np.array([pool in (None, name[place]) for name in slot.names], np.bool_)
            for row in np.flatnonzero(kept).tolist():
                self.sums[slot.names[row]] += slot.values[row]
            self._add_lengths(slot, kept)
        self.requests = sum(self._of(values)["requests"] for values in self.sums.values())

    def _add_lengths(self, slot: Slot, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        keys, counts = slot.cells.arrays()
        series = keys >> CELL_BITS
        rows, measures = series >> MEASURE.bits, series & (1 << MEASURE.bits) - 1
        for name, cells in self.lengths.items():
            mine = (measures == MEASURES.index(name)) & kept[rows]
            for row, bucket, n in zip(
                rows[mine].tolist(), bucket_of(keys[mine]).tolist(), counts[mine].tolist(), strict=True
            ):
                cells[bucket] += n
                self.told[slot.names[row]][name] += n

    @staticmethod
    def _of(values: Floats) -> Sums:
        told = dict(zip(COLUMNS, values.tolist(), strict=True))
        told["requests"] = float(values[_OUTCOMES].sum())
        told["cost"] = told["cost_prefill"] + told["cost_decode"]
        return told

    def names(self, axis: str) -> list[str]:
        """What there is of one axis, in the order of names."""
        place = [one.name for one in PARTS].index(axis)
        return sorted({name[place] for name in self.sums})

    def by(self, axis: str) -> Iterator[tuple[str, dict[str, float]]]:
        """The sums of each name of an axis, the most frequent first; how many tell lengths as `told_…`."""
        place = [one.name for one in PARTS].index(axis)
        found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for name, values in self.sums.items():
            for key, value in self._of(values).items():
                found[name[place]][key] += value
            for key, value in self.told[name].items():
                found[name[place]][f"told_{key}"] += value
        yield from sorted(found.items(), key=lambda pair: -pair[1]["requests"])

    def document(self, since: float, until: float, counts: Floats, settings: Mapping[str, object]) -> dict[str, object]:
        """The profile."""
        notes = {
            "streaming": "the history does not tell it",
            "cost.cv2": "the history does not tell the cost of single requests",
        }
        whole = {key: sum(one[key] for _, one in self.by(POOL.name)) for key in (*COLUMNS, "requests", "cost")}
        told = {name: sum(cells.values()) for name, cells in self.lengths.items()}
        prompts = whole["prompt_computed"] + whole["prompt_cached"]
        cv2 = float(counts.var() / counts.mean()) if counts.sum() > 2 else None
        notes["arrivals.cv2"] = "variance over mean of 1 s counts" if cv2 is not None else "fewer than three arrivals"
        tokens = {"prompt_tokens": prompts, "output_tokens": whole["output"]}
        return {
            "window": {
                "since": _time(since), "until": _time(until), "bucket_s": 1, "requests": int(whole["requests"]),
                "with_tokens_share": max(told.values()) / whole["requests"],
            },
            "arrivals": arrivals_of(counts, since, cv2, notes),
            **{name: self._lengths(name, total, notes) for name, total in tokens.items()},
            "classes": {name: _class(one, whole) for name, one in self.by(CLASS.name)},
            "streaming": None,
            "prefix_cache_hit_rate": whole["prompt_cached"] / prompts if prompts else None,
            "tenants": self._tenants(whole),
            **{
                key: {name: one["requests"] / whole["requests"] for name, one in self.by(axis)}
                for key, axis in (("models", MODEL.name), ("routes", ROUTE.name))
            },
            "cost": self._cost(whole, max(told.values()), settings, notes),
            "notes": notes,
        }  # fmt: skip

    def _lengths(self, name: str, total: float, notes: dict[str, str]) -> dict[str, float | None] | None:
        cells = self.lengths[name]
        if not cells:
            notes[name] = "the log does not tell it"
            return None
        buckets = np.array(sorted(cells), np.int64)
        values, counts = middle(buckets, integers=True), np.array([cells[bucket] for bucket in buckets.tolist()])
        p50, p95, p99 = (weighted(values, counts, q) for q in (0.5, 0.95, 0.99))
        return distribution_of(total / float(counts.sum()), (p50, p95, p99, float(values[-1])), name, notes)

    def _tenants(self, whole: Sums) -> dict[str, float | int | None]:
        tenants = [one for _, one in self.by(TENANT.name)]
        tokens = [one["prompt_computed"] + one["prompt_cached"] + one["output"] for one in tenants]
        costs = [one["cost"] for one in tenants]
        cost = whole["cost"]
        return {
            "count": len(tenants),
            "top1_share_of_tokens": max(tokens) / sum(tokens) if sum(tokens) else None,
            "top1_share_of_cost": max(costs) / cost if cost else None,
            "concentration": sum((one / cost) ** 2 for one in costs) if cost else None,
        }

    def _cost(
        self, whole: Sums, told: float, settings: Mapping[str, object], notes: dict[str, str]
    ) -> dict[str, float | str | None] | None:
        if not told:
            notes["cost"] = "no request tells token counts"
            return None
        pools = [settings.get(name) for name in self.names(POOL.name)]
        known = [one for one in pools if isinstance(one, dict) and not one.get("assumed")]
        if len(known) < len(pools):
            notes["cost.calibration"] = "rates are assumed, not measured: compare cost only within itself"
        return {
            "mean_replica_seconds": whole["cost"] / told,
            "prefill_replica_seconds": whole["cost_prefill"] / told,
            "decode_replica_seconds": whole["cost_decode"] / told,
            "cv2": None,
            "calibration": None
            if len(known) < len(pools)
            else ", ".join(dict.fromkeys(one.get("calibration") or "configured" for one in known)),
        }


def _class(one: Sums, whole: Sums) -> dict[str, float | None]:
    told = max(one["told_prompt_tokens"], one["told_output_tokens"])
    return {
        "share": one["requests"] / whole["requests"],
        "mean_cost": one["cost"] / told if told else None,
        "mean_computed_prompt_tokens": one["prompt_computed"] / one["told_prompt_tokens"]
        if one["told_prompt_tokens"]
        else None,
        "mean_output_tokens": one["output"] / one["told_output_tokens"] if one["told_output_tokens"] else None,
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
