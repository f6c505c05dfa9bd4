"""What the product must report about drawn traffic: counts, sums, cost, goodput and exact order statistics.

Independent on purpose: no code of the product, groups by plain loops, sums by `math.fsum`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from .options import Pool, Slo
from .residence import residences
from .rows import Bools, Floats, Rows, labels
from .traffic import RECORD, SKIP, Line, Traffic

Labels = tuple[str, ...]

SLICE = 30.0  # seconds of one slice of the window
SLICES_BEFORE = 10  # the window is the current slice and these before it
AHEAD = 300.0  # a record further ahead of the newest event than this counts in totals only


def line_counts(lines: Iterable[Line]) -> Counter[str]:
    """Law 1: lines `read`, `counted`, `skipped`, and dropped under their reason."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts["read"] += 1
        counts[{RECORD: "counted", SKIP: "skipped"}.get(line.fate, line.fate)] += 1
    return counts


def duplicates(log: Traffic) -> Counter[Labels]:
    """Second lines about a request, by (route)."""
    routes = labels(log.rows.route)
    return Counter((routes[line.row],) for line in log.lines if line.fate == SKIP and line.row >= 0)


def requests(rows: Rows) -> Counter[Labels]:
    """Requests by (tenant, route, model, outcome)."""
    return Counter(zip(*map(labels, (rows.tenant, rows.route, rows.model, rows.outcome)), strict=True))


def retries(rows: Rows) -> Counter[Labels]:
    """Attempts after the first, by (route): as the rows tell them, or as rows follow a failure of their group.

    A chain of attempts goes on while each has failed and the next comes within 300 s. It has made as many retries as it
    has rows after the first, or as many as any of its rows tells, if that is more.
    """
    counts: Counter[Labels] = Counter()
    chains: dict[str, tuple[int, int, float]] = {}  # group → (rows after the first, retries counted, time of the last)
    _, ahead = lateness(rows)
    clock = np.maximum.accumulate(np.where(ahead, 0.0, rows.finished_at))  # the newest event so far, as the log goes
    columns = (rows.attempt_group, labels(rows.route), rows.outcome, np.nan_to_num(rows.retries), clock)
    for group, route, outcome, more, end in zip(*columns, strict=True):
        place, counted, last = chains.pop(str(group), (-1, 0, -np.inf)) if group else (-1, 0, -np.inf)
        if end - last > 300:
            place, counted = -1, 0
        most = max(counted, place + 1, int(more))
        counts[(route,)] += most - counted
        if group and outcome in (
            "timeout",
            "overload",
            "rate_limited",
            "upstream_error",
            "gateway_error",
            "client_abort",
        ):
            chains[str(group)] = (place + 1, most, end)
    return +counts


def usage_unknown(rows: Rows) -> int:
    """Requests that ended well but told neither token count."""
    return int(np.sum((rows.outcome == "ok") & np.isnan(rows.prompt_tokens) & np.isnan(rows.output_tokens)))


def tokens(rows: Rows) -> dict[Labels, int]:
    """Tokens by (tenant, route, model, kind); kinds without a token are left out."""
    cached = np.nan_to_num(rows.cached_tokens)
    kinds = {
        "prompt_computed": np.nan_to_num(rows.prompt_tokens - cached),
        "prompt_cached": cached,
        "output": np.nan_to_num(rows.output_tokens),
    }
    names = [labels(column) for column in (rows.tenant, rows.route, rows.model)]
    sums = {kind: _sums(names, amounts) for kind, amounts in kinds.items()}
    return {(*key, kind): int(total) for kind, by_key in sums.items() for key, total in by_key.items()}


def pool_of(rows: Rows, pools: Sequence[Pool]) -> list[str]:
    """The pool of each row: the first that serves its model."""
    return [next(pool.name for pool in pools if not pool.models or model in pool.models) for model in rows.model]


