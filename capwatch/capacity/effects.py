"""Why the mean cost changed: mix, prompts, cache and answers, cell by cell, adding up exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capwatch.capacity import work
from capwatch.record import Floats


class Cells(NamedTuple):
    """float64[..., k] each: the cells (classes, tenants or routes) of a population at one time."""

    share: Floats
    """Of the requests; the cells add up to 1. A cell with share 0 is absent, and its means are not read."""
    prompt: Floats
    """Mean prompt tokens, cached ones included."""
    cached: Floats
    """Mean cached tokens, at most ``prompt``."""
    output: Floats
    """Mean output tokens."""


class Effects(NamedTuple):
    """float64[..., k] each, replica-seconds per request: what each cell added to the mean cost."""

    mix: Floats
    """By its share."""
    prompt: Floats
    """By longer prompts."""
    cache: Floats
    """By fewer cache hits."""
    output: Floats
    """By longer answers."""

    @property
    def total(self) -> Floats:
        """All four of each cell; over all cells the change of the mean cost, whatever the sizes."""
        return self.mix + self.prompt + self.cache + self.output


def effects(before: Cells, after: Cells, prefill_rate: float, decode_rate: float, *, centred: bool = False) -> Effects:
    """Split the change of the mean cost: shift-share with midpoint weights, so without an interaction term.

    The four effects of all cells add up to Σ s₁c₁ − Σ s₀c₀ to rounding error (Kitagawa 1955; Oaxaca and Blinder 1973).
    A cell that was absent takes its means after as those before, so that its whole effect is mix; one that vanished
    the reverse.

    Args:
        before: the cells then.
        after: the same cells now.
        prefill_rate: computed prompt tokens/s of a replica, > 0.
        decode_rate: output tokens/s of a replica, > 0.
        centred: take a cell's cost relative to the mean cost before, so that a positive mix effect says "this cell
            pushes the mean up". The sum stays the same, since shares add up to 1.

    >>> lengths = [np.array(one, float) for one in ((1300, 3200, 9000), (0, 0, 0), (80, 150, 400))]
    >>> then, now = (Cells(np.array(share), *lengths) for share in ((0.85, 0.14, 0.01), (0.80, 0.12, 0.08)))
    >>> effects(then, now, 4000.0, 160.0).mix.round(5).tolist()
    [-0.04125, -0.03475, 0.3325]
    >>> effects(then, now, 4000.0, 160.0, centred=True).mix.round(5).tolist()
    [0.00835, -0.01491, 0.26306]
    """
    before, after = _filled(before, after), _filled(after, before)
    cost_before, cost_after = (
        work.cost(one.prompt, one.output, prefill_rate, decode_rate, one.cached) for one in (before, after)
    )
    hits_before, hits_after = _hits(before), _hits(after)
    level = (cost_before + cost_after) / 2
    if centred:
        level = level - (before.share * cost_before).sum(axis=-1, keepdims=True)
    share = (before.share + after.share) / 2
    return Effects(
        mix=(after.share - before.share) * level,
        prompt=share * (1 - (hits_before + hits_after) / 2) * (after.prompt - before.prompt) / prefill_rate,
        cache=-share * (before.prompt + after.prompt) / 2 * (hits_after - hits_before) / prefill_rate,
        output=share * (after.output - before.output) / decode_rate,
    )


def _filled(cells: Cells, other: Cells) -> Cells:
    """The cells, with the means of the other time where a cell is absent (0 where it is absent from both)."""
    here, there = cells.share > 0, other.share > 0
    means = [
        np.where(here, mine, np.where(there, theirs, 0.0)) for mine, theirs in zip(cells[1:], other[1:], strict=True)
    ]
    return Cells(cells.share, *means)


def _hits(cells: Cells) -> Floats:
    """The hit ratio by tokens of each cell; 0 where there are no prompts."""
    return np.divide(cells.cached, cells.prompt, out=np.zeros_like(cells.prompt), where=cells.prompt > 0)
