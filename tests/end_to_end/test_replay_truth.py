"""Sums against the truth: every counter that replay prints of a seeded log is what an independent computation says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from math import fsum

import numpy as np
import pytest

from tests.truth import truth
from tests.truth.rows import labels
from tests.truth.traffic import Traffic

from .command import Labels
from .logs import EXACT, MEASURES, PAIR, Replayed

Sums = Mapping[Labels, float]
Table = tuple[tuple[str, ...], Callable[[Traffic], Sums]]


def by_verdict(verdict: str, *, reason: bool) -> Callable[[Traffic], Sums]:
    """Requests by tenant, route and, where wanted, reason."""

    def count(log: Traffic) -> Sums:
        found: Counter[Labels] = Counter()
        for (tenant, route, said, why), n in truth.goodput(log.rows, log.options.slos).items():
            if said == verdict:
                found[(tenant, route, why) if reason else (tenant, route)] += n
        return found

    return count


def distribution(measure: str, part: int) -> Callable[[Traffic], Sums]:
    """Count (0) or sum (1) of a measure for life, by tenant and route."""
    return lambda log: {
        (tenant, route): found[part]
        for (name, tenant, route), found in truth.totals(log.rows).items()
        if name == measure
    }


def in_histogram(measure: str, part: int) -> Callable[[Traffic], Sums]:
    """The same by route and pool."""

    def sums(log: Traffic) -> Sums:
        found: defaultdict[Labels, list[float]] = defaultdict(list)
        column = log.rows.queue_s if measure == "queue_seconds" else truth.measures(log.rows)[measure]
        names = zip(labels(log.rows.route), pools(log), strict=True)
        for key, value in zip(names, column.tolist(), strict=True):
            if not np.isnan(value):
                found[key].append(value)
        return {key: (len(values), fsum(values))[part] for key, values in found.items()}

    return sums


def by_class(log: Traffic, weight: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Sums:
    """A column by pool and class."""
    found: defaultdict[Labels, list[float]] = defaultdict(list)
    for pool, kind, value in zip(pools(log), log.rows.traffic_class, weight.tolist(), strict=True):
        found[pool, kind].append(value)
    return {key: fsum(values) for key, values in found.items()}


def costs(log: Traffic) -> list[float]:
    """Replica-seconds of each request."""
    rows = log.rows
    return [fsum(truth.cost(rows.take(slice(i, i + 1)), log.options.pools).values()) for i in range(len(rows))]


def pools(log: Traffic) -> list[str]:
    """The pool of each request."""
    return truth.pool_of(log.rows, log.options.pools)


def counted(keys: list[str]) -> Sums:
    """How often each occurs."""
    return Counter((key,) for key in keys)


TABLES: dict[str, Table] = {
    "requests_total": ((*PAIR, "model", "outcome"), lambda log: truth.requests(log.rows)),
    "tokens_total": ((*PAIR, "model", "kind"), lambda log: truth.tokens(log.rows)),
    "usage_unknown_total": (("source",), lambda log: {("gateway",): truth.usage_unknown(log.rows)}),
    "cost_replica_seconds_total": ((*PAIR, "pool", "phase"), lambda log: truth.cost(log.rows, log.options.pools)),
    "prefill_saved_replica_seconds_total": (
        (*PAIR, "pool"),
        lambda log: truth.prefill_saved(log.rows, log.options.pools),
    ),
    "abandoned_replica_seconds_total": (("pool",), lambda log: truth.abandoned(log.rows, log.options.pools)),
    "goodput_requests_total": (PAIR, by_verdict("good", reason=False)),
    "goodput_missed_total": ((*PAIR, "reason"), by_verdict("missed", reason=True)),
    "goodput_unclassified_total": ((*PAIR, "reason"), by_verdict("unclassified", reason=True)),
    "retries_total": (("route",), lambda log: truth.retries(log.rows)),
    "duplicates_total": (("route",), truth.duplicates),
    "phase_seconds_total": (("pool", "phase"), lambda log: truth.phase_seconds(log.rows, log.options.pools)),
    "arrivals_total": (("pool",), lambda log: counted(pools(log))),
    "departures_total": (("pool",), lambda log: counted(pools(log))),
    "class_requests_total": (("pool", "class"), lambda log: by_class(log, np.ones(len(log.rows)))),
    "class_cost_replica_seconds_total": (("pool", "class"), lambda log: by_class(log, np.array(costs(log)))),
    "late_records_total": (("source",), lambda log: {("gateway",): int(truth.lateness(log.rows)[0].sum())}),
    **{
        f"{name}_{suffix}": (PAIR, distribution(name, part))
        for name in MEASURES
        for part, suffix in enumerate(("count", "sum"))
    },
    **{
        f"route_{name}_{suffix}": (("route", "pool"), in_histogram(name, part))
        for name in (*MEASURES, "queue_seconds")
        for part, suffix in enumerate(("count", "sum"))
    },
}


def folded(sums: Sums, names: tuple[str, ...], kept: tuple[str, ...]) -> Sums:
    """Summed over the labels that are not kept, without what is 0."""
    found: defaultdict[Labels, list[float]] = defaultdict(list)
    for key, value in sums.items():
        found[tuple(one for name, one in zip(names, key, strict=True) if name in kept)].append(value)
    return {key: fsum(values) for key, values in found.items() if any(values)}


@pytest.mark.parametrize("name", TABLES)
def test_sums_are_exact(log: Replayed, name: str) -> None:
    """Every counter has the true value under every label; where names are capped, their sum has."""
    names, sums = TABLES[name]
    kept = tuple(label for label in names if label not in log.setup.capped)
    got = {key: value for key, value in log.page.values(name, *kept).items() if value}
    assert got == pytest.approx(folded(sums(log.truth), names, kept), rel=EXACT)
