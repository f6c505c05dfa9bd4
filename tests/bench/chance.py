"""How often alerts fire by chance: 90 days of made-up quiet traffic at the floor of requests that each alert asks for.

`python -m tests.bench.chance [--days 90]`, some minutes. Requests come at random (Poisson) at a flat rate, their costs
and lengths are lognormal, and nothing changes, so that every alert is a false one. The arithmetic of the rules is done
here once more in numpy, with the same windows, references and patience: a year of promtool would take days. Ratios are
those of `rules/thresholds.yml`; floors as multiples of `requests` are those of `rules/alerts.yml`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
STEP_S: Final = 60
HOUR: Final = 3600 // STEP_S
DAY: Final = 24 * HOUR
EDGES: Final = 2 ** (np.arange(80) / 4.0)
SPREADS: Final = (0.6, 0.8, 1.0, 1.2)
"""Sigma of the lognormal: the standard deviation is 0.66, 0.95, 1.31, 1.79 times the mean."""
REQUESTS: Final = 100


class Traffic:
    """Counts, sums and lengths of quiet traffic by minute."""

    def __init__(self, days: int, rate: float, sigma: float) -> None:
        """Requests at ``rate`` a minute."""
        generator = np.random.default_rng(3)
        counts = generator.poisson(rate, days * DAY)
        values = generator.lognormal(5.0, sigma, int(counts.sum()))
        minute = np.repeat(np.arange(len(counts)), counts)
        self.counts = counts.astype(np.float64)
        self.sums: Floats = np.bincount(minute, values, len(counts)).astype(np.float64)
        place = np.clip(np.searchsorted(EDGES, values) - 1, 0, len(EDGES) - 2)
        cells = np.bincount(minute * (len(EDGES) - 1) + place, minlength=len(counts) * (len(EDGES) - 1))
        self.cells = cells.reshape(len(counts), -1).astype(np.float64)

    def mean(self, minutes: int) -> Floats:
        """Of the last minutes; NaN where there are fewer."""
        with np.errstate(invalid="ignore"):
            found: Floats = _window(self.sums, minutes) / _window(self.counts, minutes)
        return found

    def p99(self, minutes: int) -> Floats:
        """Of the last minutes, as `histogram_quantile` has it."""
        summed = np.cumsum(_window(self.cells, minutes), axis=1)
        rank = 0.99 * summed[:, -1]
        place = (summed >= rank[:, None]).argmax(axis=1)
        rows = np.arange(len(place))
        below = np.where(place > 0, summed[rows, np.maximum(place - 1, 0)], 0.0)
        with np.errstate(invalid="ignore"):
            part = (rank - below) / (summed[rows, place] - below)
        found: Floats = EDGES[place] + (EDGES[place + 1] - EDGES[place]) * part
        return found


def _window(column: Floats, minutes: int) -> Floats:
    """Sums of the last minutes, NaN where there are fewer."""
    whole = np.cumsum(np.concatenate((np.zeros_like(column[:1]), column)), axis=0)
    found = np.full(column.shape, np.nan)
    found[minutes - 1 :] = whole[minutes:] - whole[:-minutes]
    return found


def _before(column: Floats, minutes: int) -> Floats:
    found = np.full(column.shape, np.nan)
    found[minutes:] = column[:-minutes]
    return found


def _reference(hour: Floats) -> Floats:
    """The hour around this time a day and a week ago, the larger of both; one of them where there is no more."""
    found: Floats = np.fmax(_before(hour, DAY - HOUR // 2), _before(hour, 7 * DAY - HOUR // 2))
    return found


def cost_up(seen: Traffic) -> Floats:
    """`CapwatchCostPerRequestUp`: how many times its threshold."""
    return seen.mean(5) / _reference(seen.mean(HOUR)) / 1.2


def prompts(seen: Traffic) -> Floats:
    """`CapwatchPromptLengthShift`."""
    return seen.mean(15) / _reference(seen.mean(HOUR)) / 1.3


def outputs(seen: Traffic) -> Floats:
    """`CapwatchOutputTailGrowth`."""
    return seen.p99(15) / _reference(seen.p99(HOUR)) / 1.5


def in_flight(seen: Traffic) -> Floats:
    """`CapwatchInFlightRisingAtFlatRate`, with lengths for times."""

    def rise(column: Floats) -> Floats:
        return _window(column, 5) / _before(_window(column, HOUR), 5) * HOUR / 5

    return np.where(rise(seen.counts) < 1.1, rise(seen.sums) / 1.5, 0.0)


RULES: Final[tuple[tuple[str, Callable[[Traffic], Floats], int, Callable[[float], float], int], ...]] = (
    ("CapwatchCostPerRequestUp", cost_up, 5, lambda cv2: 3 * max(1.0, cv2), 5),
    ("CapwatchPromptLengthShift", prompts, 15, lambda _: 3, 15),
    ("CapwatchOutputTailGrowth", outputs, 15, lambda _: 10, 10),
    ("CapwatchInFlightRisingAtFlatRate", in_flight, 5, lambda _: 3, 2),
)
"""Alert, its ratio over the threshold, minutes of its window, multiple of `requests` at a Cs², minutes of patience."""


def episodes(over: npt.NDArray[Any], patience: int) -> int:
    """How often a condition held for longer than so many minutes."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], over.astype(np.int8), [0]))))
    return int((edges[1::2] - edges[::2] > patience).sum())


def main(arguments: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.chance")
    parser.add_argument("--days", type=int, default=90)
    days = parser.parse_args(arguments).days
    print(f"{'alert':34} {'spread':>6} {'requests/s':>10}  false in 30 days; at requests alone, 5 min patience")
    for name, ratio, window, floor, patience in RULES:
        for sigma in SPREADS:
            told = []
            multiple = floor(float(np.expm1(sigma**2)))
            for times, patient in ((multiple, patience), (1, min(patience, 5))):
                over = ratio(Traffic(days, REQUESTS * times / window, sigma)) > 1
                told.append(episodes(over, patient) * 30 / days)
            rate = REQUESTS * multiple / window / 60
            print(
                f"{name:34} {np.sqrt(np.expm1(sigma**2)):6.2f} {rate:10.2f}  {told[0]:.1f}; {told[1]:.1f}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
