"""On-the-hour bursts: a job starts by the clock, at the same minute of hour after hour, within a minute of a quarter.

Three hours in a row must show it, each against the minutes before it; requests or work, whichever is sharper. Nothing
but a talk with the tenant, or a limit of its own, helps against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.minutes.past import Past
from capwatch.minutes.table import Sums
from capwatch.minutes.watcher import Change, Who, behind
from capwatch.record import Floats

QUARTER: Final = 15
HOUR: Final = 60
NEAR: Final = 1
"""Minutes before and after the quarter in which a burst has its peak …"""
QUIET: Final = 10
"""… and minutes before these whose median is usual."""
TIMES: Final = 3
"""Hours in a row."""
FACTOR: Final = 2.0
SIGMAS: Final = 5.0
"""Standard deviations of the quiet minutes, at least those of Poisson, that a burst stands out by: three times over."""


@dataclass(frozen=True, slots=True)
class OnTheHour:
    """Looks two minutes after each quarter of an hour."""

    name: str = "on_the_hour"
    hold: int = 1
    patience: int = 2

    def now(self, past: Past) -> tuple[float, float] | None:
        """The usual is 1; the sharpest of the last four quarters."""
        quarter = past.last - NEAR
        if quarter % QUARTER:
            return None
        bursts = [_bursts(past, one, 1) for one in range(quarter, quarter - HOUR, -QUARTER)]
        found = [float(one[0]) for by in bursts if by is not None for one in by.values()]
        return (1.0, max(found)) if found else None

    def look(self, past: Past) -> Change | None:
        """See `Watcher`."""
        quarter = past.last - NEAR
        bursts = _bursts(past, quarter, TIMES) or {}
        every = {column: float(np.median(found)) for column, found in bursts.items() if (found > 1).all()}
        if not every:
            return None
        column = max(every, key=lambda one: every[one])
        return Change(quarter - (TIMES - 1) * HOUR, 1.0, every[column], _who(past, quarter, column))

    def over(self, past: Past, change: Change) -> bool | None:
        """Whether nothing stands out at its minute."""
        quarter = past.last - NEAR
        bursts = _bursts(past, quarter, 1)
        if bursts is None or (quarter - change.since) % HOUR:
            return None
        return all(found[0] == 1.0 for found in bursts.values())

    def said(self, change: Change) -> str:
        """See `Watcher`."""
        return f"Bursts every hour at :{change.since % HOUR:02d} of {change.after:.1f} times the minutes before"


def _bursts(past: Past, quarter: int, hours: int) -> dict[str, Floats] | None:
    """By column, float64[hours]: peak over the usual at a quarter, newest first; 1 where nothing stands out."""
    firsts = [quarter - NEAR - QUIET - HOUR * ago for ago in range(hours)]
    if not past.knows(firsts[-1]):
        return None
    span = np.arange(QUIET + 2 * NEAR + 1)
    minutes = past.windows((np.array(firsts)[:, None] + span).ravel(), 1)
    found = {}
    for column in ("came", "came_cost"):
        values = minutes[column].reshape(hours, len(span))
        quiet, peak = values[:, :QUIET], values[:, QUIET:].max(axis=1)
        usual, noise = np.median(quiet, axis=1), quiet.std(axis=1)
        if column == "came":
            noise = np.maximum(noise, np.sqrt(usual))
        sharp = (usual > 0) & (peak > FACTOR * usual) & (peak - usual > SIGMAS * noise)
        found[column] = np.where(sharp, peak / np.where(usual > 0, usual, 1.0), 1.0)
    return found


def _who(past: Past, quarter: int, column: str) -> tuple[Who, ...]:
    """The tenants whose excess over their own quiet minutes makes the last burst."""
    burst, quiet = past.tenants(quarter - NEAR, 2 * NEAR + 1), past.tenants(quarter - NEAR - QUIET, QUIET)

    def usual(tenant: int) -> float:
        return float(quiet[tenant].rate(column)) if tenant in quiet else 0.0

    adds = {one: max(0.0, float(sums.rate(column)) - usual(one)) for one, sums in burst.items()}
    return behind(adds, {one: float(_all(quiet.get(one))) for one in burst})


def _all(sums: Sums | None) -> float:
    return 0.0 if sums is None else float(sums["requests"])


WATCHER = OnTheHour()