def cost(rows: Rows, pools: Sequence[Pool]) -> dict[Labels, float]:
    """Replica-seconds by (tenant, route, pool, phase); the gateway's own answers cost nothing."""
    computed = np.nan_to_num(rows.prompt_tokens - np.nan_to_num(rows.cached_tokens))
    names = [labels(rows.tenant), labels(rows.route), pool_of(rows, pools)]
    prefill = _priced(rows, pools, computed, decode=False)
    decode = _priced(rows, pools, np.nan_to_num(rows.output_tokens), decode=True)
    parts = {"prefill": _sums(names, prefill), "decode": _sums(names, decode)}
    return {(*key, phase): total for phase, by_key in parts.items() for key, total in by_key.items()}


def prefill_saved(rows: Rows, pools: Sequence[Pool]) -> dict[Labels, float]:
    """Replica-seconds that cached prompt tokens did not cost, by (tenant, route, pool)."""
    saved = _priced(rows, pools, np.nan_to_num(rows.cached_tokens), decode=False)
    return _sums([labels(rows.tenant), labels(rows.route), pool_of(rows, pools)], saved)


def abandoned(rows: Rows, pools: Sequence[Pool]) -> dict[Labels, float]:
    """Replica-seconds of requests that nobody waited for any more, by (pool)."""
    left = rows.take(np.isin(rows.outcome.astype(str), ("client_abort", "timeout")))
    sums: defaultdict[Labels, float] = defaultdict(float)
    for (_, _, pool, _), amount in cost(left, pools).items():
        sums[(pool,)] += amount
    return dict(sums)


def phase_seconds(rows: Rows, pools: Sequence[Pool]) -> dict[Labels, float]:
    """Residence in seconds of all requests with a duration, whatever their outcome, by (pool, phase)."""
    names = [pool_of(rows, pools)]
    parts = {phase: _sums(names, seconds) for phase, seconds in residences(rows).items()}
    return {(*key, phase): total for phase, by_key in parts.items() for key, total in by_key.items()}


def goodput(rows: Rows, slos: Sequence[Slo]) -> Counter[Labels]:
    """Requests by (tenant, route, `good`|`missed`|`unclassified`, reason); the reason of good is empty."""
    names = (labels(rows.tenant), labels(rows.route))
    return Counter(
        (tenant, route, *_verdict(rows, i, next((slo for slo in slos if slo.route in (None, route)), None)))
        for i, (tenant, route) in enumerate(zip(*names, strict=True))
    )


def lateness(rows: Rows) -> tuple[Bools, Bools]:
    """Which rows came too late for the window, and which are too far ahead of it, read in the order of the file."""
    late, ahead = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    newest = rows.finished_at[0] if len(rows) else 0.0
    for i, at in enumerate(rows.finished_at):
        ahead[i] = at > newest + AHEAD
        if not ahead[i]:
            newest = max(newest, at)
            late[i] = _slice(at) < _slice(newest) - SLICES_BEFORE
    return late, ahead


def measures(rows: Rows) -> dict[str, Floats]:
    """The distributions, by metric stem; NaN where a row has no value. Cached answers have no TTFT and no TPOT."""
    ttft = np.where(rows.cache_hit, np.nan, rows.ttft_s)
    gaps = np.where(rows.output_tokens >= 2, rows.output_tokens - 1, np.nan)
    return {
        "prompt_tokens": rows.prompt_tokens,
        "output_tokens": rows.output_tokens,
        "ttft_seconds": ttft,
        "tpot_seconds": (rows.duration_s - ttft) / gaps,
        "duration_seconds": rows.duration_s,
    }


def totals(rows: Rows) -> dict[Labels, tuple[int, float]]:
    """Lifetime (count, sum) by (measure, tenant, route)."""
    return {key: (len(values), math.fsum(values)) for key, values in _values(rows).items()}


