"""Made-up traffic with known truth: backgrounds `mix`, `rag` and `azure`, drifts, and cases that must stay silent."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capwatch.drift.rows import Rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EPOCH = 1_767_571_200  # Monday 2026-01-05, UTC
HOUR, DAY, WEEK = 3600, 86_400, 604_800
PREFILL, DECODE = 4000.0, 160.0
TENANTS = 12
NEWCOMER = 12  # code of a tenant that no history has
TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"
SHARES = np.arange(1, TENANTS + 1) ** -1.2
SHARES /= SHARES.sum()


@dataclass(frozen=True)
class Background:
    """What is usual at a site: its rate, the classes' shares, and how long their requests are."""

    name: str
    shares: tuple[float, ...]
    prompts: tuple[tuple[float, float], ...] = ()
    """Mean and log-sd of each class."""
    outputs: tuple[tuple[float, float], ...] = ()
    rate: float = 8.0
    """Requests per second at the mean of the day; nights and weekends bring it to nine tenths of that."""
    cron: bool = False
    cached: float = 0.0
    """Tokens at the start of every prompt that are served from the prefix cache."""


@dataclass(frozen=True)
class Drift:
    """What changes at an onset."""

    mix: tuple[float, ...] = ()
    """Factors of the class shares, raked so that every total is exact."""
    ramp: float = 0.0
    """Seconds over which the mix changes; 0: at once."""
    newcomer: float = 0.0
    """Share of an unseen tenant."""
    prompt: float = 1.0
    output: float = 1.0
    uncached: float = 0.0
    """Share of the requests that lose their cached tokens."""
    times: float = 1.0
    """Quiet: what the rate rises to, over half an hour."""
    storm: bool = False
    burst: bool = False


def background(name: str, rate: float = 8.0) -> Background:
    """A background by its name."""
    if name == "mix":
        return Background(
            name, (0.85, 0.14, 0.01), ((1300, 0.5), (3200, 0.5), (9000, 0.5)), ((80, 0.6), (150, 0.6), (400, 0.6)), rate
        )
    if name == "rag":
        return Background(name, (1.0,), ((1500, _spread(1500, 1100)),), ((100, _spread(100, 70)),), rate)
    conv, code = (len(pairs) for pairs in azure())
    return Background(name, (conv / (conv + code), code / (conv + code)), rate=rate)


DRIFTS: dict[str, dict[str, Drift]] = {
    "mix": {
        "mix +26 %": Drift(mix=(0.80 / 0.85, 0.12 / 0.14, 8.0)),
        "new tenant +22 %": Drift(newcomer=0.06),
        "output +40 %": Drift(output=1.4),
        "lengths +8 %": Drift(prompt=1.08, output=1.08),
        "ramp 6 h": Drift(mix=(0.80 / 0.85, 0.12 / 0.14, 8.0), ramp=6 * HOUR),
    },
    "rag": {
        "prompts +30 %": Drift(prompt=1.8),
        "output +40 %": Drift(output=1.4),
        "cache lost +11 %": Drift(uncached=0.5),
        "lengths +8 %": Drift(prompt=1.08, output=1.08),
    },
    "azure": {
        "conv 69 -> 95 %": Drift(mix=(1.0, 0.1135)),
        "prompts x1.8": Drift(prompt=1.8),
        "output x1.4": Drift(output=1.4),
        "lengths +8 %": Drift(prompt=1.08, output=1.08),
    },
}
QUIET = {"rate x3": Drift(times=3.0), "retry storm": Drift(storm=True), "burst of 20 s": Drift(burst=True)}


def _spread(mean: float, median: float) -> float:
    return float(np.sqrt(2 * np.log(mean / median)))


@cache
def azure() -> tuple[Floats, Floats]:
    """(conv, code): float64[n, 2] of prompt and output tokens, in the order of the real hour."""
    found = []
    for name in ("conv", "code"):
        with gzip.open(TRACES / f"AzureLLMInferenceTrace_{name}.2023.csv.gz", "rt") as file:
            rows = [(float(row["ContextTokens"]), float(row["GeneratedTokens"])) for row in csv.DictReader(file)]
        found.append(np.array(rows))
    return found[0], found[1]


