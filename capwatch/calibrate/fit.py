"""The linear model of a replica, fitted: coefficients, their covariance, and how far its prediction is off.

Errors grow with the length of a stretch and are shared by all who were there at the time, so rows weigh 1/√seconds,
outliers count less (Huber 1964), and the covariance is that of clusters in time (Liang and Zeger 1986).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from capwatch.calibrate.extra import regression
from capwatch.calibrate.results import Point
from capwatch.calibrate.windows import Model, Observed, Rows, rows
from capwatch.errors import CapwatchError
from capwatch.record import Bools, Floats, Ints

FEWEST_POINTS: Final = 3
"""Runs of different numbers of requests at once: a step and its sequences are two unknowns, and one to check them."""
FEWEST: Final = 30
"""Requests below which nothing is fitted: a handful cannot tell four coefficients apart."""
ROUNDS: Final = 8
"""Each places prefills and tokens by the model of the one before; what is found moves by less than 0.1 % after six."""
CLUSTERS: Final = 20
"""Stretches of time whose errors are independent: enough for a covariance, and long against a residence."""
TERMS: Final = ("computed", "steps", "tokens", "before")
PLACING: Final = 0.0075
"""Relative standard error from where work is taken to lie inside a request, which no log tells: engines of known rates
come out up to 0.3 % off where prefills stop the others, up to 1.5 % where they are chunked, however many requests."""
APART: Final = 1e-3
"""Smallest over largest singular value, columns scaled, below which two columns tell the same."""


class Estimate(NamedTuple):
    """A value, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What was found, in the order of `TERMS`; 0 with no variance where a term was left out."""

    coefficients: Floats
    covariance: Floats
    rows: Rows
    weights: Floats
    """float64[rows]: how much each counted, 0..1."""
    placing: float = PLACING
    """Relative standard error that no number of requests takes away."""

    @property
    def model(self) -> Model:
        """Seconds of a token, a step, a sequence."""
        return Model(*self.coefficients[:3].tolist())

    def prefill(self) -> Estimate | None:
        """Computed prompt tokens/s alone; None where it is not told."""
        return self._inverse(float(self.coefficients[0]), math.sqrt(self.covariance[0, 0]))

    def decode(self, running: float) -> Estimate | None:
        """Output tokens/s in all with so many sequences; None where it is not told."""
        weights = np.array([0.0, 1 / running, 1.0, 0.0])
        value = float(weights @ self.coefficients)
        return self._inverse(value, math.sqrt(max(0.0, float(weights @ self.covariance @ weights))))

    def _inverse(self, seconds: float, error: float) -> Estimate | None:
        """1/x with its interval; where that reaches 0, nothing is told."""
        error = math.hypot(error, self.placing * seconds)
        if seconds <= 1.96 * error or seconds <= 0:
            return None
        return Estimate(1 / seconds, 1 / (seconds + 1.96 * error), 1 / (seconds - 1.96 * error))


def fit(seen: Observed) -> Fit:
    """Fit requests.

    Raises:
        CapwatchError: there are too few, or they do not tell prefill and decode apart.
    """
    if len(seen.first) < FEWEST:
        raise CapwatchError(f"{len(seen.first)} requests tell tokens and times; at least {FEWEST} are needed")
    model = _start(seen)
    for _ in range(ROUNDS - 1):
        found = _whole(rows(seen, model), seen)
        model = _placed(_least_squares(*_scaled(found)))
    found = _whole(rows(seen, model), seen)
    return settled(found)


def settled(found: Rows, placing: float = PLACING) -> Fit:
    """The robust fit; a term that would take less than no time is left out, the least certain one first."""
    design, seconds = _scaled(found)
    terms = _apart(design)
    while True:
        coefficients, covariance, weights = _robust(design[:, terms], seconds, _clusters(found.began))
        wrong = {
            float(coefficients[place] / math.sqrt(max(covariance[place, place], 1e-30))): term
            for place, term in enumerate(terms)
            if coefficients[place] < 0 and TERMS[term] != "before"
        }
        if not wrong or len(terms) == 1:
            break
        terms = [term for term in terms if term != wrong[min(wrong)]]
    whole, spread = np.zeros(len(TERMS)), np.zeros((len(TERMS), len(TERMS)))
    whole[terms] = coefficients
    spread[np.ix_(terms, terms)] = covariance
    return Fit(whole, spread, found, weights, placing)


def busy_error(seen: Observed) -> float | None:
    """Predicted over measured busy time, less 1: each half of the time predicted by the other; the larger one.

    None where a half has too few requests.
    """
    half = seen.first < np.median(seen.first)
    errors = []
    for one in (half, ~half):
        if min(int(one.sum()), int((~one).sum())) < FEWEST:
            return None
        found = fit(seen.take(~one))
        other = _whole(rows(seen.take(one), found.model), seen.take(one))
        errors.append(float((_design(other) @ found.coefficients).sum() / other.seconds.sum()) - 1)
    return max(errors, key=abs)


def _start(seen: Observed) -> Model:
    """A first guess: prefills that hardly waited, and steps without interference."""
    token = float(np.quantile((seen.first - seen.began) / np.maximum(seen.computed, 1), 0.1))
    later = seen.output >= 2
    step = float(np.median((seen.ended - seen.first)[later] / (seen.output[later] - 1))) if later.any() else 0.0
    return _placed(np.array([token, 0.7 * step, 0.02 * step, 0.0]))


def _placed(coefficients: Floats) -> Model:
    """A model by which things can be placed: nothing takes no time."""
    return Model(*np.maximum(coefficients[:3], [1e-9, 1e-9, 0.0]).tolist())


def _whole(found: Rows, seen: Observed) -> Rows:
    """The stretches that have a length, and in which everybody is known: not at the cut ends of a log."""
    kept = found.seconds > 0
    end = float(seen.ended.max() - np.quantile(seen.ended - seen.began, 0.99))
    inside: Bools = kept & (found.began >= seen.ended.min()) & (found.began + found.seconds <= end)
    return found.take(inside if inside.sum() >= max(FEWEST, kept.sum() / 2) else kept)


def _design(found: Rows) -> Floats:
    return np.stack([getattr(found, name) for name in TERMS], axis=1)


def _scaled(found: Rows) -> tuple[Floats, Floats]:
    weight = 1 / np.sqrt(np.maximum(found.seconds, 1e-3))
    return _design(found) * weight[:, None], found.seconds * weight


def _least_squares(design: Floats, seconds: Floats) -> Floats:
    terms = _apart(design)
    found = np.zeros(len(TERMS))
    found[terms] = np.linalg.lstsq(design[:, terms], seconds, rcond=None)[0]
    return found


def _apart(design: Floats) -> list[int]:
    """The terms that can be told apart: without the extra before the first token, then without the step."""
    for terms in ([0, 1, 2, 3], [0, 1, 2], [0, 2, 3], [0, 2]):
        part = design[:, terms]
        sizes = np.sqrt((part**2).sum(axis=0))
        if sizes.all() and (values := np.linalg.svd(part / sizes, compute_uv=False))[-1] > APART * values[0]:
            return terms
    raise CapwatchError("prefill and decode cannot be told apart: lengths or numbers of requests at once must vary")


def _clusters(began: Floats) -> Ints:
    return np.searchsorted(np.quantile(began, np.linspace(0, 1, CLUSTERS + 1)[1:-1]), began)


def _robust(design: Floats, seconds: Floats, clusters: Ints) -> tuple[Floats, Floats, Floats]:
    """Coefficients, covariance, and the weight of each row."""
    models = regression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a perfect fit, in which no row is an outlier
        weights = np.ones(len(seconds))
        if np.abs(seconds - design @ np.linalg.lstsq(design, seconds, rcond=None)[0]).max() > 1e-12:
            weights = np.asarray(models.RLM(seconds, design).fit().weights, np.float64)
        found = models.WLS(seconds, design, weights=weights).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    return np.asarray(found.params), np.asarray(found.cov_params()), weights


def fit_points(points: Sequence[Point]) -> Fit:
    """Fit runs of which only means are told: the time per output token of each, and the first token of those alone.

    Raises:
        CapwatchError: they do not tell prefill and decode apart.
    """
    alone = [point for point in points if point.alone]
    if len({round(point.running, 1) for point in points}) < FEWEST_POINTS or not alone:
        raise CapwatchError(
            f"{len(points)} runs without single requests: at least {FEWEST_POINTS} with different numbers of requests"
            " at once are needed, one of them at --max-concurrency 1; or run them with --save-detailed"
        )
    number = np.arange(len(points) + len(alone))
    return settled(
        Rows(
            seconds=np.array([*(one.tpot for one in points), *(one.ttft for one in alone)]),
            computed=np.array([*(one.rate * one.prompt * one.tpot for one in points), *(one.prompt for one in alone)]),
            steps=(number < len(points)).astype(np.float64),
            tokens=np.array([*(one.running for one in points), *(0.0 for _ in alone)]),
            before=np.zeros(len(number)),  # of one run alone it could not be told from the prompt
            began=number.astype(np.float64),
            request=number,
        )
    )
