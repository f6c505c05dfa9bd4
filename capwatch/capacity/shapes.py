"""Which of four shapes traffic has: a season, bursts on the hour, a step, or a burst that the service makes itself.

From counts of single seconds (capacity text C). A season is what hours of the day have in common; a burst is what
stands out of the half hour before it. Each burst has one shape, in this order: `self_made` where failures or repeated
attempts come with it, `on_the_hour` where it begins at a quarter of an hour and is sharp, `seasonal` where other days
have one at the same time, else `step`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from capwatch.capacity.bursts import quantile
from capwatch.record import Bools, Floats

FACTOR: Final = 2.0
"""Times the usual rate from which seconds belong to a burst, as in `bursts.bursts`."""
SCALES: Final = (1, 10, 60)
"""Seconds over which a rate is looked at: short ones show sharp bursts of busy pools, long ones those of quiet ones."""
CERTAIN: Final = 5.3
"""Times the 95th percentile of what stretches have over the usual: e^-16 of an exponential tail, less than one second
in ten weeks; less of a thinner one."""
SPREAD: Final = 1.645
"""That percentile at random, in standard deviations; taken where counts vary less than that."""
MINUTE_S: Final = 60
BEFORE_MIN: Final = 30
"""Minutes whose median is the usual rate: a burst of up to a quarter of an hour does not move it."""
APART_S: Final = 300
"""Bursts that are closer are one."""
QUARTER_S: Final = 900
NEAR_S: Final = 60
"""From a quarter of an hour at which a burst has begun there; by chance two of fifteen do."""
SHARP_S: Final = 60
"""Time until half of the height, at most: what clocks start does not swell."""
FEW: Final = 0.5
"""Share of a burst that one tenant has where its clock started it."""
SEASON: Final = 2.0
"""Busiest over quietest hour from which there is a season, as of `profile.pattern`."""
ALIKE_S: Final = 900
"""By how much a burst of another day may be earlier or later and still be the same."""
DAY_S: Final = 86_400
HOUR_S: Final = 3600
FAILING: Final = 3.0
"""Times the usual share of failures that is a rise, and `FAILED` of all, and `FAILURES` of them at least."""
FAILED: Final = 0.05
FAILURES: Final = 5
RESENT: Final = 0.5
"""Share of what came more that was sent again, from which a burst is the service's own."""


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst.

    Attributes:
        begin, end: s since the epoch; until it was over, or its level had become the usual one.
        usual_rps: median minute of the half hour before.
        peak_rps: requests of its busiest second.
        extra: requests over the usual ones.
        rise_s: from its begin to half of its height.
        stayed: whether the half hour after it is `FACTOR` times the usual one too.
        shape: `self_made`, `on_the_hour`, `seasonal` or `step`.
        why: what tells that, in words.
    """

    begin: float
    end: float
    usual_rps: float
    peak_rps: float
    extra: float
    rise_s: float
    stayed: bool
    shape: str
    why: str


@dataclass(frozen=True, slots=True)
class Season:
    """What days have in common.

    Attributes:
        busiest_hour, quietest_hour: 0 to 23, of UTC.
        ratio: mean rate of the one over that of the other; infinite where the quietest has none.
        explained: part of the variance of hourly rates that the hour of the day explains, 0 to 1.
    """

    busiest_hour: int
    quietest_hour: int
    ratio: float
    explained: float


@dataclass(frozen=True, slots=True)
class Hints:
    """What else is known of the same time, in slots of ``slot_s`` seconds from the same begin on.

    Attributes:
        slot_s: seconds of a slot; those of rollups are five minutes.
        failed: float64[k], requests that the service failed.
        resent: float64[k], attempts beyond the first.
        tenants: float64[m, k], requests of each tenant.
    """

    slot_s: int = 300
    failed: Floats | None = None
    resent: Floats | None = None
    tenants: npt.NDArray[np.float64] | None = None


def season(counts: Floats, since: float) -> Season | None:
    """The daily season; None in less than two days, or where hours differ less than `SEASON` times.

    Args:
        counts: float64[n], requests of each second, in order and without gaps.
        since: s since the epoch of the first, whole.

    >>> days = np.tile(np.repeat([1.0, 3.0], 12 * 3600), 2)
    >>> season(days, 0.0)
    Season(busiest_hour=12, quietest_hour=0, ratio=3.0, explained=1.0)
    """
    first = -int(since) % HOUR_S
    whole = max(len(counts) - first, 0) // HOUR_S
    means = counts[first : first + whole * HOUR_S].reshape(whole, HOUR_S).mean(axis=1)
    if whole < 48:
        return None
    hour = (np.arange(whole) + (int(since) + first) // HOUR_S) % 24
    level = np.bincount(hour, means, 24) / np.bincount(hour, minlength=24)
    busiest, quietest = int(level.argmax()), int(level.argmin())
    if not means.any() or level[busiest] < SEASON * level[quietest]:
        return None
    ratio = float(level[busiest] / level[quietest]) if level[quietest] else np.inf
    return Season(busiest, quietest, ratio, float(level[hour].var() / means.var()))


def bursts(counts: Floats, since: float, hints: Hints = Hints()) -> list[Burst]:
    """The bursts in order of time, each with its shape.

    Seconds belong to one where some of `SCALES` has more than `FACTOR` times the usual rate, and more than chance: the
    spread of the counts themselves is taken for chance, so that steadily bursty traffic is the usual. A level that
    stays is a burst until it has become the usual one, a quarter of an hour.

    Args:
        counts: float64[n], requests of each second, in order and without gaps. The first half hour is its own usual
            rate; in less than that nothing is found.
        since: s since the epoch of the first, whole.
        hints: what else is known of the same time; without it nothing is self-made.

    >>> quiet = np.tile([3.0, 5.0], 3600)
    >>> quiet[4000:4030] = 40
    >>> [(one.begin, one.end, one.usual_rps, one.extra, one.shape) for one in bursts(quiet, 0.0)]
    [(4000.0, 4030.0, 4.0, 1080.0, 'step')]
    """
    if len(counts) < BEFORE_MIN * MINUTE_S:
        return []
    usual = _usual(counts)
    calm = ~_over(counts, usual, SCALES[-1], None)
    over = np.any([_over(counts, usual, scale, calm) for scale in SCALES], axis=0)
    found = [_measured(counts, usual, begin, end, since) for begin, end in _runs(over, counts > FACTOR * usual)]
    days = len(counts) / DAY_S
    judges: Sequence[Callable[[Burst], str | None]] = (
        lambda one: _self_made(one, counts, since, hints),
        lambda one: _on_the_hour(one, since, hints),
        lambda one: _seasonal(one, found, since, days),
    )
    return [_judged(one, judges) for one in found]


def _usual(counts: Floats) -> Floats:
    """float64[n], median of the minutes before each; of the first half hour for itself."""
    minutes = np.pad(counts, (0, -len(counts) % MINUTE_S), mode="edge").reshape(-1, MINUTE_S).mean(axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(minutes, BEFORE_MIN)
    medians = np.median(windows, axis=1)
    by_minute = np.concatenate([np.full(BEFORE_MIN, medians[0]), medians])[: len(minutes)]
    return np.repeat(by_minute, MINUTE_S)[: len(counts)]


def _over(counts: Floats, usual: Floats, scale: int, calm: Bools | None) -> Bools:
    """bool[n], whether a second lies in a stretch of ``scale`` seconds that has too many.

    What is too many is told by the calm seconds, so that bursts do not hide each other; without them by chance.
    """
    whole = len(counts) // scale * scale
    had, expected = (column[:whole].reshape(-1, scale).sum(axis=1) for column in (counts, usual))
    strange = (had - expected) / np.sqrt(np.maximum(expected, 1))
    ordinary = strange[calm[:whole:scale]] if calm is not None else strange[:0]
    spread = quantile(ordinary, 0.95) if len(ordinary) else 0.0
    over = (had > FACTOR * expected) & (strange > CERTAIN * max(SPREAD, spread))
    return np.pad(np.repeat(over, scale), (0, len(counts) - whole))


def _runs(over: Bools, high: Bools) -> list[tuple[int, int]]:
    """Begin and end of the runs, close ones as one, without what is not high at their ends."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], over, [False]]).astype(np.int8)))
    runs: list[tuple[int, int]] = []
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if runs and begin - runs[-1][1] <= APART_S:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((begin, end))
    found = []
    for begin, end in runs:
        inside = np.flatnonzero(high[begin:end])
        found.append((begin + int(inside[0]), begin + int(inside[-1]) + 1))  # a run has more than usual somewhere
    return found


