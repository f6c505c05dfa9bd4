"""Distributions as counts on one grid, with a stated error.

The guarantee: a quantile is within 0.55 % of the exact value of rank ceil(q·n), for every distribution with values in
(2.3e-10, 4.2e9]; zeros are exact, whole numbers up to 101 too. Counts are exact. The merge of parts is the whole, in
any order; edges 2^(k/4) and native histograms of schema 6 and below are exact merges of the grid.

The grid: buckets (2^((i-1)/64), 2^(i/64)], upper-inclusive, which is schema 6 of Prometheus native histograms; the idea
of a relative-error sketch on a logarithmic grid is DDSketch's (Masson, Rim and Lee, 2019).

`grid` finds buckets, `cells` counts them by series, `quantile` reads them, `window` holds the last five minutes.
"""

from capwatch.sketch.cells import CELL_BITS, Cells, bucket_of, count, gather, pack, series_of
from capwatch.sketch.grid import HIGHEST, LOWEST, PER_OCTAVE, SCHEMA, ZERO, index, middle, upper
from capwatch.sketch.quantile import coarsen, cumulative, quantiles
from capwatch.sketch.window import SLICE, SLICES, SumWindow, Window

__all__ = [
    "CELL_BITS",
    "HIGHEST",
    "LOWEST",
    "PER_OCTAVE",
    "SCHEMA",
    "SLICE",
    "SLICES",
    "ZERO",
    "Cells",
    "SumWindow",
    "Window",
    "bucket_of",
    "coarsen",
    "count",
    "cumulative",
    "gather",
    "index",
    "middle",
    "pack",
    "quantiles",
    "series_of",
    "upper",
]
