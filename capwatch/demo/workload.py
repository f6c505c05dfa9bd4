"""The reference scenario: who asks for what, how much of it, and what changes in each scenario of the demo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from capwatch.capacity import work

RATE: Final = 8.0
"""Requests a second that reach the replicas, before and after every change: the rate tells nothing."""
REPLICAS: Final = 12
PREFILL_RATE: Final = 4000.0
"""Computed prompt tokens a second that a replica prefills alone."""
DECODE_RATE: Final = 160.0
"""Output tokens a second that a replica decodes in all."""
SLOTS: Final = 4
"""Sequences a replica runs at once; each gets a quarter of its replica-second, whether the others are there or not.

With 48 slots nearly nobody waits at 66 % utilisation, and a mix with long prompts fills slots and KV cache.
"""
KV_TOKENS: Final = 30_496
"""Tokens that fit a replica's KV cache: the reference's 30,500 in whole blocks of 16."""
CONTEXT: Final = 28_672
"""Longest sequence the model takes; what is drawn longer is cut there."""
PREFIX: Final = 512
"""Cached tokens (32 blocks) that a follow-up question brings on top of what has to be computed."""
FOLLOW_UPS: Final = 0.30
"""Share of the requests that are follow-ups."""
MODEL: Final = "chat-70b"


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of requests: its name, its route, mean computed prompt tokens and mean output tokens."""

    name: str
    route: str
    prompt: float
    output: float


KINDS: Final = (
    Kind("policy", "/v1/chat/policy", 1300, 80),
    Kind("order", "/v1/orders/lookup", 3200, 150),
    Kind("long", "/v1/summaries", 9000, 400),
)
USUAL: Final = (0.85, 0.14, 0.01)
"""Shares of the classes: 0.992 replica-seconds a request, so that 12 replicas are 66 % busy."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who asks: its share of all requests, and the shares of the classes in what it asks for."""

    name: str
    share: float
    mix: tuple[float, ...] = USUAL


@dataclass(frozen=True, slots=True)
class Workload:
    """What arrives: the tenants, whose shares add up to 1, and a factor on the reference's prompts."""

    tenants: tuple[Tenant, ...]
    prompts: float = 1.0

    @property
    def mix(self) -> tuple[float, ...]:
        """Shares of the classes in all requests."""
        return tuple(sum(tenant.share * tenant.mix[k] for tenant in self.tenants) for k in range(len(KINDS)))

    @property
    def prompt(self) -> float:
        """Mean computed prompt tokens of a request."""
        return self.prompts * sum(share * kind.prompt for share, kind in zip(self.mix, KINDS, strict=True))

    @property
    def cost(self) -> float:
        """Mean cost of a request, replica-seconds (capacity text A, F1 and F2).

        >>> round(before("quiet").cost, 4), round(after("new-tenant").cost, 4)
        (0.992, 1.2485)
        """
        output = sum(share * kind.output for share, kind in zip(self.mix, KINDS, strict=True))
        return work.cost(self.prompt, output, PREFILL_RATE, DECODE_RATE)

    @property
    def utilisation(self) -> float:
        """Work that arrives over work that the replicas can do: λ·cost/replicas."""
        return work.utilisation(RATE, self.cost, REPLICAS)


NAMES: Final = (
    *("claims", "billing", "support", "sales", "returns", "logistics"),
    *("legal", "finance", "field", "hr", "partners", "labs"),
)
NEWCOMER: Final = Tenant("acme", 1 / 7, (0.5, 0.0, 0.5))
"""A seventh of the requests, half of them summaries, turns 85/14/1 of all others into 80/12/8 of the whole."""
DEEPER: Final = (1500.0, 2700.0)
"""Mean computed prompt tokens before and after retrieval fetches more passages."""
TENANTS: Final = (*NAMES, NEWCOMER.name)
"""Every tenant there can be; a request tells its own by index."""
SCENARIOS: Final = ("new-tenant", "retrieval-depth", "quiet")


def _tenants(whole: float) -> tuple[Tenant, ...]:
    """Twelve tenants with heavy-tailed shares, the k-th in proportion to k^−1.2, that add up to ``whole``."""
    weights = [k**-1.2 for k in range(1, len(NAMES) + 1)]
    return tuple(Tenant(name, whole * weight / sum(weights)) for name, weight in zip(NAMES, weights, strict=True))


_USUAL_WORKLOAD: Final = Workload(_tenants(1.0))


def before(scenario: str) -> Workload:
    """What arrives before the change."""
    if scenario == "retrieval-depth":
        return replace(_USUAL_WORKLOAD, prompts=DEEPER[0] / _USUAL_WORKLOAD.prompt)
    return _USUAL_WORKLOAD


def after(scenario: str) -> Workload:
    """What arrives after the change, at the same rate.

    >>> [round(share, 4) for share in after("new-tenant").mix], round(after("retrieval-depth").prompt)
    ([0.8, 0.12, 0.08], 2700)
    """
    if scenario == "new-tenant":
        return Workload((*_tenants(1 - NEWCOMER.share), NEWCOMER))
    if scenario == "retrieval-depth":
        return replace(_USUAL_WORKLOAD, prompts=DEEPER[1] / _USUAL_WORKLOAD.prompt)
    return _USUAL_WORKLOAD


def change(scenario: str) -> str:
    """What happens, in words."""
    return {
        "new-tenant": f"tenant {NEWCOMER.name} arrives with a seventh of the requests, half of them {KINDS[2].route}; "
        "the others ask less",
        "retrieval-depth": f"retrieval fetches more passages: prompts {DEEPER[0]:,.0f} -> {DEEPER[1]:,.0f} tokens",
        "quiet": "nothing changes; what is told of before and after may differ by chance only",
    }[scenario]