def quantiles(rows: Rows, wanted: Sequence[str] = ("0.5", "0.95", "0.99")) -> dict[Labels, float]:
    """Exact order statistics of rank ⌈q·n⌉ over the window at the newest event, by (measure, tenant, route, q)."""
    late, ahead = lateness(rows)
    if ahead.all():
        return {}
    newest = float(np.max(rows.finished_at[~ahead]))
    current = np.array([_slice(at) >= _slice(newest) - SLICES_BEFORE for at in rows.finished_at])
    window = rows.take(current & ~late & ~ahead)
    return {(*key, q): order_statistic(values, q) for key, values in _values(window).items() for q in wanted}


def order_statistic(values: Sequence[float], q: str) -> float:
    """The value of rank ⌈q·n⌉ among `values`; `q` is a decimal text in (0, 1], so that no rank is off by rounding."""
    return sorted(values)[math.ceil(Fraction(q) * len(values)) - 1]


def _slice(at: float) -> int:
    return math.floor(at / SLICE)


def _values(rows: Rows) -> dict[Labels, list[float]]:
    lists: defaultdict[Labels, list[float]] = defaultdict(list)
    tenants, routes = labels(rows.tenant), labels(rows.route)
    for name, column in measures(rows).items():
        for tenant, route, value in zip(tenants, routes, column.tolist(), strict=True):
            if not math.isnan(value):
                lists[name, tenant, route].append(value)
    return dict(lists)


def _sums(names: Sequence[Sequence[str]], amounts: Floats) -> dict[Labels, float]:
    """Exact sums of the amounts that are not 0, by the tuple of their names."""
    parts: defaultdict[Labels, list[float]] = defaultdict(list)
    for key, amount in zip(zip(*names, strict=True), amounts.tolist(), strict=True):
        if amount:
            parts[key].append(amount)
    return {key: math.fsum(values) for key, values in parts.items()}


def _priced(rows: Rows, pools: Sequence[Pool], amounts: Floats, *, decode: bool) -> Floats:
    rates = {pool.name: pool.decode_rate if decode else pool.prefill_rate for pool in pools}
    return np.where(
        rows.cache_hit, 0.0, amounts / np.array([rates[name] for name in pool_of(rows, pools)], dtype=float)
    )


def _verdict(rows: Rows, i: int, slo: Slo | None) -> tuple[str, str]:
    """Goodput of row `i` by the first rule of the design's section on goodput that applies."""
    outcome, ttft, output = rows.outcome[i], float(rows.ttft_s[i]), float(rows.output_tokens[i])
    duration = float(rows.duration_s[i])
    if rows.cache_hit[i]:
        return "unclassified", "cache_hit"
    if outcome == "client_abort":
        unserved = math.isnan(ttft) and not output > 0
        impatient = slo is None or not (unserved and duration > slo.ttft_s)
        return ("unclassified", "client") if impatient else ("missed", "ttft")
    if outcome in ("client_error", "content_filter") or rows.rate_limited_by[i] == "gateway":
        return "unclassified", "client"
    if outcome != "ok":
        return "missed", "error"
    return ("unclassified", "no_slo") if slo is None else _within(slo, bool(rows.stream[i]), ttft, output, duration)


def _within(slo: Slo, stream: bool, ttft: float, output: float, duration: float) -> tuple[str, str]:
    slow_whole = slo.e2e_s is not None and duration > slo.e2e_s
    if math.isnan(ttft):
        if stream or slo.e2e_s is None or math.isnan(duration):
            return "unclassified", "no_timing"
        return ("missed", "e2e") if slow_whole else ("good", "")
    if math.isnan(output):
        return "unclassified", "no_tokens"
    slow_start = ttft > slo.ttft_s
    slow_tokens = output >= 2 and (duration - ttft) / (output - 1) > slo.tpot_s
    if slow_start and slow_tokens:
        return "missed", "both"
    if slow_start or slow_tokens:
        return "missed", "ttft" if slow_start else "tpot"
    return ("missed", "e2e") if slow_whole else ("good", "")
