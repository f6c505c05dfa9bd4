"""Reading a table: ranks, many series at once, classic and native histograms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.sketch import HIGHEST, LOWEST, ZERO, Cells, coarsen, count, cumulative, index, pack, quantiles
from capwatch.sketch.grid import Bools, Ints

in_range = st.floats(2.0**-31, 2.0**31)
sometimes_on_an_edge = st.one_of(
    in_range, st.just(0.0), st.integers(-124, 124).map(lambda k: 2.0 ** (k / 4)), st.integers(0, 200).map(float)
)
several_series = st.dictionaries(
    st.integers(0, 2**50 - 1), st.lists(sometimes_on_an_edge, min_size=1, max_size=30), max_size=6
)


def table(series: dict[int, list[float]]) -> Cells:
    """The cells of these values by series."""
    cells = Cells()
    for number, values in series.items():
        cells.add(*count(pack(np.full(len(values), number), index(np.array(values)))))
    return cells


def whole(series: Ints) -> Bools:
    """Every series holds whole numbers."""
    return np.ones(len(series), np.bool_)


@pytest.mark.parametrize(
    ("q", "n", "rank"),
    [
        (0.5, 1, 1),
        (0.5, 2, 1),
        (0.5, 3, 2),
        (0.95, 20, 19),
        (0.95, 100, 95),
        (0.99, 100, 99),
        (0.99, 101, 100),
        (0.07, 100, 7),  # 7.000000000000001 as floats
        (0.55, 100, 55),  # 55.00000000000001
        (0.29, 100, 29),  # 28.999999999999996
        (0.0, 50, 1),
        (1.0, 50, 50),
    ],
)
def test_a_quantile_is_the_value_of_rank_q_times_n_rounded_up(q: float, n: int, rank: int) -> None:
    """Of the numbers 1..n the quantile is its own rank."""
    _, values, _ = quantiles(table({1: [float(i + 1) for i in range(n)]}), (q,), whole)
    assert values.tolist() == [[rank]]


@given(several_series)
def test_every_series_is_read_as_if_it_were_alone(series: dict[int, list[float]]) -> None:
    """One call over all series gives, in order of series, what a call for each gives."""
    numbers, values, counts = quantiles(table(series), (0.5, 0.95))
    together = list(zip(numbers.tolist(), values.tolist(), counts.tolist(), strict=True))
    alone = [
        (number, quantiles(table({number: series[number]}), (0.5, 0.95))[1][0].tolist(), len(series[number]))
        for number in sorted(series)
    ]
    assert together == alone


def test_only_the_series_named_as_whole_numbers_are_rounded_to_them() -> None:
    """The caller tells by series which measure counts tokens."""
    cells = table({2: [50.0], 3: [50.0]})
    _, values, _ = quantiles(cells, (0.5,), lambda series: series % 2 == 0)
    assert (values[:, 0] == 50.0).tolist() == [True, False]


def test_an_empty_table_has_no_quantiles() -> None:
    """No values, no series: not a 0."""
    assert [part.shape for part in quantiles(Cells(), (0.5, 0.95), whole)] == [(0,), (0, 2), (0,)]


@pytest.mark.parametrize("q", [-0.01, 1.01, math.nan])
def test_a_quantile_outside_zero_to_one_is_refused(q: float) -> None:
    """There is no such rank."""
    with pytest.raises(ValueError, match=r"lies in 0\.\.1"):
        quantiles(table({1: [1.0]}), (q,))


@given(several_series)
def test_classic_buckets_count_exactly_what_is_at_most_their_edge(series: dict[int, list[float]]) -> None:
    """For every k the count at 2^(k/4) is the number of values v with v <= 2.0 ** (k / 4)."""
    ks = np.arange(-127, 128)
    numbers, counts = cumulative(table(series), ks * 16)
    truth = [
        [sum(value <= 2.0 ** (k / 4) for value in series[number]) for k in ks.tolist()] for number in sorted(series)
    ]
    assert (numbers.tolist(), counts.tolist()) == (sorted(series), truth)


def test_edges_may_come_in_any_order() -> None:
    """Each column belongs to the edge in its place."""
    _, counts = cumulative(table({1: [0.0, 1.0, 2.0]}), np.array([64, ZERO, 0]))
    assert counts.tolist() == [[3, 1, 2]]


@pytest.mark.parametrize("edge", [ZERO - 1, HIGHEST, HIGHEST + 1])
def test_an_edge_that_cannot_be_counted_is_refused(edge: int) -> None:
    """Outside the grid, and at its last bucket, the count would be wrong."""
    with pytest.raises(ValueError, match="an edge lies in"):
        cumulative(table({1: [1.0]}), np.array([edge]))


@given(st.lists(in_range | st.integers(-124, 124).map(lambda k: 2.0 ** (k / 4)), min_size=1), st.integers(-4, 6))
def test_coarser_native_buckets_hold_exactly_the_values_between_their_edges(values: list[float], schema: int) -> None:
    """Schema s counts v in bucket j when 2^((j-1)·2^-s) < v <= 2^(j·2^-s)."""
    width = 2.0**-schema
    buckets = coarsen(index(np.array(values)), schema).tolist()
    inside = [2.0 ** ((j - 1) * width) < value <= 2.0 ** (j * width) for j, value in zip(buckets, values, strict=True)]
    assert all(inside)


def test_the_finest_schema_is_the_grid_itself() -> None:
    """Schema 6 changes no index."""
    every = np.arange(LOWEST, HIGHEST + 1)
    assert coarsen(every, 6).tolist() == every.tolist()


@pytest.mark.parametrize("schema", [-5, 7])
def test_a_schema_that_is_finer_than_the_grid_or_unknown_is_refused(schema: int) -> None:
    """Buckets cannot be split, and below -4 Prometheus has none."""
    with pytest.raises(ValueError, match="a schema lies in"):
        coarsen(np.array([1]), schema)
