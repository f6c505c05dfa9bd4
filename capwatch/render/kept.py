"""The numbers of one pool from the rollups of a state directory."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from capwatch import metrics as m
from capwatch.capacity.bursts import weighted
from capwatch.keep.past import Past
from capwatch.keep.slot import Slot
from capwatch.ledger import POOL, ROUTE, TENANT
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES, OUTCOME_COLUMNS, PARTS
from capwatch.record import Floats
from capwatch.render.observed import STEP_S, Observed, Outputs, choose, configured, dearest
from capwatch.sketch import CELL_BITS, bucket_of, middle

_TENANT, _ROUTE, _POOL = ([axis.name for axis in PARTS].index(one.name) for one in (TENANT, ROUTE, POOL))
_TOKENS: Final = [COLUMNS.index(kind) for kind in m.TOKEN_KINDS]
_COST: Final = [COLUMNS.index(name) for name in ("cost_prefill", "cost_decode")]
_OUTCOMES: Final = [COLUMNS.index(name) for name in OUTCOME_COLUMNS]
_INSIDE: Final = [COLUMNS.index(name) for name in ("prefill", "decode")]


def from_state(folder: str, since: float, until: float, wanted: str | None) -> Observed:
    """From the rollups of five minutes of a state directory."""
    past = Past(folder)
    try:
        slots = list(past.rollups(max(since, 0) // STEP_S * STEP_S, min(until, 1e11), STEP_S))
        pool = choose(sorted({name[_POOL] for slot in slots for name in slot.names}), wanted)
        settings = past.settings(1e11).get(pool)
    finally:
        past.close()
    return _Sums(slots, pool).observed(folder, settings)


class _Sums:
    """Sums of a pool over slots: work and tokens of tenants by slot, lengths of answers by route."""

    def __init__(self, slots: Sequence[Slot], pool: str) -> None:
        self.pool = pool
        self.begin, self.n = slots[0].at, (slots[-1].at - slots[0].at) // STEP_S + 1
        self.tenants: dict[str, Floats] = defaultdict(lambda: np.zeros(self.n))
        self.tokens: dict[str, Floats] = defaultdict(lambda: np.zeros(self.n))
        self.cells: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.whole = np.zeros(len(COLUMNS))
        for slot in slots:
            kept = np.array([name[_POOL] == pool for name in slot.names], np.bool_)
            self._add(slot, np.flatnonzero(kept).tolist())
            self._add_lengths(slot, kept)

    def _add(self, slot: Slot, rows: Sequence[int]) -> None:
        at = (slot.at - self.begin) // STEP_S
        for row in rows:
            tenant, values = slot.names[row][_TENANT], slot.values[row]
            self.tenants[tenant][at] += values[_COST].sum() / STEP_S
            self.tokens[tenant][at] += values[_TOKENS].sum() * 60 / STEP_S
            self.whole += values

    def _add_lengths(self, slot: Slot, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        keys, counts = slot.cells.arrays()
        series = keys >> CELL_BITS
        rows, measures = series >> MEASURE.bits, series & (1 << MEASURE.bits) - 1
        mine = np.flatnonzero((measures == MEASURES.index("output_tokens")) & kept[rows])
        routes, found = rows[mine].tolist(), bucket_of(keys[mine]).tolist()
        for row, bucket, count in zip(routes, found, counts[mine].tolist(), strict=True):
            self.cells[slot.names[row][_ROUTE]][bucket] += count

    def observed(self, folder: str, settings: Mapping[str, Any] | None) -> Observed:
        """All of it."""
        outputs = {route: _outputs(found) for route, found in self.cells.items()}
        costed = float(sum(one.n for one in outputs.values()))
        inside = float(self.whole[_INSIDE].sum())
        return Observed(
            self.pool, f"the history in {folder}", self.begin, self.begin + self.n * STEP_S,
            float(self.whole[_OUTCOMES].sum()), costed or math.nan, np.sum(list(self.tenants.values()), axis=0),
            dearest(self.tenants), dict(self.tokens), dict(sorted(outputs.items(), key=lambda pair: -pair[1].n)),
            inside / (self.n * STEP_S) if inside else None, configured(settings), settings,
        )  # fmt: skip


def _outputs(cells: Mapping[int, int]) -> Outputs:
    order = np.array(sorted(cells), np.int64)
    values, counts = middle(order, integers=True), np.array([cells[one] for one in order.tolist()])
    return Outputs(float(counts.sum()), weighted(values, counts, 0.99), float(values[-1]))
