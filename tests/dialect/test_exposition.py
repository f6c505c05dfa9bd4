"""Prometheus text and OpenMetrics pages: everything the reference parser reads, and patience with what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from capwatch.dialect.exposition import LONGEST_LINE, MOST_SERIES, series

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"))
numbers = st.floats(allow_nan=False, allow_infinity=False)


def read(page: str) -> list[tuple[str, dict[str, str], float]]:
    """Every series of a page."""
    return [(one.name, dict(one.labels), one.value) for one in series(page, lambda _: True)]


def registry(label: str, value: float) -> CollectorRegistry:
    """Metrics of three kinds."""
    found = CollectorRegistry()
    Gauge("g", "A gauge\nof two lines", ["a", "b"], registry=found).labels(label, "x,y}").set(value)
    Counter("c", "A counter", ["a"], registry=found).labels(label).inc(3)
    Histogram("h", "A histogram", registry=found).observe(0.3)
    return found


@given(label=texts, value=numbers)
def test_a_page_is_read_as_the_reference_parser_reads_it(label: str, value: float) -> None:
    """Labels with quotes, braces and line feeds, and all finite numbers, come out as they went in."""
    page = generate_latest(registry(label, value)).decode()
    expected = [
        (one.name, one.labels, one.value) for family in text_string_to_metric_families(page) for one in family.samples
    ]
    assert sorted(read(page), key=str) == sorted(expected, key=str)


@given(label=texts, value=numbers)
def test_openmetrics_gives_the_same_series(label: str, value: float) -> None:
    """The other text format differs in comments and in the spelling of numbers only."""
    found = registry(label, value)
    assert read(generate_openmetrics(found).decode()) == read(generate_latest(found).decode())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "x{",
        'x{a="1"',
        'x{a="1} 1',
        "x{a=1} 1",
        "x NaN",
        "x +Inf",
        "x 1e999",
        "x one",
        "x 1_0",
        "x 0x1",
        "x ١",
        "1 1",
        '{"x"} 1',
    ],
)
def test_a_bad_line_costs_itself(line: str) -> None:
    """Around a line that is cut, foreign or without a finite number, the page is read."""
    assert read(f"a 1\n{line}\nb 2\n") == [("a", {}, 1.0), ("b", {}, 2.0)]


def test_what_follows_the_value_is_passed_over() -> None:
    """Timestamps, exemplars and a carriage return do not matter."""
    page = 'a{b="c"} 1 1712000000000\nb_total 2.5 # {trace="x"} 1.0 1.7\nc 3\r\n'
    assert read(page) == [("a", {"b": "c"}, 1.0), ("b_total", {}, 2.5), ("c", {}, 3.0)]


def test_only_wanted_names_are_kept() -> None:
    """A page's other series cost no memory."""
    assert [one.name for one in series("a 1\nb 2\n", "b".__eq__)] == ["b"]


@pytest.mark.parametrize(
    "line", ['a{b="' + "\\" * 60_001, "a" * 65_000, "a{" + 'b="c",' * 10_000, "a " + "1" * 65_000 + "x"]
)
def test_hostile_lines_come_to_an_end(line: str) -> None:
    """A megabyte of the worst lines is read in an instant, where an expression that backtracks would take hours."""
    assert len(line) <= LONGEST_LINE
    assert read((line + "\n") * 16) == []


def test_the_number_of_series_is_bounded() -> None:
    """A page of endless series is read up to a bound."""
    assert len(read("a 1\n" * (MOST_SERIES + 5))) == MOST_SERIES


def test_a_line_without_end_is_passed_over() -> None:
    """What is longer than any engine writes is not looked at."""
    assert read('a{b="' + "x" * LONGEST_LINE + '"} 1\nb 2\n') == [("b", {}, 2.0)]


@given(st.text())
def test_no_page_raises(page: str) -> None:
    """Any text is a page, mostly an empty one."""
    assert all(one.name for one in series(page, lambda _: True))