@dataclass
class Site:
    """One background with its own tenants; draws any stretch of it."""

    background: Background
    rng: np.random.Generator
    phase: Floats = field(init=False)
    mixes: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.phase = self.rng.normal(0, 1.2, TENANTS)
        base = np.array(self.background.shares)
        drawn = self.rng.dirichlet(25 * base + 0.15, TENANTS) if len(base) > 1 else np.ones((TENANTS, 1))
        self.mixes = rake(drawn, base)

    def rows(
        self,
        begin: float,
        end: float,
        drift: Drift | None = None,
        onset: float = np.inf,
        rng: np.random.Generator | None = None,
    ) -> Rows:
        """The requests of a stretch (s since the epoch), in order."""
        rng = self.rng if rng is None else rng
        drift = drift or Drift()
        drawn = [self._traffic(begin, end, drift, onset, rng)]
        if drift.newcomer and onset < end:
            drawn.append(self._newcomer(max(begin, onset), end, drift.newcomer, rng))
        if drift.burst and begin <= onset < end:
            drawn.append(self._burst(onset, rng))
        if self.background.cron:
            drawn.append(self._cron(begin, end, rng))
        at, tenant, klass, prompt, output = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        after = at >= onset
        prompt = np.maximum(1, np.round(np.where(after, prompt * drift.prompt, prompt)))
        output = np.maximum(1, np.round(np.where(after, output * drift.output, output)))
        cached = np.full(len(at), self.background.cached)
        cached[after & (rng.random(len(at)) < drift.uncached)] = 0.0
        failed = rng.random(len(at)) < 0.005
        rows = _as_rows(
            at, tenant, klass, prompt=prompt + self.background.cached, cached=cached, output=output, failed=failed
        )
        rows = rows.take(np.argsort(at, kind="stable"))
        return _storm(rows, onset, rng) if drift.storm else rows

    def rates(self, minutes: Ints, drift: Drift, onset: float, rng: np.random.Generator) -> Floats:
        """Requests per minute of each tenant: float64[minutes, tenants]."""
        at = (minutes[:, None] * 60 + 30) / HOUR + self.phase - EPOCH / HOUR
        hour = at % 24
        weekend = (at // 24) % 7 >= 5
        quiet = np.arange(TENANTS) % 3 != 2
        daily = 1 + 0.55 * np.cos(2 * np.pi * (hour - 14) / 24)
        rate = self.background.rate * 60 * SHARES * daily * np.where(weekend & quiet, 0.55, 1.0)
        step = np.exp(-0.1)
        noise = rng.normal(size=(len(minutes), TENANTS))
        noise[1:] *= np.sqrt(1 - step**2)
        for i in range(1, len(minutes)):
            noise[i] += step * noise[i - 1]
        rise = np.clip((minutes * 60 - onset) / 1800, 0, 1)[:, None] if np.isfinite(onset) else 0.0
        return rate * np.exp(0.25 * noise - 0.25**2 / 2) * (1 + (drift.times - 1) * rise)

    def _traffic(
        self, begin: float, end: float, drift: Drift, onset: float, rng: np.random.Generator
    ) -> tuple[NDArray[Any], ...]:
        minutes = np.arange(int(begin // 60), int(np.ceil(end / 60)))
        rates = self.rates(minutes, drift, onset, rng)
        singles = rng.poisson(0.85 * rates)
        clusters = rng.poisson(0.15 * rates / 5)
        at, tenant = _spread_over(minutes, singles, rng)
        starts, owner = _spread_over(minutes, clusters, rng)
        sizes = 1 + rng.poisson(4, len(starts))
        first = np.repeat(np.cumsum(sizes) - sizes, sizes) == np.arange(sizes.sum())
        members = np.repeat(starts, sizes) + np.where(first, 0.0, rng.exponential(2.0, sizes.sum()))
        klass = self._classes(np.concatenate([at, starts]), np.concatenate([tenant, owner]), drift, onset, rng)
        klass = np.concatenate([klass[: len(at)], np.repeat(klass[len(at) :], sizes)])
        at, tenant = np.concatenate([at, members]), np.concatenate([tenant, np.repeat(owner, sizes)])
        inside = (at >= begin) & (at < end)
        at, tenant, klass = at[inside], tenant[inside], klass[inside]
        prompt, output = self._lengths(at, klass, rng)
        return at, tenant, klass, prompt, output

    def _classes(self, at: Floats, tenant: Ints, drift: Drift, onset: float, rng: np.random.Generator) -> Ints:
        usual = np.cumsum(self.mixes, axis=1)[tenant]
        draw = rng.random(len(at))
        klass: Ints = (draw[:, None] > usual[:, :-1]).sum(axis=1)
        if drift.mix:
            goal = np.array(self.background.shares) * drift.mix
            changed = np.cumsum(rake(self.mixes * drift.mix, goal / goal.sum()), axis=1)[tenant]
            share = (at >= onset) if not drift.ramp else np.clip((at - onset) / drift.ramp, 0, 1)
            new = rng.random(len(at)) < share
            klass = np.where(new, (draw[:, None] > changed[:, :-1]).sum(axis=1), klass)
        return klass

    def _lengths(self, at: Floats, klass: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
        if self.background.name != "azure":
            return lognormal(rng, klass, self.background.prompts), lognormal(rng, klass, self.background.outputs)
        prompt, output = np.empty(len(at)), np.empty(len(at))
        for k, pairs in enumerate(azure()):
            mine = np.flatnonzero(klass == k)
            mine = mine[np.argsort(at[mine], kind="stable")]
            minute = (at[mine] // 60).astype(np.int64)
            _, place, counts = np.unique(minute, return_index=True, return_counts=True)
            starts = np.repeat(rng.integers(0, len(pairs), len(counts)), counts)
            chosen = (starts + np.arange(len(mine)) - np.repeat(place, counts)) % len(pairs)
            prompt[mine], output[mine] = pairs[chosen].T
        return prompt, output

    def _newcomer(self, begin: float, end: float, share: float, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
        minutes = np.arange(int(begin // 60), int(np.ceil(end / 60)))
        rates = self.rates(minutes, Drift(), np.inf, rng).sum(axis=1, keepdims=True) * share / (1 - share)
        at, _ = _spread_over(minutes, rng.poisson(rates), rng)
        at = at[(at >= begin) & (at < end)]
        klass = np.full(len(at), len(self.background.shares) - 1)
        return at, np.full(len(at), NEWCOMER), klass, *(lognormal(rng, klass * 0, ((m, 0.5),)) for m in (12_000, 300))

    def _burst(self, onset: float, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
        at = onset + rng.uniform(0, 20, 400)
        klass = np.full(400, 0 if self.background.name == "azure" else len(self.background.shares) - 1)
        return at, np.full(400, rng.integers(0, TENANTS)), klass, *self._lengths(at, klass, rng)

    def _cron(self, begin: float, end: float, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
        hours = np.arange(int(np.ceil(begin / HOUR)), int(np.ceil(end / HOUR))) * HOUR
        at = (hours[:, None] + rng.uniform(0, 90, (len(hours), 200))).ravel()
        at = at[at < end]
        klass = np.full(len(at), 0 if self.background.name == "azure" else len(self.background.shares) - 1)
        return at, np.full(len(at), 4), klass, *(lognormal(rng, klass * 0, ((m, 0.5),)) for m in (9000, 400))


def rake(shares: Floats, total: Floats) -> Floats:
    """Tenants' mixes whose sum over the tenants' shares is exactly ``total``."""
    for _ in range(200):
        shares = shares * (total / (SHARES @ shares))
        shares = shares / shares.sum(axis=1, keepdims=True)
    return shares


def lognormal(rng: np.random.Generator, klass: Ints, kinds: tuple[tuple[float, float], ...]) -> Floats:
    """Lengths by class, from means and log-sds."""
    means, spreads = np.array(kinds).T
    centre = np.log(means) - spreads**2 / 2
    return np.asarray(np.exp(centre[klass] + spreads[klass] * rng.standard_normal(len(klass))))


def _spread_over(minutes: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Times uniform inside the minutes, and whose they are, from counts[minutes, tenants]."""
    place = np.repeat(np.arange(counts.size), counts.ravel())
    minute, tenant = np.divmod(place, counts.shape[1])
    return (minutes[minute] + rng.random(len(place))) * 60.0, tenant


def _as_rows(
    at: Floats, tenant: Ints, klass: Ints, *, prompt: Floats, cached: Floats, output: Floats, failed: NDArray[np.bool_]
) -> Rows:
    none = np.full(len(at), -1)
    return Rows(at, tenant, none, klass, none, none, prompt, cached, output, failed, np.full(len(at), np.nan))


def _storm(rows: Rows, onset: float, rng: np.random.Generator) -> Rows:
    """Ten minutes in which dear requests fail, and are sent again up to three times."""
    cost = rows.computed / PREFILL + rows.output / DECODE
    during = (rows.at >= onset) & (rows.at < onset + 600)
    failed = rows.failed | (during & (rng.random(len(rows)) < np.minimum(0.9, 0.35 * cost / cost.mean())))
    rows = replace(rows, failed=failed)
    parts, last = [rows], rows.take(failed & during)
    for again in (1, 2, 3):
        more = replace(
            last,
            at=last.at + again * rng.uniform(8, 20, len(last)),
            failed=rng.random(len(last)) < 0.5,
        )
        parts.append(more)
        last = more.take(more.failed)
    joined = Rows(**{one: np.concatenate([getattr(part, one) for part in parts]) for one in Rows.__slots__})
    return joined.take(np.argsort(joined.at, kind="stable"))
