"""Which scenarios a run plays: all of them with three seeds in the long form, otherwise a third of them with one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from . import LONG
from .scenario import Scenario

SEEDS = (1, 2, 3) if LONG else (1,)


def cases(scenarios: Iterable[Scenario]) -> pytest.MarkDecorator:
    """Parametrizes a test by `scenario` and `seed`."""
    return pytest.mark.parametrize(
        ("scenario", "seed"),
        [pytest.param(one, seed, id=f"{one.name}-{seed}") for one in scenarios if LONG or one.quick for seed in SEEDS],
    )
