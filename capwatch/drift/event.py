"""What the detector says: a drift was raised, or it has gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

EFFECTS: Final = ("mix", "prompt", "output", "cache")
DIMENSIONS: Final = ("tenant", "route", "class")


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one tenant, route or class adds to the cost of a request through one effect."""

    dimension: str
    value: str
    effect: str
    replica_seconds: float
    share_before: float
    share_after: float


@dataclass(frozen=True, slots=True)
class Event:
    """A drift. Times are s since the epoch, costs replica-seconds per request."""

    event: str
    """`raised` or `cleared`."""
    direction: str
    """`up` or `down`."""
    at: float
    """End of the tick that decided it."""
    started_at: float
    """Estimated change point."""
    cost_before: float
    """What the reference expects of the requests since then."""
    cost_after: float
    interval: tuple[float, float] | None
    """90 % interval of the relative change; None where it cannot be told."""
    effects: dict[str, float]
    """Of `EFFECTS`; they add up to cost_after − cost_before."""
    contributions: tuple[Contribution, ...]
    """The largest first; none whose interval covers 0."""
    verdict: str | None
    """`composition`, `queueing`, `both` or `unknown`; None without waits."""
    rate_before: float
    """Requests/s."""
    rate_after: float
    note: str = field(default="")
    """Why it was cleared, where that is not that the cost came back."""

    @property
    def change(self) -> float:
        """Relative change of the cost per request."""
        return self.cost_after / self.cost_before - 1 if self.cost_before > 0 else 0.0

    @property
    def rate_change(self) -> float:
        """Relative change of the request rate."""
        return self.rate_after / self.rate_before - 1 if self.rate_before > 0 else 0.0

    def line(self, pool: str) -> dict[str, Any]:
        """The event as the contract tells it (section 1a), for JSON."""
        return {
            "event": self.event,
            "pool": pool,
            "direction": self.direction,
            "at": self.at,
            "started_at": self.started_at,
            "cost_before": self.cost_before,
            "cost_after": self.cost_after,
            "cost_change_ratio": self.change,
            "interval": None if self.interval is None else list(self.interval),
            "request_rate_change_ratio": self.rate_change,
            "effects": dict(self.effects),
            "contributions": [
                {
                    "dimension": one.dimension,
                    "value": one.value,
                    "effect": one.effect,
                    "replica_seconds": one.replica_seconds,
                    "share_before": one.share_before,
                    "share_after": one.share_after,
                }
                for one in self.contributions
            ],
            "verdict": self.verdict,
            **({"note": self.note} if self.note else {}),
        }
