"""Finished requests of one pool as columns: what the detector sees of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from capwatch.record import Bools, Floats, Ints

FAILED = frozenset({"timeout", "overload", "rate_limited", "upstream_error", "gateway_error", "client_abort"})
"""Outcomes after which a client may send the same request again."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Requests in the order of their event time, response-cache hits left out.

    Names are codes of the caller's own tables, −1 where the log does not tell one.
    """

    at: Floats
    """Event time, s since the epoch."""
    tenant: Ints
    route: Ints
    klass: Ints
    model: Ints
    group: Ints
    """What joins the attempts of one request; −1 where the log has no such thing."""
    prompt: Floats
    """Tokens, cached ones included; NaN where not told."""
    cached: Floats
    """Tokens; NaN where not told, which counts as none."""
    output: Floats
    failed: Bools
    wait: Floats
    """s in the queue, measured or estimated; NaN where not told."""

    def __len__(self) -> int:
        return len(self.at)

    def take(self, chosen: Ints | Bools) -> Rows:
        """Some of the rows, by index or mask."""
        return Rows(**{one.name: getattr(self, one.name)[chosen] for one in fields(self)})

    @property
    def computed(self) -> Floats:
        """Prompt tokens that were computed, at least 1: prompt − cached."""
        return np.maximum(1.0, self.prompt - np.where(np.isnan(self.cached), 0.0, self.cached))

    @property
    def known(self) -> Bools:
        """Whether both token counts are told."""
        return np.isfinite(self.prompt) & np.isfinite(self.output)
