"""Where lines come from, as far as counting them depends on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Where lines come from."""

    source: str
    pool: str | None = None
    """The pool that the source's configuration names, if any."""
    engine: str = ""
    """The engine that writes these lines, in logs of engines."""
    counts: bool = True
    """Whether its records are requests of their own (contract, section 2a)."""
