"""How many series there can be: upper bounds, whatever the requests turn out to be."""

from __future__ import annotations

from typing import Final

PAIR: Final = 41
"""Of a tenant and route: 5 summaries of 5, 5 native histograms, 11 verdicts of goodput."""
MODEL: Final = 12
"""Of a tenant, route and model: 9 outcomes, 3 kinds of tokens."""
POOL: Final = 3
"""Of a tenant, route and pool: cost of both phases, savings."""
ROUTE: Final = 491
"""Of a route and pool, SLO bounds apart: 6 histograms of 470 edges in all and 3 samples more each; 3 counters."""

# capwatch's own, with the families that only some setups have.
_PROCESS: Final = 100
_SOURCE: Final = 30
_POOL: Final = 150
_CLASS: Final = 12


def own(sources: int, pools: int, classes: int, bounds: int) -> int:
    """Series that are there whatever the traffic: capwatch's own, those of its pools and classes, those of `other`.

    >>> own(sources=1, pools=2, classes=4, bounds=3)
    1573
    """
    other = PAIR + MODEL + pools * (POOL + ROUTE + bounds)
    return other + _PROCESS + sources * _SOURCE + pools * (_POOL + classes * _CLASS)
