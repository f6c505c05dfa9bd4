"""The numbers of one pool that documents are rendered from, the same from logs, a server, or a history (`kept`).

Work and tokens are by five minutes, since that is what every source has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from capwatch import metrics as m
from capwatch.capacity.bursts import quantile
from capwatch.config.schema import DEFAULT_POOL, Config, Pool
from capwatch.errors import CapwatchError, UsageError
from capwatch.observed.columns import buckets
from capwatch.observed.columns import quantile as of_buckets
from capwatch.observed.counters import Counters, at_time
from capwatch.observed.prometheus import Server
from capwatch.observed.requests import Requests
from capwatch.record import Floats

STEP_S: Final = 300
WEEK_S: Final = 7 * 86400
"""What is looked at on a server where no window is given."""
DEFAULTS: Final[Mapping[str, Any]] = msgspec.to_builtins(Pool("default"))
"""Settings of a pool of which none is known."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output tokens on a route: how many answers tell them, and what 99 % and all of them have at most."""

    n: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class Observed:
    """One pool in one window.

    Attributes:
        pool: its name.
        source: what tells it, in words.
        since, until: s, epoch.
        requests: that finished in it.
        costed: of them with a cost.
        demand: float64[n], replica-seconds that arrive in a second, by five minutes.
        tenants: the same of each tenant, the dearest first.
        tokens: prompt and output tokens a minute by tenant and five minutes; None where the source cannot tell.
        outputs: by route, the busiest first.
        inside: mean requests in prefill and decode; None where not told.
        replicas: that were there last; None where not told.
        settings: of the pool; None where the source does not tell them.
        buckets: replica-seconds by which each tenant ran ahead of its own largest five minutes; from single requests.
    """

    pool: str
    source: str
    since: float
    until: float
    requests: float
    costed: float
    demand: Floats
    tenants: Mapping[str, Floats]
    tokens: Mapping[str, Floats] | None
    outputs: Mapping[str, Outputs]
    inside: float | None
    replicas: float | None
    settings: Mapping[str, Any] | None
    buckets: Mapping[str, float] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """Source, window and traffic, for the head of a document."""
        span = f"{at_time(self.since)} to {at_time(self.until)}"
        rate = self.requests / (self.until - self.since)
        return (
            f"{self.source}, {span}: {self.requests:,.0f} requests, {rate:.3g}/s, {self.cost:.4g} replica-seconds each"
        )

    @property
    def cost(self) -> float:
        """Replica-seconds of a request."""
        return float(np.nansum(self.demand)) * STEP_S / self.costed

    def setting(self, name: str) -> Any:
        """A setting of the pool, or its default where the source tells none."""
        return (self.settings or DEFAULTS).get(name)

    def origin(self, name: str) -> str:
        """Where a setting comes from."""
        return f"pools[].{name}" if self.settings else f"the default of pools[].{name}; give --config.file"


def choose(pools: Sequence[str], wanted: str | None) -> str:
    """The pool that is meant.

    Raises:
        UsageError: it is not there, or there are several and none is named.
    """
    if wanted is None and len(pools) == 1:
        return pools[0]
    there = ", ".join(pools) or "none with requests"
    if wanted is None:
        raise UsageError(f"--pool: which one? there are {there}")
    if wanted not in pools:
        raise UsageError(f"--pool: no requests of {wanted!r}; there are {there}")
    return wanted


def of_config(config: Config | None, pool: str) -> Mapping[str, Any] | None:
    """The settings of a pool in a configuration; None of the pool that stands in where none is configured."""
    found = next((one for one in config.pools if one.name == pool), None) if config is not None else None
    return None if found is None or (found.assumed and pool == DEFAULT_POOL) else msgspec.to_builtins(found)


