"""The workload profile: what a window of requests looks like, as one document (capacity text A).

Everything comes from one window of one log, so that lengths, classes and cost agree. What a log does not tell is null,
with the reason in `notes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from capwatch.capacity import lengths
from capwatch.capacity.balance import fairness
from capwatch.capacity.bursts import bursts, quantile
from capwatch.record import Floats, Ints, Texts

COARSE_S: Final = 300
"""Seconds of the coarse window that monitoring usually shows."""
BURSTY: Final = 2.0
"""Variance over mean of 1 s counts, within the hour, from which arrivals are bursty: Poisson has 1."""
DIURNAL: Final = 2.0
"""Busiest over quietest hour of the day from which arrivals are diurnal; texts call 2 to 4 ordinary."""
HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that arrived in a window, as columns of length n; NaN where the log does not tell.

    Attributes:
        started: float64[n], arrival, s since the epoch.
        prompt, cached, output: float64[n], tokens.
        prefill, decode: float64[n], replica-seconds.
        stream: int64[n], 1, 0, or −1 where not told.
        labels: `class`, `tenant`, `model`, `route`, and `region` where it is known.
    """

    started: Floats
    prompt: Floats
    cached: Floats
    output: Floats
    prefill: Floats
    decode: Floats
    stream: Ints
    labels: Mapping[str, Texts]

    @property
    def cost(self) -> Floats:
        """float64[n], replica-seconds of each request."""
        return self.prefill + self.decode

    @property
    def tokens(self) -> Floats:
        """float64[n], prompt and output tokens; a count that is not told is none."""
        return np.nan_to_num(self.prompt) + np.nan_to_num(self.output)


def profile(requests: Requests, since: float, until: float, calibration: str | None = None) -> dict[str, object]:
    """The document of the requests that arrived in since ≤ t < until (s since the epoch, whole, until > since).

    Args:
        requests: all of them, each in the window.
        since: begin of the window.
        until: its end.
        calibration: what the rates behind the cost are called; None where they are assumed.
    """
    notes: dict[str, str] = {}
    counted = ~(np.isnan(requests.prompt) & np.isnan(requests.output))
    n = len(requests.started)
    if not n:
        notes["window"] = "no request arrived in it"
    document: dict[str, object] = {
        "window": {
            "since": _time(since),
            "until": _time(until),
            "bucket_s": 1,
            "requests": n,
            "with_tokens_share": float(counted.mean()) if n else None,
        },
        "arrivals": arrivals(requests.started, since, until, notes),
        "prompt_tokens": distribution(requests.prompt, "prompt_tokens", notes),
        "output_tokens": distribution(requests.output, "output_tokens", notes),
        "classes": {
            name: {"share": share, "mean_cost": cost, **lengths}
            for (name, share, cost), lengths in zip(
                _groups(requests, "class", notes), _class_lengths(requests), strict=True
            )
        },
        "streaming": _streaming(requests.stream, notes),
        "prefix_cache_hit_rate": _hit_rate(requests, notes),
        "tenants": _tenants(requests, notes),
        "models": {name: share for name, share, _ in _groups(requests, "model", notes)},
        "routes": {name: share for name, share, _ in _groups(requests, "route", notes)},
        "cost": _cost(requests, calibration, notes),
    }  # fmt: skip
    if "region" in requests.labels:
        document["regions"] = {name: share for name, share, _ in _groups(requests, "region", notes)}
    return {**document, "notes": notes}


def arrivals(started: Floats, since: float, until: float, notes: dict[str, str]) -> dict[str, object]:
    """Rates, bursts and regularity of arrivals.

    >>> at = np.repeat(np.arange(600.0), 8) + np.tile(np.arange(8) / 8, 600)
    >>> found = arrivals(at, 0, 600, {})
    >>> found["mean_rps"], found["p99_5min_rps"], found["max_ramp_rps"], round(found["cv2"], 9), found["pattern"]
    (8.0, 8.0, 0.0, 0.0, 'steady')
    """
    counts = np.bincount((started - since).astype(np.int64), minlength=int(until - since)).astype(np.float64)
    return arrivals_of(counts, since, gap_cv2(started, counts, notes), notes)


