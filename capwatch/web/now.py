"""What the page shows beside the status: each pool as it is now, who asks for what, and the last 24 hours.

Everything is from the last durable snapshot and the history. Times are s since the epoch, None is not known, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

Numbers = Sequence[float | None]
Severity = Literal["bad", "warn", "note", "good"]
"""Users suffer or soon will · look into it in working hours · nothing to do · all is well."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that whoever is on call should know."""

    kind: str
    """What it is about, one word; see `capwatch.web.findings`."""
    severity: Severity
    text: str
    """A sentence."""
    why: str = ""
    """What is behind it, where that is known: a sentence of a drift says whether it is composition or queueing."""
    pool: str | None = None
    todo: Sequence[str] = ()
    """What to do, in the order of speed and of how easily it is undone."""


class EngineNow(msgspec.Struct, frozen=True, kw_only=True):
    """One replica as it last told; counts are for life."""

    name: str
    state: str
    running: float | None
    waiting: float | None
    kv_utilisation: float | None
    preemptions: float
    restarts: float


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one tenant, route or class adds to the cost of a request through one effect."""

    dimension: str
    value: str
    effect: str
    replica_seconds: float


class DriftNow(msgspec.Struct, frozen=True, kw_only=True):
    """An active drift as it is by now; its event tells it as it was when it was raised."""

    cost_before: float
    cost_after: float
    effects: Mapping[str, float]
    """They add up to cost_after − cost_before."""
    contributions: Sequence[Part] = ()
    """The largest first."""


class PoolNow(msgspec.Struct, frozen=True, kw_only=True):
    """One pool over the last five minutes of event time."""

    name: str
    assumed: bool
    """Whether the rates that costs rest on are assumed."""
    rate: float
    """Requests/s that reach the replicas."""
    cost: float | None
    """Replica-seconds per request."""
    cost_reference: float | None
    """What the detector expects of these requests; None while it learns."""
    drift: DriftNow | None
    """Where one has been active for five minutes."""
    learning: bool | None
    """Whether history is too short for the detector; None before it has looked."""
    score: float | None
    """Its evidence; 1 is the alarm level."""
    utilisation: float | None
    target: float
    replicas: float | None
    needed: Mapping[str, float | None]
    """Replicas by promise: base, burst, zonal."""
    headroom: Mapping[str, float | None]
    """Replicas to spare by failure: none, a replica, a zone."""
    expected_wait_s: float | None
    wait_budget_s: float
    late_predicted: float | None
    late_measured: float | None
    kv_demand_ratio: float | None
    kv_room: float | None
    """KV tokens that the replicas hold."""
    in_flight: Mapping[str, float | None]
    """λW by phase."""
    engines: Sequence[EngineNow]


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """The present. Findings come worst first, and there is always one."""

    clock: float | None
    findings: Sequence[Finding] = ()
    pools: Sequence[PoolNow] = ()


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """Who asked for what, over the rollups of the last five to ten minutes; the dearest first."""

    since: float | None = None
    until: float | None = None
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str | float | None]] = ()
    """Pool, tenant and route, then numbers by `columns`."""
    more: int = 0
    """Rows that are left out since there are too many."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """An annotation; pool None: about all."""

    at: float
    pool: str | None
    text: str


class PoolHistory(msgspec.Struct, frozen=True, kw_only=True):
    """One pool: rate (requests/s) and cost (replica-seconds per request) by minute, the rest by five minutes."""

    rate: Numbers
    cost: Numbers
    in_flight: Mapping[str, Numbers]
    """By phase, as λW of the requests that finished."""
    goodput: Numbers
    """Good requests over those that could be judged, 0..1."""
    ttft_p50: Numbers
    ttft_p95: Numbers
    """Seconds, within 0.55 %."""
    kv_demand: Numbers
    """KV tokens that running requests hold at most, over what the replicas hold."""
    kv_growth: float | None
    """Tokens/s by which it grew over the last quarter of an hour; None: not known."""
    kv_steady: bool
    """Whether it grew in each five minutes of that quarter."""
    kv_full_s: float | None
    """Seconds until that is 1 if it grows on like this; None: not within an hour, not steady, or not known."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The last 24 hours. Each list ends with what is complete; minutes begin at ``minutes``, the rest at ``slots``."""

    minutes: float = 0.0
    slots: float = 0.0
    minute_s: float = 60.0
    slot_s: float = 300.0
    pools: Mapping[str, PoolHistory] = {}
    findings: Sequence[Finding] = ()
    """What only the history tells, worst first; often nothing."""
    notes: Sequence[Note] = ()
    problem: str | None = None
    """Why the history could not be read, where it could not."""
