"""Every key of the configuration: its type, bounds, default and meaning, as frozen dataclasses.

Times are seconds, sizes bytes, shares 0..1, rates per second. None means: not given, and there is no default.
The last text of each annotation is the key's documentation; `shape` reads the rest.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import lru_cache
from typing import Annotated, Final, Literal

from capwatch.config.calibration import Calibration
from capwatch.config.kinds import DURATION, LISTEN, RATE, SHARE, SIZE, URL, Range
from capwatch.config.shape import DERIVED, Filled, Shorthand
from capwatch.config.units import Stage

DEFAULT_POOL: Final = "default"  # the implicit pool of a configuration without `pools` (contract, section 2)

Role = Literal["count", "times"]
Globs = Annotated[tuple[str, ...] | None, Filled()]
Duration = Annotated[float, DURATION]
Positive = Annotated[float, Range(at_least=0.001)]  # what is divided by it stays finite
Count = Annotated[int, Range(at_least=1)]


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests: every field that is given has to fit one of its patterns; no field fits all."""

    tenant: Annotated[Globs, "patterns of the tenant"] = None
    route: Annotated[Globs, "patterns of the route"] = None
    model: Annotated[Globs, "patterns of the model"] = None
    source: Annotated[Globs, "patterns of the source's name"] = None
    engine: Annotated[Globs, "patterns of the engine that served"] = None

    def hits(self, values: Mapping[str, str]) -> bool:
        """Whether a request with these values fits; a value that is not there is the empty text. Case matters.

        >>> Match(model=("chat-*",)).hits({"model": "chat-70b"}), Match().hits({}), Match(tenant=("a",)).hits({})
        (True, True, False)
        """
        for each in fields(self):
            patterns: tuple[str, ...] | None = getattr(self, each.name)
            value = values.get(each.name, "")
            if patterns is not None and not any(_compiled(pattern).match(value) for pattern in patterns):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Field:
    """Where a log has one field of the record."""

    path: Annotated[str, "JSON path: one flat key, or keys joined by dots"]
    unit: Annotated[Literal["s", "ms", "us", "ns"] | None, "unit of a time, where it is not the format's own"] = None


@dataclass(frozen=True, slots=True)
class Source:
    """A set of log files of one format."""

    name: Annotated[str, "becomes the label `source`"]
    path: Annotated[tuple[str, ...], Filled(), "globs; rotated names belong in here too"]
    format: Annotated[str, "a name from `capwatch formats`"]
    wrapper: Annotated[Literal["none", "cri", "docker", "journald"], "what wraps each line"] = "none"
    start: Annotated[Literal["end", "beginning"], "where a file never seen before is first read"] = "end"
    fields: Annotated[
        Mapping[str, Annotated[Field, Shorthand("path")]],
        "JSON path per field of the record, for formats whose names the operator chooses",
    ] = field(default_factory=dict)
    pool: Annotated[str | None, "the pool these logs tell of; without it `match` of the pools decides"] = None
    engine_from: Annotated[str, "`filename`, or the fixed name of the engine that writes this log"] = "filename"
    role: Annotated[Role | None, "`count` makes requests, `times` only adds to them; see `roles`"] = None
    timezone: Annotated[str, "zone of times that are written without one"] = "UTC"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine's metrics endpoint."""

    url: Annotated[str, URL, "the page to fetch"]
    pool: Annotated[str, "the pool this engine belongs to"] = DEFAULT_POOL
    engine: Annotated[str | None, "label of the engine; without it the host and port of the URL"] = None
    interval: Annotated[Duration, Range(at_least=0.1), "time between two fetches"] = 5.0
    patience: Annotated[Duration, Range(above=0), "age after which a value is withdrawn"] = 30.0
    drain: Annotated[bool, "scrape also an endpoint that hands out each statistic once and takes it from others"] = (
        False
    )


@dataclass(frozen=True, slots=True)
class Gpu:
    """GPU readings."""

    nvml: Annotated[Literal["auto", "on", "off"], "`auto` reads GPUs where a driver is found"] = "auto"


@dataclass(frozen=True, slots=True)
class Price:
    """What serving costs, owned and rented."""

    replica_hour_usd: Annotated[Positive | None, "one replica for one hour"] = None
    rented_per_million_usd: Annotated[Positive | None, "a million tokens bought elsewhere"] = None
    as_of: Annotated[date | None, "when these prices held"] = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Identical replicas that serve one model in one place."""

    name: Annotated[str, "becomes the label `pool`"]
    match: Annotated[Match, "the requests of this pool; the first pool that fits wins"] = Match()
    replicas: Annotated[Count | Literal["observed"] | None, "how many; `observed` counts live engines"] = None
    prefill_tokens_per_second: Annotated[Positive, "computed prompt tokens a replica prefills alone"] = 4000.0
    decode_tokens_per_second: Annotated[Positive, "output tokens a replica decodes in all"] = 160.0
    assumed: Annotated[bool, "whether the two rates are guesses; true when they are not both given"] = False
    calibration: Annotated[
        str | None,
        "file of `capwatch calibrate`: it gives both rates, `slots` and `kv_pool_tokens` unless they are here",
    ] = None
    slots: Annotated[Count | None, "requests a replica serves at once"] = None
    kv_pool_tokens: Annotated[Count | None, "tokens that fit a replica's KV cache"] = None
    target_utilisation: Annotated[float, SHARE, Range(above=0, at_most=1), "utilisation to plan for"] = 0.70
    wait_budget: Annotated[Duration, "wait that all but `late_share` of the requests stay under"] = 0.5
    late_share: Annotated[float, SHARE, Range(above=0, below=1), "share that may wait longer"] = 0.01
    inflight_target: Annotated[Positive | None, "requests in flight per replica, for the HPA formula"] = None
    zones: Annotated[Count | None, "zones of equal size; not together with `zone_sizes`"] = None
    zone_sizes: Annotated[tuple[Count, ...] | None, Filled(), "replicas in each zone"] = None
    burst: Annotated[float, Range(at_least=1), "peak demand over base demand"] = 1.5
    cold_start: Annotated[Duration | None, "time from the order of a replica to its first token"] = None
    scale_down_window: Annotated[Duration | None, "time a scaler waits before it takes replicas away"] = None
    gpus: Annotated[tuple[str, ...], "NVML indices or UUIDs of this host that serve the pool"] = ()
    stages: Annotated[
        Mapping[str, Stage], "requests/s each stage sustains: `60`, `12*0.7` (factor), `10@0.15` (visits)"
    ] = field(default_factory=dict)
    price: Annotated[Price, "money, for break-even"] = Price()
    measured: Calibration | None = field(default=None, metadata=DERIVED)
    """What is in the file of `calibration`."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class of requests, shown in drift, cost and latency."""

    name: Annotated[str, "becomes the label `class`"]
    match: Annotated[Match, "the requests of this class; the first class that fits wins"] = Match()