def from_requests(told: Requests, config: Config | None, wanted: str | None) -> Observed:
    """From single requests of logs."""
    names = sorted(
        str(name) for name in {told.labels["pool"].names[code] for code in set(told.labels["pool"].codes.tolist())}
    )
    pool = choose(names, wanted)
    told = told.take(told.where("pool", pool) & ~np.isnan(told.arrived))
    at = told.arrived
    if not len(at):
        raise CapwatchError(f"no request of pool {pool} tells a time")
    since = float(at.min() // STEP_S * STEP_S)
    place = ((at - since) // STEP_S).astype(np.int64)
    n = int(place.max()) + 1
    cost, spent = told["prefill_cost"] + told["decode_cost"], np.nan_to_num(told["prefill_cost"] + told["decode_cost"])
    both = np.nan_to_num(told["prompt_tokens"]) + np.nan_to_num(told["output_tokens"])
    tenants, tokens, ahead = dict[str, Floats](), dict[str, Floats](), dict[str, float]()
    for name in _names(told, "tenant"):
        mine = told.where("tenant", name)
        tenants[name] = np.bincount(place[mine], spent[mine], n) / STEP_S
        tokens[name] = np.bincount(place[mine], both[mine], n) * 60 / STEP_S
        ahead[name] = _ahead(at[mine], spent[mine], float(tenants[name].max()))
    settings = of_config(config, pool)
    inside = np.nansum(told["prefill_s"]) + np.nansum(told["decode_s"])
    return Observed(
        pool, "logs", since, since + n * STEP_S, len(at), float((~np.isnan(cost)).sum()),
        np.bincount(place, spent, n) / STEP_S, dearest(tenants), tokens, _outputs(told),
        float(inside) / (at.max() - at.min()) if inside > 0 and at.max() > at.min() else None,
        configured(settings), settings, ahead,
    )  # fmt: skip


def _names(told: Requests, label: str) -> list[str]:
    column = told.labels[label]
    return [str(column.names[code]) for code in sorted(set(column.codes.tolist()))]


def _ahead(at: Floats, spent: Floats, rate: float) -> float:
    """The smallest bucket that refuses none of these takes while it fills at a rate."""
    order = np.argsort(at, kind="stable")
    level, most, last = 0.0, 0.0, math.inf
    for moment, cost in zip(at[order].tolist(), spent[order].tolist(), strict=True):
        level = max(0.0, level - rate * max(0.0, moment - last)) + cost
        most, last = max(most, level), moment
    return most


def _outputs(told: Requests) -> dict[str, Outputs]:
    found = {}
    for name in _names(told, "route"):
        values = told["output_tokens"][told.where("route", name) & ~np.isnan(told["output_tokens"])]
        if len(values):
            found[name] = Outputs(len(values), quantile(values, 0.99), float(values.max()))
    return dict(sorted(found.items(), key=lambda pair: -pair[1].n))


def dearest(tenants: Mapping[str, Floats]) -> dict[str, Floats]:
    """The tenant with most work first."""
    return dict(sorted(tenants.items(), key=lambda pair: -float(np.nansum(pair[1]))))


def configured(settings: Mapping[str, Any] | None) -> float | None:
    """The number of replicas in the settings; None where they are observed."""
    replicas = (settings or {}).get("replicas")
    return None if replicas in (None, "observed") else float(replicas)


def from_server(
    server: Server, window: tuple[float, float], wanted: str | None, now: float, config: Config | None
) -> Observed:
    """From what a server has scraped; the week before now where no window is given."""
    since, end = window[0], min(window[1], now)
    begin = end - WEEK_S if math.isinf(since) else since
    begin, end = begin // STEP_S * STEP_S, -(-end // STEP_S) * STEP_S
    pool = choose(Counters(server, begin, end, None).busy, wanted)
    told = Counters(server, begin, end, pool)
    rises = told.rises(m.COST_REPLICA_SECONDS, step=STEP_S)
    tenants = {name: column / STEP_S for (name,), column in rises.by("tenant").items()}
    demand = rises.total() / STEP_S
    kept = ~np.isnan(demand)
    if not kept.any():
        raise told.missing()
    tokens = None
    if told.pools() == [pool]:
        counted = told.rises(m.TOKENS, step=STEP_S).by("tenant")
        tokens = {name: np.nan_to_num(column[kept]) * 60 / STEP_S for (name,), column in counted.items()}
    inside = sum(told.total(m.PHASE_SECONDS, phase=phase) for phase in ("prefill", "decode"))
    settings = of_config(config, pool)
    first = float(rises.at[kept.argmax()]) - STEP_S
    return Observed(
        pool, server.url, first, end, told.total(m.DEPARTURES), told.total(m.ROUTE_PROMPT_TOKENS, "_count"),
        demand[kept], dearest({name: np.nan_to_num(one[kept]) for name, one in tenants.items()}), tokens,
        _of_histograms(told), inside / (STEP_S * int(kept.sum())) if inside else None,
        told.one(m.REPLICAS, last=True), settings,
    )  # fmt: skip


def _of_histograms(told: Counters) -> dict[str, Outputs]:
    """By route; the longest is the upper edge of its bucket."""
    rises = told.rises(m.ROUTE_OUTPUT_TOKENS, "_bucket")
    found = {}
    for route in sorted({labels["route"] for labels in rises.labels}):
        bounds, counts = buckets(rises.where(route=route))
        sums = np.nansum(counts, axis=1)
        p99, most = of_buckets(bounds, sums, 0.99), of_buckets(bounds, sums, 1.0)
        if p99 is not None and most is not None:
            found[route] = Outputs(float(sums[-1]), p99, most)
    return dict(sorted(found.items(), key=lambda pair: -pair[1].n))
