"""What a tool's exposition says about the corpus, and what it must say: one name per total, compared as numbers."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from .corpus import PHASES, ROUTES, STATUSES, TENANTS, Draws, Ints

Totals = dict[tuple[str, ...], float]

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\} (\S+)", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')  # the corpus has no name that needs escaping
TOLERANCE = 1e-9  # sums of a million doubles; counts and tokens are exact well within it

# histogram of the peers → its measure and how many of its units are one of the totals'
PEER_SUMS = {"prompt_tokens": 1.0, "output_tokens": 1.0, "ttft_ms": 1e3, "latency_ms": 1e3}
CAPWATCH_SUMS = {
    "capwatch_prompt_tokens": "prompt_tokens",
    "capwatch_output_tokens": "output_tokens",
    "capwatch_ttft_seconds": "ttft",
    "capwatch_duration_seconds": "latency",
}
MEASURES = ("prompt_tokens", "output_tokens", "ttft", "latency")


def expected(draws: Draws, *, status: bool) -> Totals:
    """The totals of metric set M, times in seconds; requests under their status, or (False) under its outcome."""
    totals: defaultdict[tuple[str, ...], float] = defaultdict(float)
    pair = draws.tenant * len(ROUTES) + draws.route
    by_status = np.bincount(pair * len(STATUSES) + draws.status)
    for code in np.flatnonzero(by_status).tolist():
        told = STATUSES[code % len(STATUSES)]
        key = ("requests", *_pair(code // len(STATUSES)), str(told[0]) if status else told[2])
        totals[key] += int(by_status[code])
    columns = {
        "prompt_tokens": (draws.prompt, 1),
        "output_tokens": (draws.output, 1),
        "ttft": (draws.ttft, 1e6),
        "latency": (draws.latency, 1e6),
    }
    for code, count in enumerate(np.bincount(pair).tolist()):
        if count:
            totals.update({(f"{measure}_count", *_pair(code)): count for measure in MEASURES})
    for measure, (column, unit) in columns.items():
        totals.update(_by_pair(f"{measure}_sum", pair, column, unit))
    totals.update(_by_pair("cached_tokens", pair, draws.cached, 1))
    for phase in PHASES:
        totals[("phase", phase)] = int(getattr(draws, phase).sum()) / 1e6
    return dict(totals)


def from_peer(exposition: str) -> Totals:
    """The totals in an exposition of `gw.mtail`."""
    totals: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for name, labels, value in _samples(exposition):
        stem, _, part = name.rpartition("_")
        pair = (labels.get("tenant", ""), labels.get("route", ""))
        if name == "requests_total":
            totals["requests", *pair, labels["status"]] += value
        elif name == "cached_tokens_total":
            totals["cached_tokens", *pair] += value
        elif name.endswith("_ms_total"):
            totals["phase", name.removesuffix("_ms_total")] += value / 1e3
        elif stem in PEER_SUMS and part in ("sum", "count"):
            unit = PEER_SUMS[stem] if part == "sum" else 1
            totals[f"{stem.removesuffix('_ms')}_{part}", *pair] += value / unit
    return dict(totals)


def from_capwatch(exposition: str) -> Totals:
    """The totals in an exposition of capwatch, models and pools added up."""
    totals: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for name, labels, value in _samples(exposition):
        stem, _, part = name.rpartition("_")
        pair = (labels.get("tenant", ""), labels.get("route", ""))
        if name == "capwatch_requests_total":
            totals["requests", *pair, labels["outcome"]] += value
        elif name == "capwatch_tokens_total" and labels["kind"] == "prompt_cached":
            totals["cached_tokens", *pair] += value
        elif name == "capwatch_phase_seconds_total" and labels["phase"] != "other":
            totals["phase", labels["phase"]] += value
        elif stem in CAPWATCH_SUMS and part in ("sum", "count"):
            totals[f"{CAPWATCH_SUMS[stem]}_{part}", *pair] += value
    return dict(totals)


def differences(found: Mapping[tuple[str, ...], float], wanted: Mapping[tuple[str, ...], float]) -> list[str]:
    """One line for each total that is missing, too much or not equal; a missing total counts as 0."""
    return [
        f"{' '.join(key)}: found {found.get(key, 0)}, wanted {wanted.get(key, 0)}"
        for key in sorted({*found, *wanted})
        if not math.isclose(found.get(key, 0), wanted.get(key, 0), rel_tol=TOLERANCE, abs_tol=1e-6)
    ]


def _pair(code: int) -> tuple[str, str]:
    return TENANTS[code // len(ROUTES)], ROUTES[code % len(ROUTES)][0]


def _by_pair(name: str, pair: Ints, column: Ints, unit: float) -> Totals:
    """Sums by tenant and route; whole numbers below 2^53 add up exactly in doubles."""
    sums = np.bincount(pair, weights=column)
    return {(name, *_pair(code)): sums[code] / unit for code in np.flatnonzero(sums).tolist()}


def _samples(exposition: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for name, labels, value in SAMPLE.findall(exposition):
        yield name, dict(LABEL.findall(labels)), float(value)
