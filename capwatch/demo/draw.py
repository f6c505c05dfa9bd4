"""Requests as they come: Poisson arrivals, and for each its tenant, class, lengths and fate. Seeded, numpy only."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capwatch.demo.workload import CONTEXT, DECODE_RATE, FOLLOW_UPS, KINDS, PREFILL_RATE, PREFIX, SLOTS, Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PROMPT_SPREAD: Final = 0.5
"""Standard deviation of log prompt tokens."""
OUTPUT_SPREAD: Final = 0.6
"""Standard deviation of log output tokens."""
LIMITED: Final = 0.002
"""Requests that the gateway answers with 429, on top of those that reach a replica."""
ABORTED: Final = 0.004
"""Share of the requests whose client leaves while the answer streams."""
GATEWAY_S: Final = 0.012
"""Median time in the gateway; spread 0.4 in log."""

OK, ABORT, LIMIT = range(3)
"""Fates of a request."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Requests as columns of equal length; times in s since the epoch, lengths in tokens, phases in s."""

    number: Ints
    """One for each request, never given again in a run."""
    arrived: Floats
    kind: Ints
    """Index into `KINDS`."""
    tenant: Ints
    """Index into `TENANTS`."""
    computed: Ints
    """Prompt tokens that are not in the prefix cache."""
    cached: Ints
    output: Ints
    fate: Ints
    replica: Ints
    """Who serves it; −1 for nobody."""
    gateway: Floats
    queue: Floats
    prefill: Floats
    decode: Floats
    preempted: Ints
    """How often it lost its place in the KV cache and was computed anew, the time for which is in `decode`."""

    def __len__(self) -> int:
        return len(self.number)

    @property
    def started(self) -> Floats:
        """When a replica takes it up."""
        return self.arrived + self.gateway + self.queue

    @property
    def ended(self) -> Floats:
        """When its last byte has been sent."""
        return self.started + self.prefill + self.decode

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Rows:
        """Some rows, by index or mask."""
        return Rows(*(getattr(self, one.name)[index] for one in fields(self)))

    @classmethod
    def join(cls, *parts: Rows) -> Rows:
        """One after the other."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


def draw(
    generator: np.random.Generator, workload: Workload, begins: Floats, length: float, *, rates: Floats, first: int
) -> Rows:
    """Requests of some stretches of equal length, by arrival; nobody has waited or been given to a replica yet.

    Args:
        generator: where chance comes from.
        workload: who asks for what.
        begins: float64[b], ascending, where the stretches begin (s, epoch).
        length: of a stretch, s.
        rates: float64[b], requests a second that reach the replicas.
        first: the number of the first request.
    """
    counts = generator.poisson(rates * (1 + LIMITED) * length)
    n = int(counts.sum())
    arrived = np.sort(np.repeat(begins, counts) + generator.random(n) * length)
    tenant = _choose(generator, np.array([one.share for one in workload.tenants]), n)
    kind = _kinds(generator, workload, tenant)
    chance = generator.random(n)
    fate = np.where(chance < LIMITED, LIMIT, np.where(chance < LIMITED + ABORTED, ABORT, OK))
    cached = np.where(generator.random(n) < FOLLOW_UPS, PREFIX, 0)
    prompts = np.array([one.prompt * workload.prompts for one in KINDS])
    computed = np.minimum(_lengths(generator, prompts[kind], PROMPT_SPREAD), CONTEXT - 4 * PREFIX)
    output = np.minimum(_lengths(generator, np.array([one.output for one in KINDS])[kind], OUTPUT_SPREAD), 3 * PREFIX)
    heard = np.where(fate == ABORT, generator.random(n), 1.0)  # the part of the answer that somebody listened to
    output = np.maximum(np.ceil(output * heard).astype(np.int64), 1)
    served = fate != LIMIT
    zeros = np.zeros(n)
    return Rows(
        number=first + np.arange(n),
        arrived=arrived,
        kind=kind,
        tenant=tenant,
        computed=np.where(served, computed, 0),
        cached=np.where(served, cached, 0),
        output=np.where(served, output, 0),
        fate=fate,
        replica=np.full(n, -1),
        gateway=GATEWAY_S * np.exp(0.4 * generator.standard_normal(n)),
        queue=zeros,
        prefill=np.where(served, SLOTS * computed / PREFILL_RATE, 0.0),
        decode=np.where(served, SLOTS * output / DECODE_RATE, 0.0),
        preempted=np.zeros(n, np.int64),
    )


def _choose(generator: np.random.Generator, shares: Floats, n: int) -> Ints:
    """int64[n], each index as often as its share says."""
    edges = np.cumsum(shares)
    chosen = np.searchsorted(edges, generator.random(n) * edges[-1], side="right")
    inside: Ints = np.minimum(chosen, len(shares) - 1).astype(np.int64)
    return inside


def _kinds(generator: np.random.Generator, workload: Workload, tenant: Ints) -> Ints:
    """The class of each request, by the mix of its tenant."""
    edges = np.cumsum([one.mix for one in workload.tenants], axis=1)
    chance = generator.random(len(tenant))
    kind = np.zeros(len(tenant), np.int64)
    for k in range(len(KINDS) - 1):
        kind += chance >= edges[tenant, k]
    return kind


def _lengths(generator: np.random.Generator, means: Floats, spread: float) -> Ints:
    """Whole lengths of at least 1, lognormal with the means given; rounding moves a mean by less than 0.1."""
    drawn = np.exp(spread * generator.standard_normal(len(means)) - spread**2 / 2)
    return np.maximum(np.rint(means * drawn), 1).astype(np.int64)
