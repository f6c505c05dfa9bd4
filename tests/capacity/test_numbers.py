"""Every number of the capacity texts, through the library: what it computes, and where the texts do not follow."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.capacity import lengths
from capwatch.sketch.cells import Cells, pack
from capwatch.sketch.grid import index
from capwatch.sketch.quantile import quantiles
from tests.capacity import text_a, texts_bc

NUMBERS: list[dict[str, Any]] = json.loads((Path(__file__).with_name("numbers.json")).read_text())
ROWS = {**text_a.ROWS, **texts_bc.ROWS}
SKETCHED = ("P01", "derived: p99 read from a 2% log-bucket sketch")


def key(row: dict[str, Any]) -> tuple[str, str]:
    """What a row is known by."""
    return row["row"], row["what"]


def numeric(printed: object) -> float | None:
    """A printed number, which may stand as text."""
    try:
        return float(str(printed).replace(",", ""))
    except ValueError:
        return None


def test_no_row_is_left_out() -> None:
    """All 265, and none of our own making."""
    assert len(NUMBERS) == 265
    assert {key(row) for row in NUMBERS} == {*ROWS, SKETCHED}


@pytest.mark.parametrize("row", [row for row in NUMBERS if key(row) != SKETCHED], ids=lambda row: " ".join(key(row)))
def test_a_number_is_recomputed(row: dict[str, Any]) -> None:
    """To nine digits; within its tolerance of what was printed exactly where the verdict says that it follows."""
    computed, printed = ROWS[key(row)], numeric(row["printed"])
    assert computed == pytest.approx(row["computed"], rel=1e-9, abs=1e-9)
    if printed is not None and row["tolerance"] is not None:
        assert isinstance(computed, int | float)
        assert (math.fabs(computed - printed) <= row["tolerance"]) == (row["verdict"] == "PASS")


def test_the_sketch_reads_the_p99_that_coarse_buckets_miss() -> None:
    """The row of the sketch: a lognormal in 100,000 equal steps of probability, read within 1 % by capwatch's own."""
    (row,) = (row for row in NUMBERS if key(row) == SKETCHED)
    sigma = lengths.sigma(1500, 1100)
    assert sigma is not None
    values = np.array([lengths.quantile(1100, sigma, (i + 0.5) / 100_000) for i in range(100_000)])
    buckets, counts = np.unique(index(values), return_counts=True)
    _, read, _ = quantiles(Cells(pack(np.zeros_like(buckets), buckets), counts), (0.99,))
    assert abs(float(read[0, 0]) - row["printed"]) <= row["tolerance"]
