"""Draws the requests of a seeded stretch of traffic, as columns; knows nothing of lines, files or totals."""

from __future__ import annotations

import numpy as np

from .options import AWKWARD_TENANTS, DAMAGES, OUTCOMES, PHASES, Options
from .rows import Bools, Floats, Rows, blank, texts

HOUR = 3600.0
DAY = 24 * HOUR
REFUSED = ("rate_limited", "overload", "client_error", "gateway_error")  # never reached a model: no tokens
RESENT = ("rate_limited", "overload", "timeout", "upstream_error")  # what clients send again


def draw(options: Options) -> Rows:
    """The requests of one stretch of traffic in the order in which their rows are written; same options, same rows."""
    rng = np.random.default_rng(options.seed)
    at = arrivals(options, rng)
    rows = blank(len(at))
    rows.started_at = at
    _draw_names(options, rng, rows)
    _draw_outcomes(options, rng, rows)
    _draw_work(options, rng, rows)
    _shorten(rng, rows)
    _forget(rng, rows)
    _damage(options, rng, rows)
    _place(options, rng, rows)
    return rows.take(np.argsort(rows.written_at, kind="stable"))


def arrivals(options: Options, rng: np.random.Generator) -> Floats:
    """Arrival times within the options' stretch, ascending, to the microsecond."""
    size = 5.0  # mean requests of a cluster
    rate = options.rate / size if options.clustered else options.rate
    expected = rate * options.duration_s
    room = int(expected + 10 * np.sqrt(expected) + 10)  # ten standard deviations above the mean
    at = np.cumsum(rng.exponential(1 / rate, room))
    if options.clustered:
        members = rng.geometric(1 / size, room)
        at = np.sort(np.repeat(at, members) + rng.exponential(0.3, int(members.sum())))
    return np.round(options.start + at[at < options.duration_s], 6)


def _draw_names(options: Options, rng: np.random.Generator, rows: Rows) -> None:
    n = len(rows)
    tenants = [*AWKWARD_TENANTS, *(f"team-{k:05d}" for k in range(options.tenants))][: options.tenants]
    weights = np.arange(1, len(tenants) + 1, dtype=float) ** -options.tenant_exponent
    rows.tenant = texts(tenants)[rng.choice(len(tenants), n, p=weights / weights.sum())]
    rows.tenant[rng.random(n) < 0.01] = None
    shares = np.array([kind.share for kind in options.classes])
    kinds = rng.choice(len(shares), n, p=shares / shares.sum())
    rows.traffic_class = texts([kind.name for kind in options.classes])[kinds]
    choices = [options.classes[k].routes for k in kinds]
    rows.route = texts([choice[int(u * len(choice))] for choice, u in zip(choices, rng.random(n), strict=True)])
    rows.model = texts(list(options.models))[rng.integers(0, len(options.models), n)]
    rows.request_id = texts([f"req-{options.seed:x}-{i:08d}" for i in range(n)])
    for no_id in ("", "None", None):  # never taken for one another
        rows.request_id[rng.random(n) < 0.02] = no_id
    rows.attempt_group = texts([f"group-{i}" if u < 0.5 else None for i, u in enumerate(rng.random(n))])


def _draw_outcomes(options: Options, rng: np.random.Generator, rows: Rows) -> None:
    n = len(rows)
    shares = [share for _, share in OUTCOMES.values()]
    rows.outcome = texts(list(OUTCOMES))[rng.choice(len(OUTCOMES), n, p=shares)]
    rows.status = np.array([OUTCOMES[name][0] for name in rows.outcome], dtype=np.int64)
    limiters = texts(["gateway", "upstream", None])[rng.integers(0, 3, n)]
    rows.rate_limited_by[rows.outcome == "rate_limited"] = limiters[rows.outcome == "rate_limited"]
    rows.cache_hit = (rows.outcome == "ok") & (rng.random(n) < 0.03)
    rows.retries = np.where(rng.random(n) < 0.06, rng.integers(1, 4, n), 0).astype(float)
    rows.retries[rng.random(n) < 0.2] = np.nan
    for i in np.flatnonzero(_among(rows, RESENT)[:-1] & (rng.random(n)[:-1] < 0.5)):  # row i + 1 is the second try
        rows.attempt_group[i] = rows.attempt_group[i] or f"group-{i}"
        for column in (rows.attempt_group, rows.tenant, rows.route, rows.model, rows.traffic_class):
            column[i + 1] = column[i]


