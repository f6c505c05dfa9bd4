"""The guarantee: 18 distributions × sizes × quantiles, each within 0.55 % of the exact order statistic."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from capwatch.sketch import Cells, count, index, pack, quantiles
from capwatch.sketch.grid import Floats

QS = (0.0, 0.5, 0.95, 0.99, 1.0)
Draw = Callable[[np.random.Generator, int], Floats]

DISTRIBUTIONS: dict[str, Draw] = {
    "uniform": lambda r, n: r.uniform(0, 100, n),
    "normal, absolute": lambda r, n: np.abs(r.normal(0, 5, n)),
    "lognormal, narrow": lambda r, n: r.lognormal(3, 0.01, n),
    "lognormal, wide": lambda r, n: r.lognormal(0, 3, n),
    "exponential": lambda r, n: r.exponential(0.05, n),
    "pareto": lambda r, n: 1 + r.pareto(1.2, n),
    "gamma": lambda r, n: r.gamma(2.0, 0.5, n),
    "weibull": lambda r, n: r.weibull(0.7, n),
    "constant": lambda _, n: np.full(n, 0.3),
    "two points": lambda r, n: r.choice([0.001, 1000.0], n),
    "small integers": lambda r, n: r.integers(0, 10, n).astype(float),
    "geometric": lambda r, n: r.geometric(0.01, n).astype(float),
    "zipf": lambda r, n: np.minimum(r.zipf(1.8, n), 10**9).astype(float),
    "bimodal": lambda r, n: np.where(r.random(n) < 0.5, r.normal(10, 0.1, n), r.normal(1000, 10, n)),
    "sorted": lambda r, n: np.sort(r.lognormal(0, 1, n)),
    "reversed": lambda r, n: np.sort(r.lognormal(0, 1, n))[::-1],
    "tiny to huge": lambda r, n: 2.0 ** r.uniform(-31.9, 31.9, n),
    "many zeros": lambda r, n: np.where(r.random(n) < 0.9, 0.0, r.exponential(1, n)),
}


def exact(values: Floats, q: float) -> float:
    """The value of rank ceil(q·n), by sorting."""
    share = Fraction(str(q))
    rank = max(1, -(-share.numerator * len(values) // share.denominator))
    return float(np.sort(values)[rank - 1])


@pytest.mark.parametrize("size", [1, 2, 7, 20, 100, 1000, 20_000])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_quantile_is_within_the_bound(name: str, size: int) -> None:
    """Relative error <= 0.55 % against the order statistic of rank ceil(q·n); zeros exactly."""
    values = DISTRIBUTIONS[name](np.random.default_rng(size), size)
    keys, counts = count(pack(np.full(size, 5), index(values)))
    _, shown, _ = quantiles(Cells(keys, counts), QS)
    assert shown[0] == pytest.approx([exact(values, q) for q in QS], rel=0.0055, abs=0)
