"""A saved `/metrics` page of engines, judged as one unit: the format `engine_metrics`."""

from __future__ import annotations

from typing import Final

from capwatch import engines
from capwatch.explain.judge import Judged

PAGE: Final = "engine_metrics"


def explain_page(data: bytes) -> Judged:
    """One result for the whole page: a sample for each engine replica on it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Judged(1, "drop", reason="bad_utf8")
    found = engines.page(text)
    return Judged(1, "record", found) if found else Judged(1, "drop", reason="malformed", detail="no engine's metrics")
