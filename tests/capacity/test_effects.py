"""Why the mean cost changed: the effects add up, and say what was done."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.capacity import work
from capwatch.capacity.effects import Cells, effects

RATES = (4000.0, 160.0)
K = 4
weights = st.lists(st.floats(0, 10), min_size=K, max_size=K).filter(lambda one: sum(one) > 0.1)
tokens = st.lists(st.floats(1, 20_000), min_size=K, max_size=K)
ratios = st.lists(st.floats(0, 1), min_size=K, max_size=K)


@st.composite
def populations(draw: st.DrawFn) -> Cells:
    """Cells of a population, some of them absent, with means that are unknown then."""
    share = np.array(draw(weights))
    prompt = np.array(draw(tokens))
    means = [prompt, prompt * np.array(draw(ratios)), np.array(draw(tokens))]
    return Cells(share / share.sum(), *(np.where(share > 0, one, np.nan) for one in means))


def mean_cost(cells: Cells) -> float:
    """Of all requests."""
    here = cells.share > 0
    share, prompt, cached, output = (one[here] for one in cells)
    return float((share * ((prompt - cached) / 4000 + output / 160)).sum())


@given(populations(), populations(), st.booleans())
def test_the_effects_add_up_to_the_change(before: Cells, after: Cells, centred: bool) -> None:
    """Whatever the sizes, in the plain and in the centred form, cells coming and going."""
    found = effects(before, after, *RATES, centred=centred)
    assert found.total.sum() == pytest.approx(mean_cost(after) - mean_cost(before), abs=1e-9)


@given(populations(), populations())
def test_backwards_is_the_opposite(before: Cells, after: Cells) -> None:
    """The plain effects of the way back are those of the way there with the other sign."""
    there, back = effects(before, after, *RATES), effects(after, before, *RATES)
    for one, other in zip(there, back, strict=True):
        assert one == pytest.approx(-other, abs=1e-9)


@given(populations())
def test_nothing_comes_of_nothing(cells: Cells) -> None:
    """The same population twice has no effects."""
    assert np.abs(np.stack(effects(cells, cells, *RATES))).max() == 0


def test_a_new_cell_is_all_mix() -> None:
    """It had no lengths before, so they cannot have changed; the same for one that is gone."""
    nan = np.nan
    alone = Cells(np.array([1.0, 0.0]), np.array([1300, nan]), np.array([0, nan]), np.array([80, nan]))
    both = Cells(np.array([0.5, 0.5]), np.array([1300.0, 9000]), np.array([0.0, 0]), np.array([80.0, 400]))
    for before, after in ((alone, both), (both, alone)):
        found = effects(before, after, *RATES)
        assert [float(np.abs(one).sum()) for one in found[1:]] == [0, 0, 0]
        assert float(np.abs(found.mix).sum()) > 0


def test_longer_prompts_that_are_cached_cost_nothing() -> None:
    """The prompt effect and the cache effect cancel where computed tokens stay the same."""
    ones = np.ones(1)
    before = Cells(ones, ones * 2000, ones * 500, ones * 100)
    after = Cells(ones, ones * 3000, ones * 1500, ones * 100)
    found = effects(before, after, *RATES)
    assert float(found.prompt[0]) > 0.1
    assert float((found.prompt + found.cache)[0]) == pytest.approx(0, abs=1e-12)
    assert float(found.total.sum()) == pytest.approx(0, abs=1e-12)


def test_many_windows_at_once() -> None:
    """Leading axes are windows of their own."""
    share = np.array([[0.85, 0.14, 0.01], [0.80, 0.12, 0.08]])
    lengths = [np.broadcast_to(one, (2, 3)) for one in ([1300.0, 3200, 9000], [0.0, 0, 0], [80.0, 150, 400])]
    before, after = Cells(share[[0, 0]], *lengths), Cells(share, *lengths)
    assert effects(before, after, *RATES, centred=True).total.sum(axis=-1).round(4).tolist() == [0.0, 0.2565]


@given(st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1))
def test_the_cost_of_arrays_is_that_of_numbers(prompt: float, output: float, hits: float) -> None:
    """One formula for both."""
    one = work.cost(prompt, output, *RATES, prompt * hits)
    many = work.cost(np.array([prompt]), np.array([output]), *RATES, np.array([prompt * hits]))
    assert many.tolist() == [one]