def arrivals_of(counts: Floats, since: float, cv2: float | None, notes: dict[str, str]) -> dict[str, object]:
    """The same of counts of single seconds from ``since`` on, at least one, whose Ca² is known or not."""
    windows = counts[: len(counts) // COARSE_S * COARSE_S].reshape(-1, COARSE_S).sum(axis=1) / COARSE_S
    found = bursts(counts)
    assert found is not None  # noqa: S101 - a window has seconds
    if not len(windows):
        notes["arrivals.p99_5min_rps"] = "the window is shorter than five minutes"
    if found.by_mean:
        notes["arrivals.p99_1s_to_median"] = "the median second is empty: over the mean second instead"
    return {
        "mean_rps": float(counts.mean()),
        "p99_5min_rps": quantile(windows, 0.99) if len(windows) else None,
        "p99_1s_to_median": found.p99_to_usual,
        "longest_burst_s": found.longest_s,
        "max_ramp_rps": found.max_ramp,
        "cv2": cv2,
        "pattern": pattern(counts, since),
    }


def gap_cv2(started: Floats, counts: Floats, notes: dict[str, str]) -> float | None:
    """Ca²: of the gaps between arrivals, or variance over mean of 1 s counts where times are whole seconds."""
    if len(started) < 3:
        notes["arrivals.cv2"] = "fewer than three arrivals"
        return None
    if np.all(started == np.floor(started)):
        notes["arrivals.cv2"] = "times are whole seconds: variance over mean of 1 s counts"
        return float(counts.var() / counts.mean())
    gaps = np.diff(np.sort(started))
    return float(gaps.var() / gaps.mean() ** 2)


def pattern(counts: Floats, since: float) -> str:
    """`bursty` where single seconds vary twice as much as at random within their hour, else `diurnal` or `steady`.

    Diurnal needs a whole day whose busiest hour has twice the arrivals of its quietest.

    >>> pattern(np.full(7200, 3.0), 0.0), pattern(np.tile([0.0, 0, 0, 12], 900), 0.0)
    ('steady', 'bursty')
    """
    hour = ((since + np.arange(len(counts))) // HOUR_S).astype(np.int64)
    hour -= hour[0]
    sizes = np.bincount(hour)
    means = np.bincount(hour, counts) / sizes
    within = ((counts - means[hour]) ** 2).mean()
    if counts.mean() and within / counts.mean() >= BURSTY:
        return "bursty"
    of_day = (np.arange(len(means)) + int(since // HOUR_S)) % 24
    if len(counts) >= 24 * HOUR_S:
        level = np.bincount(of_day, means * sizes, 24) / np.bincount(of_day, sizes, 24)
        if level.max() >= DIURNAL * level.min():
            return "diurnal"
    return "steady"


def distribution(values: Floats, name: str, notes: dict[str, str]) -> dict[str, float | None] | None:
    """Mean, quantiles, and the lognormal with the same mean and median; None where no length is told.

    >>> distribution(np.array([np.nan]), "prompt_tokens", {})
    """
    told = values[~np.isnan(values)]
    if not len(told):
        notes[name] = "the log does not tell it"
        return None
    p50, p95, p99 = (quantile(told, q) for q in (0.5, 0.95, 0.99))
    return distribution_of(float(told.mean()), (p50, p95, p99, float(told.max())), name, notes)


def distribution_of(
    mean: float, told: tuple[float, float, float, float], name: str, notes: dict[str, str]
) -> dict[str, float | None]:
    """The same of a mean and p50, p95, p99 and the largest."""
    p50, p95, p99, most = told
    sigma = lengths.sigma(mean, p50)
    misfit = None if sigma is None else lengths.misfit(lengths.quantile(p50, sigma, 0.99), p99)
    if misfit is None:
        notes[f"{name}.lognormal_sigma"] = "the mean is not above the median: no lognormal"
    elif abs(misfit) > lengths.MISFIT:
        notes[f"{name}.fit_error"] = f"a lognormal's p99 is {misfit:+.0%} off: the lengths are none; use the quantiles"
    return {
        "mean": mean, "p50": p50, "p95": p95, "p99": p99, "max": most,
        "lognormal_sigma": sigma, "fit_error": misfit,
    }  # fmt: skip


def _groups(requests: Requests, label: str, notes: dict[str, str]) -> list[tuple[str, float, float | None]]:
    """Name, share and mean cost of each value of a label, the largest first."""
    codes, names = requests.labels[label].codes, requests.labels[label].names
    counts = np.bincount(codes, minlength=len(names))
    known = ~np.isnan(requests.cost)
    costs = np.bincount(codes[known], requests.cost[known], len(names))
    costed = np.bincount(codes[known], minlength=len(names))
    if any(names[i] is None for i in np.flatnonzero(counts)):
        notes[label] = "some requests do not tell it: unknown"
    return [
        (names[i] or "unknown", float(counts[i] / len(codes)), float(costs[i] / costed[i]) if costed[i] else None)
        for i in np.argsort(-counts, kind="stable").tolist()
        if counts[i]
    ]


def _class_lengths(requests: Requests) -> Iterator[dict[str, float | None]]:
    """Mean computed prompt tokens and output tokens of each class, in the order of `_groups`."""
    codes = requests.labels["class"].codes
    computed = requests.prompt - np.nan_to_num(requests.cached)
    for code in np.argsort(-np.bincount(codes), kind="stable")[: len(np.unique(codes))].tolist():
        means = {}
        for name, values in (("mean_computed_prompt_tokens", computed), ("mean_output_tokens", requests.output)):
            told = values[(codes == code) & ~np.isnan(values)]
            means[name] = float(told.mean()) if len(told) else None
        yield means


def _streaming(stream: Ints, notes: dict[str, str]) -> float | None:
    told = stream[stream >= 0]
    if not len(told):
        notes["streaming"] = "the log does not tell it"
        return None
    return float(told.mean())


def _hit_rate(requests: Requests, notes: dict[str, str]) -> float | None:
    both = ~np.isnan(requests.prompt) & ~np.isnan(requests.cached)
    prompts = float(requests.prompt[both].sum())
    if not prompts:
        notes["prefix_cache_hit_rate"] = "the log does not tell cached tokens"
        return None
    return float(requests.cached[both].sum()) / prompts


def _tenants(requests: Requests, notes: dict[str, str]) -> dict[str, float | int | None]:
    """How many, and how much the largest has; concentration is Σ share² of cost."""
    tenant = requests.labels["tenant"]
    n = len(tenant.names)
    known = ~np.isnan(requests.cost)
    cost: Floats = np.bincount(tenant.codes[known], requests.cost[known], n).astype(np.float64)
    tokens = np.bincount(tenant.codes, requests.tokens, n)
    seen = np.bincount(tenant.codes, minlength=n) > 0
    if any(tenant.names[i] is None for i in np.flatnonzero(seen)):
        notes["tenants"] = "some requests tell no tenant: those count as one"
    jain = fairness(cost)
    return {
        "count": int(seen.sum()),
        "top1_share_of_tokens": float(tokens.max() / tokens.sum()) if tokens.sum() else None,
        "top1_share_of_cost": float(cost.max() / cost.sum()) if cost.sum() else None,
        "concentration": None if jain is None else 1 / (n * jain),
    }


def _cost(requests: Requests, calibration: str | None, notes: dict[str, str]) -> dict[str, float | str | None] | None:
    known = ~np.isnan(requests.cost)
    if not known.any():
        notes["cost"] = "no request tells token counts"
        return None
    if calibration is None:
        notes["cost.calibration"] = "rates are assumed, not measured: compare cost only within itself"
    cost = requests.cost[known]
    mean = float(cost.mean())
    return {
        "mean_replica_seconds": mean,
        "prefill_replica_seconds": float(requests.prefill[known].mean()),
        "decode_replica_seconds": float(requests.decode[known].mean()),
        "cv2": float(cost.var()) / mean**2 if mean else None,
        "calibration": calibration,
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
