"""Two pages of one replica: growth, restarts, rates."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect.vocabulary import PROCESS_START, Change, Term, difference
from capwatch.record import EngineSample

counters = st.dictionaries(
    st.sampled_from(["preemptions", "requests", "prompt_tokens"]),
    st.lists(st.none() | st.integers(0, 10**9).map(float), min_size=2, max_size=2),
)


@given(before=counters, after=counters)
def test_growth_is_never_negative(before: dict[str, list[float | None]], after: dict[str, list[float | None]]) -> None:
    """Whatever two pages say, no count falls."""
    assert all(value >= 0 for value in difference(before, after).grown.values())


@given(steps=st.lists(st.tuples(st.integers(0, 1000), st.booleans()), min_size=1))
def test_growth_adds_up_to_what_happened(steps: list[tuple[int, bool]]) -> None:
    """Over restarts, the growth from page to page is all the work after the first page, where each start is seen."""
    total, expected = 0, 0
    pages: list[dict[str, list[float | None]]] = [{"requests": [0.0], PROCESS_START: [0.0]}]
    for number, (work, restart) in enumerate(steps, 1):
        start = 100.0 * number if restart else pages[-1][PROCESS_START][0]
        total = work if restart else total + work
        expected += work
        pages.append({"requests": [float(total)], PROCESS_START: [start]})
    changes = [difference(dict(old), dict(new)) for old, new in pairwise(pages)]
    assert sum(change.grown["requests"] for change in changes) == expected
    assert [change.restarted for change in changes] == [restart for _, restart in steps]


def test_a_fallen_counter_is_a_restart_of_all_counters() -> None:
    """The others count from zero too, though they may have overtaken what they were."""
    change = difference({"a": [100.0], "b": [1.0]}, {"a": [7.0], "b": [5.0]})
    assert change == Change({"a": 7.0, "b": 5.0}, restarted=True)


def test_a_counter_is_compared_with_itself() -> None:
    """A page that begins to tell a quantity in a better way is compared in the way that both pages know."""
    assert difference({"a": [None, 100.0]}, {"a": [7.0, 120.0]}) == Change({"a": 20.0}, restarted=False)


def test_a_new_counter_has_not_grown() -> None:
    """What was not told before is no growth from zero."""
    assert difference({"a": [None]}, {"a": [7.0], "b": [1.0]}) == Change({}, restarted=False)


def test_rates_are_growth_over_time() -> None:
    """Tokens a second, preemptions since the page before, and the hit ratio of the interval."""
    grown = {
        "prompt_tokens": 50.0,
        "output_tokens": 20.0,
        "preemptions": 3.0,
        "prefix_queries": 8.0,
        "prefix_hits": 2.0,
    }
    assert Change(grown, restarted=False).complete(EngineSample(running=1), 5.0) == EngineSample(
        running=1, preemptions=3, prompt_tokens_per_s=10, output_tokens_per_s=4, prefix_hit_ratio=0.25
    )


def test_what_the_page_tells_itself_stays() -> None:
    """A rate gauge goes before our own quotient."""
    found = Change({"output_tokens": 20.0}, restarted=False).complete(EngineSample(output_tokens_per_s=7), 5.0)
    assert found.output_tokens_per_s == 7


def test_a_restart_has_counts_and_no_rates() -> None:
    """The new process lived for a part of the interval only."""
    found = Change({"output_tokens": 20.0, "preemptions": 2.0}, restarted=True).complete(EngineSample(), 5.0)
    assert found == EngineSample(preemptions=2, starts=1)


def test_a_misspelt_selector_is_refused() -> None:
    """A mistake in a table shows when it is loaded."""
    with pytest.raises(ValueError, match="no selector"):
        Term.of("a{b=c}")
