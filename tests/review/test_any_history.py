"""Whatever a history holds, it is reviewed: rows of any sums, seconds, settings and notes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from capwatch.console.answer import as_json
from capwatch.keep.past import HOUR, KINDS
from capwatch.keep.slot import FINENESS, Slot
from capwatch.meters.rollup import COLUMNS, MEASURE, MEASURES
from capwatch.record import Floats, Ints, Note
from capwatch.review.document import as_plain, of
from capwatch.review.fine import Fine
from capwatch.review.gather import gathered
from capwatch.review.html import html
from capwatch.review.markdown import markdown
from capwatch.sketch import HIGHEST, ZERO, Cells, pack
from tests.review.made import WEEK

NAMES = st.sampled_from(["acme", "unknown", "other", "", "a|b", "<b>", "é\u202e", "x" * 200])
HOURS = st.integers(-13 * 168, 167)
Settings = Mapping[str, Any]
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""To make a failing history small takes minutes."""


@st.composite
def slots(draw: st.DrawFn) -> Slot:
    """An hour with some rows; sums may be anything that is finite."""
    names: list[tuple[str, ...]] = sorted(
        draw(st.sets(st.tuples(NAMES, NAMES, NAMES, st.sampled_from(["one", "two"]), NAMES), min_size=1, max_size=3))
    )
    finite = st.integers(0, 1 << 50).map(lambda one: one / FINENESS) | st.sampled_from([0.0, 1.0, 3600.0])
    values = np.array([[draw(finite) if draw(st.booleans()) else 0.0 for _ in COLUMNS] for _ in names])
    cells = Cells()
    for _ in range(draw(st.integers(0, 12))):
        series = draw(st.integers(0, len(names) - 1)) << MEASURE.bits | draw(st.integers(0, len(MEASURES) - 1))
        bucket = draw(st.integers(ZERO, HIGHEST))
        cells.add(pack(np.array([series]), np.array([bucket])), np.array([draw(st.integers(1, 10**9))]))
    return Slot(0, HOUR, names, values, cells)


@st.composite
def others(draw: st.DrawFn) -> dict[str, Slot]:
    """An hour of each of the other tables, or of some; names and sums may be anything that is finite."""
    found = {}
    for name in sorted(draw(st.sets(st.sampled_from(sorted({*KINDS} - {"rollup"}))))):
        table, bits = KINDS[name].table, KINDS[name].bits
        first = NAMES if name == "books" else st.sampled_from(["one", "two"])
        axes = [first, *(st.sampled_from([*axis.values, "gone"]) for axis in table.axes[1:])]
        names = sorted(draw(st.sets(st.tuples(*axes), min_size=1, max_size=4)))
        finite = st.integers(0, 1 << 50).map(lambda one: one / FINENESS) | st.sampled_from([0.0, 1.0, 3600.0])
        values = np.array([[draw(finite) if draw(st.booleans()) else 0.0 for _ in table.columns] for _ in names])
        cells = Cells()
        for _ in range(draw(st.integers(0, 4)) if bits else 0):
            series = draw(st.integers(0, len(names) - 1)) << bits | draw(st.integers(0, (1 << bits) - 1))
            cells.add(pack(np.array([series]), np.array([draw(st.integers(ZERO, HIGHEST))])), np.array([7]))
        found[name] = Slot(0, HOUR, names, values, cells)
    return found


@st.composite
def pools(draw: st.DrawFn) -> Settings:
    """Settings that a configuration could have left, or another version."""
    return {
        "name": "one",
        "replicas": draw(st.sampled_from([None, 1, 12, 10**4, "observed"])),
        "slots": draw(st.sampled_from([None, 1, 32])),
        "kv_pool_tokens": draw(st.sampled_from([None, 1, 30_500])),
        "zones": draw(st.sampled_from([None, 1, 3])),
        "cold_start": draw(st.sampled_from([None, 0.0, 170.0])),
        "prefill_tokens_per_second": draw(st.sampled_from([0.001, 4000.0])),
        "price": draw(st.sampled_from([{}, {"replica_hour_usd": 12.0, "rented_per_million_usd": 8.0}])),
        "stages": draw(st.sampled_from([{}, {"gateway": {"rate": 60.0}}, {"model": {"rate": 1e-3}}])),
        "later": draw(st.sampled_from([None, [1]])),
    }


class Any_:  # noqa: N801 - typing has the better name
    """A past of these slots."""

    def __init__(
        self,
        told: dict[int, Slot],
        beside: dict[int, dict[str, Slot]],
        counts: list[tuple[int, float]],
        pool: Settings,
        notes: list[float],
    ) -> None:
        self._told, self._beside, self._counts, self._pool, self._notes = told, beside, counts, pool, notes

    def hours(self, since: float, until: float) -> Iterator[Slot]:
        for hour, one in sorted(self._told.items()):
            at = WEEK.since + hour * HOUR
            if since <= at < until:
                yield Slot(at, HOUR, one.names, one.values, one.cells)

    def beside(self, name: str, since: float, until: float) -> Iterator[Slot]:
        for hour, slots in sorted(self._beside.items()):
            at = WEEK.since + hour * HOUR
            if since <= at < until and name in slots:
                yield replace(slots[name], at=at)

    def seconds(self, pool: str, since: float, until: float) -> tuple[Ints, Floats]:
        found = [(WEEK.since + at, count) for at, count in self._counts if since <= WEEK.since + at < until]
        at = np.array([one for one, _ in found], np.int64)
        return at, np.array([[count, count, count / 7] for _, count in found]).reshape(len(found), 3)

    def ticks(self, pool: str, since: float, until: float) -> None:
        return

    def events(self, since: float, until: float) -> None:
        return

    def fine(self, begin: int, end: int) -> Fine:
        return Fine(begin, end)

    def annotations(self, since: float, until: float) -> list[Note]:
        return [Note(WEEK.since + at, None, "deploy\n|x") for at in self._notes]

    def settings(self, at: float) -> Mapping[str, Any]:
        return {"one": self._pool}


@settings(max_examples=25, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(HOURS, slots(), max_size=8),
    st.dictionaries(st.integers(0, 167), others(), max_size=3),
    st.lists(st.tuples(st.integers(0, 7 * 86400 - 1), st.floats(0, 1e5)), max_size=20, unique_by=lambda one: one[0]),
    pools(),
    st.lists(st.floats(0, 604_800), max_size=3),
)
def test_any_history_is_reviewed(
    told: dict[int, Slot],
    beside: dict[int, dict[str, Slot]],
    counts: list[tuple[int, float]],
    pool: Settings,
    notes: list[float],
) -> None:
    """Page, Markdown and JSON come out, and no number in them is infinite or none."""
    counts.sort()
    made = of(gathered(Any_(told, beside, counts, pool, notes), WEEK, None, "anything"))
    found = json.loads(as_json(as_plain(made)))
    assert found["week"] == "2026-W48"
    assert "<b>" not in html(made, lambda figure: "data:,")
    assert markdown(made).startswith("# Capacity review")