def _measured(counts: Floats, usual: Floats, begin: int, end: int, since: float) -> Burst:
    level = float(usual[begin])
    inside = counts[begin:end]
    width = min(10, len(inside))
    smooth = np.convolve(inside, np.full(width, 1 / width), "valid")
    half = level + (float(smooth.max()) - level) / 2
    after = counts[end : end + BEFORE_MIN * MINUTE_S]
    minutes = after[: len(after) // MINUTE_S * MINUTE_S].reshape(-1, MINUTE_S).mean(axis=1)
    return Burst(
        begin=since + begin,
        end=since + end,
        usual_rps=level,
        peak_rps=float(inside.max()),
        extra=float(inside.sum() - level * len(inside)),
        rise_s=float(np.argmax(smooth >= half)),
        stayed=bool(len(minutes)) and float(np.median(minutes)) > FACTOR * level,
        shape="step",
        why="fast, and at no time that a clock or another day has",
    )


def _judged(one: Burst, judges: Sequence[Callable[[Burst], str | None]]) -> Burst:
    for shape, judge in zip(("self_made", "on_the_hour", "seasonal"), judges, strict=True):
        why = judge(one)
        if why is not None:
            return replace(one, shape=shape, why=why)
    return one


def _self_made(one: Burst, counts: Floats, since: float, hints: Hints) -> str | None:
    first = int(one.begin - since) // hints.slot_s
    last = int(one.end - since - 1) // hints.slot_s + 1
    before = slice(max(0, first - 1 - 6), max(0, first - 1))
    if hints.resent is not None and one.extra > 0:
        usual = float(hints.resent[before].mean()) if before.stop > before.start else 0.0
        share = (float(hints.resent[first:last].sum()) - usual * (last - first)) / one.extra
        if share >= RESENT:
            return f"{share:.0%} of what came more was sent again"
    if hints.failed is not None and before.stop > before.start:
        whole = np.add.reduceat(counts, np.arange(0, len(counts), hints.slot_s))
        usual = float(hints.failed[before].sum() / max(whole[before].sum(), 1))
        failed = float(hints.failed[first - 1])
        share = failed / max(float(whole[first - 1]), 1)
        if failed >= FAILURES and share >= max(FAILED, FAILING * usual):
            return f"{share:.0%} of the requests before it failed, usually {usual:.0%}"
    return None


def _on_the_hour(one: Burst, since: float, hints: Hints) -> str | None:
    off = (one.begin + QUARTER_S / 2) % QUARTER_S - QUARTER_S / 2
    if abs(off) > NEAR_S or one.rise_s > SHARP_S:
        return None
    why = f"begins {abs(off):.0f} s {'before' if off < 0 else 'after'} a quarter of an hour, sharply"
    if hints.tenants is None:
        return why
    first = int(one.begin - since) // hints.slot_s
    last = int(one.end - since - 1) // hints.slot_s + 1
    before = hints.tenants[:, max(0, first - 6) : first]
    usual = before.mean(axis=1) if before.size else 0.0
    rose = np.maximum(hints.tenants[:, first:last].sum(axis=1) - usual * (last - first), 0)
    share = float(rose.max() / rose.sum()) if rose.any() else 0.0
    return f"{why}; one tenant has {share:.0%} of the rise" if share >= FEW else None


def _seasonal(one: Burst, found: Sequence[Burst], since: float, days: float) -> str | None:
    """Half of the other days have one at the same time, or each other day of its week does."""
    today = int(one.begin // DAY_S)
    alike = {
        int(other.begin // DAY_S)
        for other in found
        if abs((other.begin - one.begin + DAY_S / 2) % DAY_S - DAY_S / 2) <= ALIKE_S
    } - {today}
    of_day = one.begin % DAY_S
    others = [day for day in range(int(since // DAY_S), int((since + days * DAY_S) // DAY_S) + 1) if day != today]
    seen = [day for day in others if since <= day * DAY_S + of_day < since + days * DAY_S]
    same = [day for day in seen if (day - today) % 7 == 0]
    if alike and (2 * len(alike) >= len(seen) or (same and alike.issuperset(same))):
        return f"{len(alike)} of {len(seen)} other days have one at the same time"
    return None
