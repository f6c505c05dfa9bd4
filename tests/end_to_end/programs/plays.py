"""What is played through each gateway, and how capwatch has to tell it: by outcome, retries and limiter."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from .client import ask, leave

TIMEOUT_S: Final = 2
"""After which the gateways give up waiting: longer than any answer but that of the model `hang`."""
LIMITED: Final = "/limited"
"""The path on which the gateway lets one request a minute through."""


@dataclass(frozen=True)
class Play:
    """One request; its name goes along as the tenant."""

    name: str
    model: str
    outcome: str
    status: int
    """What the client gets; 0 where it is gone before the first byte."""
    stream: bool = False
    path: str = "/v1/chat/completions"
    leaves: bytes | None = None
    """What the client waits for before it goes; None where it stays."""
    retries: int = 0
    limited_by: str | None = None

    def give(self, port: int) -> None:
        """Play it."""
        headers = {"x-tenant-id": self.name}
        if self.leaves is not None:
            leave(port, self.model, headers=headers, after=self.leaves)
        else:
            saw = ask(port, self.model, stream=self.stream, path=self.path, headers=headers)
            assert saw.status == self.status


PLAYS: Final = (
    Play("answer", "answer", "ok", 200),
    Play("answer", "answer", "ok", 200),
    Play("stream", "streamed", "ok", 200, stream=True),
    Play("stream", "streamed", "ok", 200, stream=True),
    Play("retried", "flaky", "ok", 200, retries=1),
    Play("failed", "fail", "upstream_error", 503, retries=1),
    Play("refused", "refuse", "client_error", 400),
    Play("first", "answer", "ok", 200, path=LIMITED),
    Play("second", "answer", "rate_limited", 429, path=LIMITED, limited_by="gateway"),
    Play("limited", "limit", "rate_limited", 429, limited_by="upstream"),
    Play("left", "streamed", "client_abort", 200, stream=True, leaves=b"data:"),
    Play("left", "streamed", "client_abort", 200, stream=True, leaves=b"data:"),
    Play("impatient", "hang", "client_abort", 0, stream=True, leaves=b""),
    Play("waited", "hang", "timeout", 504),
)

Told = Counter[tuple[str, str, int, str | None]]
"""Requests by tenant, outcome, retries and who limited them."""


def expected() -> Told:
    """How the plays have to be told, each once."""
    return Counter((one.name, one.outcome, one.retries, one.limited_by) for one in PLAYS)


def told(records: list[dict[str, Any]]) -> Told:
    """How records tell them."""
    return Counter(
        (one["tenant"], one["outcome"], one.get("retries") or 0, one.get("rate_limited_by")) for one in records
    )
