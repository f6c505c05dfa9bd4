"""Durations as Go and Rust print them: numbers with their units, put together where they are long."""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ns": 1e-9}
_PART = r"\d{1,9}(?:\.\d{1,9})?(?:h|ms|m|s|µs|μs|us|ns)"
_WHOLE = re.compile(rf"(?:{_PART})+", re.ASCII)
_PARTS = re.compile(r"(\d+(?:\.\d+)?)([a-zµμ]+)", re.ASCII)


def duration(text: str) -> float | None:
    """Seconds of a printed duration; None where it is none.

    >>> duration("1m4s"), duration("62.5s"), duration("812.3ms"), duration("0.5"), duration("12 s")
    (64.0, 62.5, 0.8123, None, None)
    """
    if not _WHOLE.fullmatch(text):
        return None
    return round(sum(float(amount) * _SECONDS[unit] for amount, unit in _PARTS.findall(text)), 9)
