"""The duplicate window: an id counts once an hour, and what is no id is never the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch import dedupe
from capwatch.dedupe import SEGMENTS, Seen
from tests.spine import NOW, Spine, request

HOUR = 3600.0


def repeats(seen: Seen, *ids: str | None, clock: float = NOW, source: str = "log") -> list[bool]:
    """Which of these ids are repeats."""
    found: list[bool] = seen.repeats(source, ids, np.full(len(ids), clock)).tolist()
    return found


def test_an_id_repeats_within_and_between_batches() -> None:
    """The first is none."""
    seen = Seen(HOUR)
    assert repeats(seen, "a", "b", "a") == [False, False, True]
    assert repeats(seen, "c", "b", clock=NOW + 60) == [False, True]


@pytest.mark.parametrize("nothing", [None, "", "-", "null", "None", "N/A"])
def test_what_says_nothing_is_no_id(nothing: str | None) -> None:
    """Rows without an id are all different."""
    assert repeats(Seen(HOUR), nothing, nothing, "a", nothing, "a") == [False, False, False, False, True]


def test_ids_are_told_apart_by_source() -> None:
    """Two sources may count in the same way."""
    seen = Seen(HOUR)
    assert [repeats(seen, "1", source="a"), repeats(seen, "1", source="b")] == [[False], [False]]


@pytest.mark.parametrize(("later", "repeated"), [(3599.0, True), (3601.0, True), (3901.0, False)])
def test_the_window_is_an_hour_and_up_to_a_twelfth(later: float, repeated: bool) -> None:
    """An id is forgotten even if nothing else was seen meanwhile."""
    seen = Seen(HOUR)
    repeats(seen, "a")
    assert repeats(seen, "a", clock=NOW + later) == [repeated]


def test_no_window_no_repeats() -> None:
    """0 switches deduplication off, also where a state still remembers ids."""
    before = Seen(HOUR)
    repeats(before, "a")
    seen = Seen(0.0)
    seen.load(before.save())
    seen.absorb(before.news())
    assert [repeats(seen, "a"), repeats(seen, "a")] == [[False], [False]]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the bound the window is shorter: the oldest segments go first."""
    monkeypatch.setattr(dedupe, "MOST", 10)
    seen = Seen(HOUR)
    for segment in range(4):
        repeats(seen, *(f"{segment}.{n}" for n in range(4)), clock=NOW + segment * 300)
    assert sum(len(data) for _, data in seen.save()) == 8 * 8
    assert repeats(seen, "0.0", "3.0", clock=NOW + 900) == [False, True]


def test_rows_of_one_batch_are_judged_by_the_clock_that_each_meets() -> None:
    """An id that comes again after the window is another request, also where one block holds hours of log."""
    seen = Seen(HOUR)
    clocks = np.array([NOW, NOW + 600, NOW + 7200, NOW + 7300])
    assert seen.repeats("log", ["a", "a", "a", "a"], clocks).tolist() == [False, True, False, True]


ROWS = st.lists(st.tuples(st.sampled_from("abcde"), st.floats(0, 2 * HOUR)), min_size=1, max_size=30)


@given(ROWS, st.lists(st.integers(1, 29)))
def test_how_rows_come_in_batches_makes_no_difference(rows: list[tuple[str, float]], cuts: list[int]) -> None:
    """One block of a replay finds what many small batches of a daemon find, and both what the rule says."""
    ids = [one for one, _ in rows]
    clocks = NOW + np.add.accumulate(np.array([step for _, step in rows]))
    whole = Seen(HOUR).repeats("log", ids, clocks).tolist()
    edges = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))})
    parted = Seen(HOUR)
    found = [
        repeated
        for begin, end in pairwise(edges)
        for repeated in parted.repeats("log", ids[begin:end], clocks[begin:end]).tolist()
    ]
    first: dict[str, int] = {}
    expected = []
    for one, segment in zip(ids, (clocks // (HOUR / SEGMENTS)).tolist(), strict=True):
        expected.append(one in first and segment - first[one] <= SEGMENTS)
        if not expected[-1]:
            first[one] = segment
    assert whole == found == expected


IDS = st.lists(st.lists(st.one_of(st.none(), st.sampled_from("abcdefg")), max_size=6), max_size=6)


@given(IDS, st.integers(0, 6), st.integers(0, 6))
def test_a_restart_forgets_nothing(batches: list[list[str | None]], saved: int, absorbed: int) -> None:
    """Whether an id comes back from what was saved, or from the news after that."""
    whole, again = Seen(HOUR), Seen(HOUR)
    expected = [repeats(whole, *ids, clock=NOW + i * 200) for i, ids in enumerate(batches)]
    before = Seen(HOUR)
    for i, ids in enumerate(batches[:saved]):
        repeats(before, *ids, clock=NOW + i * 200)
    before.news()
    again.load(before.save())
    for i, ids in enumerate(batches[saved : saved + absorbed], start=saved):
        repeats(before, *ids, clock=NOW + i * 200)
    again.absorb(before.news())
    rest = batches[saved + absorbed :]
    found = [repeats(again, *ids, clock=NOW + i * 200) for i, ids in enumerate(rest, start=saved + absorbed)]
    assert found == expected[len(batches) - len(rest) :]


def test_a_repeat_is_a_skipped_line_and_counts_nowhere_else() -> None:
    """Its route's duplicates say that it was there; the first batch's ids are remembered like all others."""
    spine = Spine()
    for _ in range(3):
        spine.feed(request(request_id="1", prompt_tokens=10, duration_s=1.0), now=NOW)
    lines = [spine.value(f"lines_{fate}_total", source="log") for fate in ("read", "counted", "skipped")]
    assert (lines, spine.values("duplicates_total")) == ([3, 1, 2], {(("route", "/chat"),): 2.0})
    assert (spine.total("requests_total"), spine.total("tokens_total"), spine.total("arrivals_total")) == (1, 10, 1)


def test_the_same_id_hours_later_is_another_request() -> None:
    """By event time."""
    spine = Spine()
    spine.feed(request(request_id="1"), now=NOW)
    spine.feed(request(request_id="1", finished_at=NOW + 7200), now=NOW + 7200)
    assert spine.total("requests_total") == 2


def test_a_window_of_next_to_nothing_is_short() -> None:
    """It is allowed, and tells apart what comes at once."""
    seen = Seen(1e-300)
    assert repeats(seen, "a", "a", clock=1.8e9) == [False, True]
    assert repeats(seen, "a", clock=1.8e9 + 1) == [False]