def _draw_work(options: Options, rng: np.random.Generator, rows: Rows) -> None:
    """Lengths and residences as if every request ended well, in whole tokens and microseconds."""
    n = len(rows)
    by_name = {kind.name: kind for kind in options.classes}
    kinds = [by_name[name] for name in rows.traffic_class]
    prompt = _lognormal(rng, [kind.prompt for kind in kinds])
    rows.prompt_tokens = np.clip(np.floor(prompt), 1, 200_000)  # a long context window's worth
    rows.output_tokens = np.floor(_lognormal(rng, [kind.output for kind in kinds]))
    cached = np.floor(rows.prompt_tokens * rng.uniform(0, 0.9, n) / 16) * 16
    rows.cached_tokens = np.where(rng.random(n) < 0.35, cached, 0)
    rows.stream = (rng.random(n) < 0.75) & (rows.traffic_class != "embedding")
    rows.gateway_s = np.round(rng.exponential(0.004, n), 6)
    rows.retrieval_s = _sometimes(rng, 0.3, rng.lognormal(np.log(0.09), 0.6, n))
    rows.tool_s = _sometimes(rng, 0.15, rng.lognormal(np.log(0.7), 0.9, n))
    rows.queue_s = np.round(rng.exponential(0.05, n), 6)
    rows.prefill_s = np.round((rows.prompt_tokens - rows.cached_tokens) / 9000 + 0.012, 6)
    rows.decode_s = np.round(rows.output_tokens * np.clip(rng.normal(0.03, 0.01, n), 0.005, None), 6)
    first = rows.gateway_s + rows.retrieval_s + rows.tool_s + rows.queue_s + rows.prefill_s
    rows.ttft_s = np.where(rows.stream, np.round(first, 6), np.nan)
    unexplained = np.where(rng.random(n) < 0.1, rng.exponential(0.05, n), 0)
    rows.duration_s = np.round(first + rows.decode_s + unexplained, 6)


def _lognormal(rng: np.random.Generator, shapes: list[tuple[float, float]]) -> Floats:
    medians, sds = np.array(shapes, dtype=float).reshape(-1, 2).T
    return np.asarray(medians * np.exp(sds * rng.standard_normal(len(medians))))


def _sometimes(rng: np.random.Generator, share: float, seconds: Floats) -> Floats:
    return np.round(seconds * (rng.random(len(seconds)) < share), 6)


def _shorten(rng: np.random.Generator, rows: Rows) -> None:
    """The lives of requests that did not end well, or were answered from the gateway's own cache."""
    n = len(rows)
    refused = _among(rows, REFUSED)
    _clear(rows, refused, "prompt_tokens", "cached_tokens", "output_tokens", "ttft_s", *_named(PHASES[1:]))
    rows.duration_s[refused] = np.round(rows.gateway_s + rng.exponential(0.1, n), 6)[refused]
    _clear(rows, _among(rows, ("upstream_error",)), "output_tokens", "ttft_s", "decode_s")
    rows.output_tokens[_among(rows, ("content_filter",))] = 0
    _clear(rows, _among(rows, ("content_filter",)), "ttft_s", "prefill_s", "decode_s")
    aborted = _among(rows, ("client_abort",))
    rows.stream[aborted] = True  # so that "before the first token" is a fact and not a guess
    early = aborted & (rng.random(n) < 0.5)
    rows.output_tokens[early] = 0
    _clear(rows, early, "ttft_s", "prefill_s", "decode_s")
    rows.queue_s[early] = np.round(rng.exponential(2.0, n), 6)[early]  # impatience is a matter of seconds
    before = rows.gateway_s + rows.retrieval_s + rows.tool_s + rows.queue_s
    rows.duration_s[early] = np.round(before, 6)[early]
    amid = aborted & ~early
    rows.ttft_s[amid] = np.round(before + rows.prefill_s, 6)[amid]
    hit = rows.cache_hit
    _clear(rows, hit, *_named(PHASES[1:]))
    rows.duration_s[hit] = np.round(rng.uniform(0.005, 0.05, n), 6)[hit]
    rows.ttft_s[hit] = np.where(rows.stream & (rng.random(n) < 0.5), np.round(rows.duration_s * 0.6, 6), np.nan)[hit]
    rows.gateway_s[hit] = np.round(rows.duration_s * 0.2, 6)[hit]


