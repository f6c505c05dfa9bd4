"""The grid: exact at the edges, in order, and never further from a value than promised."""

import math
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.sketch.grid import HIGHEST, LOWEST, ZERO, index, middle, upper

EVERY = np.arange(ZERO, HIGHEST + 1)
EDGES = [2.0 ** (i / 64) for i in range(LOWEST, HIGHEST + 1)]
LEAST = 2.0**-32
MOST = 2.0 ** (HIGHEST / 64)

on_grid = st.floats(LEAST, MOST, exclude_min=True)
any_value = st.floats(0, allow_infinity=False)


def bucket(value: float) -> int:
    """The bucket of one value."""
    return int(index(np.array([value]))[0])


@given(on_grid)
def test_a_value_belongs_to_the_first_bucket_whose_upper_edge_reaches_it(value: float) -> None:
    """index(v) is the smallest i with v <= 2^(i/64)."""
    assert bucket(value) == LOWEST + bisect_left(EDGES, value)


def test_an_edge_belongs_to_the_bucket_below_and_the_next_double_to_the_one_above() -> None:
    """Buckets are upper-inclusive to the last bit, every one of them."""
    inner = range(LOWEST, HIGHEST)
    around = [(bucket(EDGES[i - LOWEST]), bucket(math.nextafter(EDGES[i - LOWEST], math.inf))) for i in inner]
    assert around == [(i, i + 1) for i in inner]


def test_every_upper_edge_lies_in_its_own_bucket() -> None:
    """index(upper(i)) == i for every bucket, ZERO included."""
    assert index(upper(EVERY)).tolist() == EVERY.tolist()


@pytest.mark.parametrize(
    ("i", "printed"),
    [
        (-640, "0.0009765625"),
        (-16, "0.8408964152537145"),
        (0, "1.0"),
        (16, "1.189207115002721"),
        (32, "1.4142135623730951"),
        (48, "1.681792830507429"),
        (80, "2.378414230005442"),
        (1024, "65536.0"),
    ],
)
def test_classic_edges_print_as_python_prints_two_to_the_k_over_four(i: int, printed: str) -> None:
    """upper(16·k) is the double that the label le shows."""
    assert repr(float(upper(np.array([i]))[0])) == printed


@given(st.lists(any_value, min_size=2))
def test_a_larger_value_never_has_a_smaller_bucket(values: list[float]) -> None:
    """The bucket is monotone over all finite values, beyond the grid too."""
    buckets = index(np.array(sorted(values)))
    assert buckets.tolist() == sorted(buckets.tolist())


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_has_a_bucket_of_its_own_and_stays_zero(zero: float) -> None:
    """Exact zeros are kept apart from the smallest values."""
    found = index(np.array([zero]))
    assert (found.tolist(), middle(found).tolist()) == ([ZERO], [0.0])


@pytest.mark.parametrize(
    ("value", "expected"), [(5e-324, LOWEST), (LEAST, LOWEST), (MOST, HIGHEST), (MOST * 2, HIGHEST), (1e308, HIGHEST)]
)
def test_values_beyond_the_grid_count_in_the_outermost_bucket(value: float, expected: int) -> None:
    """Nothing positive is lost and nothing positive becomes zero."""
    assert bucket(value) == expected


@given(on_grid)
def test_the_middle_of_its_bucket_is_within_the_promised_error_of_a_value(value: float) -> None:
    """|middle(index(v)) - v| <= 0.55 % of v."""
    shown = float(middle(index(np.array([value])))[0])
    assert shown == pytest.approx(value, rel=0.0055, abs=0)


def test_the_middle_errs_equally_at_both_ends_of_its_bucket() -> None:
    """The worst relative errors are those of the edges, and they are the same."""
    inner = EVERY[2:]
    lower_error = middle(inner) / upper(inner - 1) - 1
    upper_error = 1 - middle(inner) / upper(inner)
    assert lower_error == pytest.approx(upper_error, rel=1e-9)


def test_whole_numbers_up_to_a_hundred_and_one_are_exact() -> None:
    """A bucket with exactly one whole number is stood for by it."""
    numbers = np.arange(102.0)
    assert middle(index(numbers), integers=True).tolist() == numbers.tolist()


def test_a_bucket_with_two_whole_numbers_keeps_the_bound_for_both() -> None:
    """Where whole numbers cannot be told apart the middle stands for them."""
    numbers = np.arange(102.0, 20_000.0)
    assert middle(index(numbers), integers=True) == pytest.approx(numbers, rel=0.0055, abs=0)


def test_the_integer_flag_may_differ_from_value_to_value() -> None:
    """One call serves token counts and seconds."""
    threes = index(np.array([3.0, 3.0]))
    assert (middle(threes, integers=np.array([True, False])) == 3.0).tolist() == [True, False]


def test_the_shape_is_kept() -> None:
    """A table of values gives a table of buckets and back."""
    assert middle(index(np.ones((3, 2)))).shape == (3, 2)
