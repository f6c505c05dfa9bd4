"""Ticks are sums: what single requests add up to, however they come."""

from __future__ import annotations

import math

import numpy as np
import pytest

from capwatch.drift.ticks import COLUMN, TICK_S, Ticks

from .sample import LATER, SETTINGS, rows, ticks


def test_cells_hold_what_their_requests_add_up_to() -> None:
    """Every column is the sum that a loop over single requests gives."""
    some = rows(LATER, 300, 3, cached=200.0, wait=0.25)
    expected: dict[tuple[int, int, int, int], dict[str, float]] = {}
    for i in range(len(some)):
        key = (int(some.at[i] // TICK_S), int(some.tenant[i]), int(some.route[i]), int(some.klass[i]))
        computed, output = some.prompt[i] - 200, some.output[i]
        cost = computed / 4000 + output / 160
        told = {
            "n": 1,
            "prompt": some.prompt[i],
            "computed": computed,
            "output": output,
            "cost": cost,
            "log_computed": math.log(computed),
            "log_output": math.log(output),
            "log_cost": math.log(cost),
            "log_ratio": math.log(computed / some.prompt[i]),
            "root_cost": math.sqrt(cost),
            **{
                f"log_{name}2": math.log(x) ** 2
                for name, x in (("computed", computed), ("output", output), ("cost", cost))
            },
            "log_ratio2": math.log(computed / some.prompt[i]) ** 2,
            "cost2": cost**2,
            "waited": 1,
            "wait": 0.25,
        }
        cell = expected.setdefault(key, dict.fromkeys(COLUMN, 0.0))
        for column, value in told.items():
            cell[column] += float(value)
    found = ticks(some)
    keys = list(
        zip(found.tick.tolist(), found.tenant.tolist(), found.route.tolist(), found.klass.tolist(), strict=True)
    )
    assert keys == sorted(expected)
    for key, sums in zip(keys, found.sums, strict=True):
        assert dict(zip(COLUMN, sums.tolist(), strict=True)) == pytest.approx(expected[key])


def test_parts_merge_to_the_whole() -> None:
    """Ticks of two halves of the requests, merged, are the ticks of all."""
    some = rows(LATER, 600, 4)
    half = np.arange(len(some)) % 2 == 0
    merged, whole = Ticks.merge([ticks(some.take(half)), ticks(some.take(~half))]), ticks(some)
    assert np.array_equal(merged.tick, whole.tick)
    assert np.array_equal(merged.tenant, whole.tenant)
    assert merged.sums == pytest.approx(whole.sums)


def test_requests_without_token_counts_are_left_out() -> None:
    """A request whose prompt or output is unknown is in no cell; an unknown number of cached tokens counts as none."""
    some = rows(LATER, 100, 5)
    some.prompt[::2], some.output[1::4], some.cached[:] = np.nan, np.nan, np.nan
    found = Ticks.of(some, SETTINGS.prefill_rate, SETTINGS.decode_rate)
    assert found["n"].sum() == np.isfinite(some.prompt + some.output).sum()
    assert np.isfinite(found.sums).all()


def test_no_requests_are_no_cells() -> None:
    """Nothing in, nothing out; and nothing merges to nothing."""
    assert len(ticks(rows(LATER, 100, 6).take(np.zeros(0, np.int64)))) == 0
    assert len(Ticks.merge([])) == len(Ticks.merge([Ticks.empty(), Ticks.empty()])) == 0