def _forget(rng: np.random.Generator, rows: Rows) -> None:
    """What logs leave out: derivable phases (35 %), all phases (20 %), the duration (5 %), usage (4 %)."""
    n = len(rows)
    how_much = rng.random(n)
    plain = (rows.outcome == "ok") & ~rows.cache_hit
    derivable = how_much < 0.35
    _clear(rows, derivable, "prefill_s", "decode_s")
    _clear(rows, derivable & (rng.random(n) < 0.5), "queue_s")
    _clear(rows, plain & (how_much > 0.75), "ttft_s", *_named(PHASES))
    _clear(rows, plain & (how_much > 0.95), "duration_s")
    _clear(rows, plain & (rng.random(n) < 0.04), "prompt_tokens", "cached_tokens", "output_tokens")
    _clear(rows, rows.cached_tokens == 0, "cached_tokens")
    whole = plain & (how_much > 0.36) & (how_much < 0.74) & (rows.output_tokens >= 2)
    overfull = whole & (rng.random(n) < 0.02)  # phases that add to more than the whole, as overlapping timers do
    rows.duration_s[overfull] = np.round(rows.duration_s - rows.decode_s * 0.3, 6)[overfull]


def _damage(options: Options, rng: np.random.Generator, rows: Rows) -> None:
    """Breaks one field each of some rows that tell everything; in the columns the field is then absent."""
    n = len(rows)
    told = (rows.outcome == "ok") & ~rows.cache_hit & (rows.prompt_tokens > 0) & (rows.prefill_s > 0)
    chosen = np.flatnonzero(told & (rng.random(n) < options.damage_share))
    rows.damage[chosen] = np.arange(len(chosen)) % len(DAMAGES)  # each kind in turn, so that none is missing
    for kind, (name, _, without) in enumerate(DAMAGES):
        _clear(rows, rows.damage == kind, name, *without)


def _place(options: Options, rng: np.random.Generator, rows: Rows) -> None:
    """Gives rows their times: when they ended, and when they reach the log."""
    n = len(rows)
    rows.moved = np.zeros(n, dtype=bool)
    lived = np.nan_to_num(rows.duration_s, nan=1.0)  # a row without a duration still ends some time after its start
    rows.finished_at = np.round(rows.started_at + lived, 6)
    rows.written_at = rows.finished_at.copy()
    rows.written_at[rng.random(n) < options.late_share] += 600
    middle = np.arange(n // 4, n * 3 // 4)
    moved = rng.choice(middle, min(len(middle), options.ancient_rows + options.future_rows), replace=False)
    rows.moved[moved] = True
    for index, shift in ((moved[: options.ancient_rows], -25 * HOUR), (moved[options.ancient_rows :], 365 * DAY)):
        rows.started_at[index] += shift
        rows.finished_at[index] = np.round(rows.finished_at[index] + shift, 6)
    _clear(rows, np.isnan(rows.duration_s), "started_at")


def _among(rows: Rows, names: tuple[str, ...]) -> Bools:
    return np.isin(rows.outcome.astype(str), names)


def _named(phases: tuple[str, ...]) -> list[str]:
    return [f"{phase}_s" for phase in phases]


def _clear(rows: Rows, where: Bools, *columns: str) -> None:
    for column in columns:
        getattr(rows, column)[where] = np.nan
