"""The drawn requests as columns, and the reading of a column's labels."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Texts = npt.NDArray[np.object_]  # of str or None


@dataclass
class Rows:
    """Requests as columns of one length; NaN or None is what the log does not tell. Times are epoch seconds."""

    request_id: Texts
    attempt_group: Texts
    started_at: Floats  # NaN without a duration
    finished_at: Floats
    written_at: Floats  # the log's own order: when the row reaches the file
    tenant: Texts
    route: Texts
    model: Texts
    traffic_class: Texts
    stream: Bools
    prompt_tokens: Floats
    cached_tokens: Floats
    output_tokens: Floats
    duration_s: Floats
    ttft_s: Floats
    gateway_s: Floats
    retrieval_s: Floats
    tool_s: Floats
    queue_s: Floats
    prefill_s: Floats
    decode_s: Floats
    outcome: Texts
    status: Ints
    rate_limited_by: Texts
    retries: Floats
    cache_hit: Bools
    damage: Ints  # index into DAMAGES, -1: whole
    moved: Bools  # ancient or of the future: never written twice

    def __len__(self) -> int:
        return len(self.finished_at)

    def take(self, index: Ints | Bools | slice) -> Rows:
        """The rows at `index` (positions, a mask or a slice), in that order."""
        return Rows(**{column.name: getattr(self, column.name)[index] for column in fields(self)})


def blank(n: int) -> Rows:
    """`n` requests of which nothing is known."""
    empty: dict[str, Texts | Floats | Bools | Ints] = {
        "Texts": np.full(n, None, dtype=object),
        "Floats": np.full(n, np.nan),
        "Bools": np.zeros(n, dtype=bool),
        "Ints": np.full(n, -1, dtype=np.int64),
    }
    columns: dict[str, Any] = {column.name: empty[str(column.type)].copy() for column in fields(Rows)}
    return Rows(**columns)


def texts(values: list[str] | list[str | None]) -> Texts:
    """A column of texts, whatever their lengths."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def labels(column: Texts) -> list[str]:
    """The label values of a column of names: what is absent or empty is `unknown`."""
    return [name or "unknown" for name in column]
