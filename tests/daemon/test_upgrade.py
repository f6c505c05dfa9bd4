"""Which layout a state of version 1 was written in: told by ids that were given, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from capwatch.daemon.upgrade import NARROW, layout_written
from capwatch.ledger import MODEL, POOL, ROUTE, TENANT, Axis, Delta, Table
from capwatch.ledger.layout import ForeignError, layout_of, narrowed

COST = Table((TENANT, ROUTE, POOL), "cost", ("prefill",))
KIND = Table((TENANT, MODEL, Axis("kind", 3, ("a", "b"))), "kinds", ("count",))
PRESENT = layout_of([COST, KIND], [])
NAMES = [["tenant", 5, []], ["route", 4, []], ["pool", 3, []], ["model", 3, []]]


def parts(pool_bits: int, columns: int = 1) -> dict[str, Any]:
    """What a checkpoint holds whose pools have so many bits."""
    keys = np.array([((4 << ROUTE.bits) | 3) << pool_bits | 2])
    return {"names": NAMES, "sums/cost": [keys, np.ones((1, columns))]}


def test_a_layout_that_is_told_is_taken() -> None:
    """From version 2 on nothing is guessed."""
    assert layout_written({"layout": {"tables/cost": [[], []]}}, [], PRESENT) == {"tables/cost": [[], []]}


def test_the_widths_are_told_by_the_ids() -> None:
    """Read with other widths, keys would hold ids that nobody has been given."""
    assert layout_written(parts(POOL.bits), [], PRESENT) == PRESENT
    assert layout_written(parts(NARROW["pool"]), [], PRESENT) == narrowed(PRESENT, NARROW)


def test_names_of_deltas_count() -> None:
    """Before the first checkpoint there are only deltas."""
    keys, values = parts(NARROW["pool"])["sums/cost"]
    given = [("tenant", 4, "t"), ("route", 3, "/r"), ("pool", 2, "p")]
    delta = Delta(sums={"cost": (keys, values)}, names=given)
    assert layout_written({}, [delta], PRESENT) == narrowed(PRESENT, NARROW)


def test_an_empty_state_is_in_the_present_layout() -> None:
    """There is nothing that could be in another."""
    assert layout_written({}, [], PRESENT) is PRESENT


@pytest.mark.parametrize("held", [parts(17), parts(POOL.bits, columns=2)], ids=["width", "columns"])
def test_any_other_layout_is_refused(held: dict[str, Any]) -> None:
    """What was written before, in a form that nobody remembers."""
    with pytest.raises(ForeignError, match="never was in a release"):
        layout_written(held, [], PRESENT)