@dataclass(frozen=True, slots=True)
class Slo:
    """Targets that a good request meets; a target that is not given always holds."""

    match: Annotated[Match, "the requests held to these targets; the first that fits wins"] = Match()
    ttft: Annotated[Duration | None, Range(above=0), "time to first token"] = None
    tpot: Annotated[Duration | None, Range(above=0), "time per output token"] = None
    e2e: Annotated[Duration | None, Range(above=0), "arrival to last byte"] = None


@dataclass(frozen=True, slots=True)
class Drift:
    """The drift detector."""

    false_alarms_per_month: Annotated[Positive, "alarms without a cause that are acceptable, per pool"] = 1.0
    minimum_effect: Annotated[float, SHARE, Range(at_least=0, below=1), "change of cost too small to matter"] = 0.04
    tick: Annotated[Duration, Range(at_least=1), "time between two looks"] = 10.0


@dataclass(frozen=True, slots=True)
class Budget:
    """A shadow token bucket in replica-seconds: it counts what it would reject and rejects nothing."""

    rate: Annotated[float, RATE, Range(at_least=0.001), "replica-seconds that flow in per second"]
    burst: Annotated[Positive, "replica-seconds the bucket holds"]


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit set by somebody else."""

    tokens_per_minute: Annotated[Positive, "prompt and output tokens per minute"]


@dataclass(frozen=True, slots=True)
class Dedupe:
    """Duplicate rows."""

    window: Annotated[Duration, "how long a request id is remembered; 0 switches deduplication off"] = 3600.0


@dataclass(frozen=True, slots=True)
class History:
    """What reviews read."""

    max_bytes: Annotated[int, SIZE, Range(at_least=1), "size of the history; the oldest detail goes first"] = 2 << 30


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is exposed."""

    disable: Annotated[tuple[str, ...], "families (or `tenant_route:*`) not to expose"] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of labels and lines (contract, section 5)."""

    tenants: Annotated[Count, "tenants with a name of their own"] = 200
    routes: Annotated[Count, "routes with a name of their own"] = 100
    models: Annotated[Count, "models with a name of their own"] = 50
    tenant_routes: Annotated[Count, "pairs of tenant and route with series of their own"] = 3000
    series: Annotated[Count, "series in all"] = 200_000
    line_bytes: Annotated[int, SIZE, Range(at_least=1), "longest line that is read"] = 16 << 20


@dataclass(frozen=True, slots=True)
class Privacy:
    """What names become."""

    tenant: Annotated[Literal["plain", "hash"], "`hash` is keyed, with the key in `state_dir`"] = "plain"


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration."""

    listen: Annotated[str, LISTEN, "address and port of the page and of /metrics"] = "127.0.0.1:10077"
    state_dir: Annotated[str, "where the state lies; for other users than root $XDG_STATE_HOME/capwatch"] = (
        "/var/lib/capwatch"
    )
    commit_interval: Annotated[Duration, Range(at_least=0.05, at_most=10), "age of what /metrics shows"] = 0.5
    sources: Annotated[tuple[Source, ...], "logs to read"] = ()
    engines: Annotated[tuple[Engine, ...], "engine metrics to fetch"] = ()
    gpu: Annotated[Gpu, "GPU readings"] = Gpu()
    pools: Annotated[tuple[Pool, ...], "pools of replicas; none means one pool `default` with assumed rates"] = ()
    classes: Annotated[tuple[Class, ...], "classes of requests; the first that fits wins"] = ()
    slo: Annotated[tuple[Slo, ...], "targets; the first that fits wins"] = ()
    drift: Annotated[Drift, "the drift detector"] = Drift()
    budgets: Annotated[Mapping[str, Budget], "shadow token buckets by tenant"] = field(default_factory=dict)
    quotas: Annotated[Mapping[str, Quota], "limits by pool"] = field(default_factory=dict)
    dedupe: Annotated[Dedupe, "duplicate rows"] = Dedupe()
    deploys: Annotated[
        str | None, "file of JSON lines with `at`, `text`, `pool`, followed; told with drifts that begin then"
    ] = None
    history: Annotated[History, "what reviews read"] = History()
    metrics: Annotated[Metrics, "what is exposed"] = Metrics()
    limits: Annotated[Limits, "bounds of labels and lines"] = Limits()
    privacy: Annotated[Privacy, "what names become"] = Privacy()


@lru_cache(maxsize=4096)  # patterns come from the configuration alone
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))
