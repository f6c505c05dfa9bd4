"""The workload profile of what a Prometheus has scraped of capwatch: its counters, and gauges where no counter tells.

Counts and sums are exact; quantiles are those of buckets 19 % wide; what single seconds did is told by the gauges of
capwatch, over the week before. What was never exported is null, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import numpy as np

from capwatch.capacity.bursts import quantile as ranked
from capwatch.capacity.profile import BURSTY, COARSE_S, DIURNAL, HOUR_S, distribution_of
from capwatch.metrics import (
    ARRIVAL_CV2,
    ARRIVALS,
    BURST_LONGEST_SECONDS,
    BURST_MAX_RAMP_RPS,
    BURST_P99_TO_MEDIAN_RATIO,
    CALIBRATION_AGE_SECONDS,
    CLASS_COST_REPLICA_SECONDS,
    CLASS_REQUESTS,
    COST_REPLICA_SECONDS,
    DEPARTURES,
    PREFILL_SAVED_REPLICA_SECONDS,
    REQUESTS,
    ROUTE_DURATION_SECONDS,
    ROUTE_OUTPUT_TOKENS,
    ROUTE_PROMPT_TOKENS,
    SERVICE_CV2,
    TOKENS,
    Metric,
)
from capwatch.observed.columns import Columns, buckets, quantile
from capwatch.observed.counters import Counters, at_time
from capwatch.observed.prometheus import Server
from capwatch.record import Floats

WEEK_S: Final = 7 * 86_400
"""What is looked at where no window is given."""
QUANTILES: Final = (0.5, 0.95, 0.99)


def profile(server: Server, since: float, until: float, pool: str | None, now: float) -> dict[str, object]:
    """The document of a window, whose ends are moved outwards to whole five minutes.

    Args:
        server: what scraped capwatch.
        since, until: s, epoch; infinite where the week before now is meant.
        pool: one pool; None: all.
        now: s, epoch.

    Raises:
        CapwatchError: the server is of no use, or tells of no request in that window and pool.
    """
    end = min(until, now)
    begin = since if math.isfinite(since) else end - WEEK_S
    told = Counters(server, begin // COARSE_S * COARSE_S, -(-end // COARSE_S) * COARSE_S, pool)
    return _Profile(told).document()


class _Profile:
    """The document, part by part."""

    def __init__(self, told: Counters) -> None:
        self.told = told
        self.arrivals = told.rises(ARRIVALS, step=COARSE_S)
        self.known = ~np.isnan(self.arrivals.total())
        self.requests = told.total(DEPARTURES)
        self.pools = told.busy
        if not self.requests:
            raise told.missing()
        self.since = (
            float(self.arrivals.at[self.known.argmax()]) - COARSE_S
        )  # what came before the first look is unknown
        self.costed = told.total(ROUTE_PROMPT_TOKENS, "_count")
        self.cost = {key: told.total(COST_REPLICA_SECONDS, phase=key) for key in ("prefill", "decode")}
        self.notes = {
            "arrivals.p99_1s_to_median": "of the week up to the end of the window, by the gauges of capwatch",
            "prompt_tokens.max": "buckets do not tell it",
            "streaming": "no metric tells it",
            "classes": "no metric tells tokens by class",
        } | {f"server.{number}": text for number, text in enumerate(told.server.warnings, 1)}

    def document(self) -> dict[str, object]:
        told = self.told
        saved = told.total(PREFILL_SAVED_REPLICA_SECONDS)
        prompts = saved + self.cost["prefill"]
        if not prompts:
            self.notes["prefix_cache_hit_rate"] = "no request tells prompt tokens"
        elif len(self.pools) > 1:
            self.notes["prefix_cache_hit_rate"] = "weighed by the prefill rates of the pools"
        return {
            "window": {
                "since": at_time(self.since), "until": at_time(told.until), "bucket_s": COARSE_S,
                "requests": round(self.requests), "with_tokens_share": min(1.0, self.costed / self.requests),
            },
            "arrivals": self._arrivals(),
            "prompt_tokens": self._lengths(ROUTE_PROMPT_TOKENS, "prompt_tokens"),
            "output_tokens": self._lengths(ROUTE_OUTPUT_TOKENS, "output_tokens"),
            "classes": self._classes(),
            "streaming": None,
            "prefix_cache_hit_rate": saved / prompts if prompts else None,
            "tenants": self._tenants(),
            "models": self._models(),
            "routes": self._routes(),
            "cost": self._cost(),
            "notes": self.notes,
        }  # fmt: skip

    def _arrivals(self) -> dict[str, object]:
        told, notes = self.told, self.notes
        whole = self.arrivals.total()
        known = self.known
        rates = whole / COARSE_S
        beside = known & np.concatenate([[False], known[:-1]])  # after a gap a step holds more than five minutes
        gauges = {
            "p99_1s_to_median": told.one(BURST_P99_TO_MEDIAN_RATIO, last=True),
            "longest_burst_s": told.one(BURST_LONGEST_SECONDS, last=True),
            "max_ramp_rps": told.one(BURST_MAX_RAMP_RPS, last=True),
            "cv2": told.one(ARRIVAL_CV2),
        }
        for key, value in gauges.items():
            if value is None:
                several = "several pools have one each; give --pool"
                notes[f"arrivals.{key}"] = several if len(self.pools) > 1 else "no gauge tells it in that window"
        if gauges["cv2"] is not None:
            notes["arrivals.cv2"] = "mean of what five minutes had"
        return {
            "mean_rps": float(np.nansum(whole)) / (told.until - self.since),
            "p99_5min_rps": ranked(rates[beside], 0.99) if beside.any() else None,
            **gauges,
            "pattern": self._pattern(rates, gauges["cv2"]),
        }

    def _pattern(self, rates: Floats, cv2: float | None) -> str | None:
        """As of seconds, whose variance over mean is near Ca²."""
        if cv2 is None:
            self.notes["arrivals.pattern"] = "single seconds are not told"
            return None
        if cv2 >= BURSTY:
            return "bursty"
        hour = (self.arrivals.at - COARSE_S) // HOUR_S % 24
        level = [rates[self.known & (hour == one)].mean() for one in range(24) if (self.known & (hour == one)).any()]
        return "diurnal" if len(level) == 24 and max(level) >= DIURNAL * min(level) else "steady"

    def _lengths(self, metric: Metric, name: str) -> dict[str, float | None] | None:
        n, total = self.told.total(metric, "_count"), self.told.total(metric, "_sum")
        if not n:
            self.notes[name] = "no request tells it"
            return None
        bounds, counts = buckets(self.told.rises(metric, "_bucket"))
        sums = np.nansum(counts, axis=1)
        p50, p95, p99 = (quantile(bounds, sums, q) or math.nan for q in QUANTILES)
        self.notes[f"{name}.p50"] = "quantiles of buckets 19 % wide"
        return {**distribution_of(total / n, (p50, p95, p99, math.nan), name, self.notes), "max": None}

    def _classes(self) -> dict[str, dict[str, float | None]]:
        requests = self.told.added(CLASS_REQUESTS, "class")
        costs, whole = self.told.added(CLASS_COST_REPLICA_SECONDS, "class"), sum(requests.values())
        if self.costed < self.requests:
            self.notes["classes.mean_cost"] = "over all requests, those without token counts too"
        return {
            name: {
                "share": n / whole,
                "mean_cost": costs[name,] / n if (name,) in costs else None,
                "mean_computed_prompt_tokens": None,
                "mean_output_tokens": None,
            }
            for (name,), n in requests.items()
        }

    def _tenants(self) -> dict[str, float | int | None]:
        tokens, costs = self._of_all(TOKENS, "tenant"), self.told.added(COST_REPLICA_SECONDS, "tenant")
        if tokens is None:
            self.notes["tenants.top1_share_of_tokens"] = "no metric tells tokens by pool"
        if any(name in ("other", "unknown") for (name,) in costs):
            self.notes["tenants"] = "those without a name of their own count as one"
        spent = np.array(list(costs.values()))
        return {
            "count": len(costs),
            "top1_share_of_tokens": _largest(tokens.values()) if tokens else None,
            "top1_share_of_cost": _largest(costs.values()),
            "concentration": float(((spent / spent.sum()) ** 2).sum()) if len(spent) else None,
        }

    def _models(self) -> Mapping[str, float] | None:
        found = self._of_all(REQUESTS, "model")
        if found is None:
            self.notes["models"] = "no metric tells models by pool"
        return None if found is None else _shares(found)

    def _routes(self) -> Mapping[str, float]:
        found = self._of_all(REQUESTS, "route")
        if found is None:
            self.notes["routes"] = "of requests that tell a duration"
            found = self.told.added(ROUTE_DURATION_SECONDS, "route", suffix="_count")
        return _shares(found)

    def _of_all(self, metric: Metric, label: str) -> dict[tuple[str, ...], float] | None:
        """What a counter without pools says, if all pools are meant or there is one alone."""
        if self.told.pool is not None and self.told.pools() != [self.told.pool]:
            return None
        return self.told.added(metric, label)

    def _cost(self) -> dict[str, float | str | None] | None:
        if not self.costed:
            self.notes["cost"] = "no request tells token counts"
            return None
        ages = self.told.gauge(CALIBRATION_AGE_SECONDS)
        cv2 = self.told.one(SERVICE_CV2)
        self.notes["cost.cv2"] = "no gauge tells it for all of it" if cv2 is None else "mean of what five minutes had"
        if len(ages) < len(self.pools):
            self.notes["cost.calibration"] = "not told: configured or assumed"
        return {
            "mean_replica_seconds": sum(self.cost.values()) / self.costed,
            "prefill_replica_seconds": self.cost["prefill"] / self.costed,
            "decode_replica_seconds": self.cost["decode"] / self.costed,
            "cv2": cv2,
            "calibration": _measured(ages) if len(ages) >= len(self.pools) else None,
        }


def _measured(ages: Columns) -> str:
    """When the rates were measured."""
    at = float(np.nanmin(ages.at - ages.values))
    return f"measured {datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _largest(values: Iterable[float]) -> float | None:
    told = list(values)
    return max(told) / sum(told) if told else None


def _shares(found: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    whole = sum(found.values())
    return {name: n / whole for (name,), n in found.items()}
