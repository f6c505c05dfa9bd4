"""One scale for all channels: how seldom does history reach a level that this channel has reached?

The highest values of half hours have an exponential tail. Its start and slope are fitted per channel on evidence that
the reference had not seen; a channel's sum is then told in units of −ln of the chance that a half hour without drift
gets there. The best channel of every half hour has such a tail again, and the alarm level is set by the wanted run
length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from capwatch.drift.ticks import HOUR
from capwatch.record import Bools, Floats, Ints

BLOCK: Final = HOUR // 2
"""Ticks of a half hour: long against a burst, short against a day."""
MONTH: Final = 28 * 48
"""Half hours of four weeks."""
TAIL: Final = 0.1
"""The tail is what the highest tenth of the half hours is made of."""
LEAST_SLOPE: Final = 1.0
"""A sum of log-likelihood ratios falls off no faster than e^−S (Wald 1945), whatever a few weeks seem to show."""
CAP: Final = 1 / 4.6
"""No tick brings an alarm nearer by more than this part of its level: a burst of 20 s touches three ticks."""
SURE: Final = 0.7
"""Standard deviations of chance by which the change of cost exceeds the minimum effect …"""
ASTRAY: Final = 2.0
"""… and standard deviations of what the cost of the site does by itself …"""
HOURS: Final = 3 * HOUR
"""… over so many ticks."""
LEAST_REQUESTS: Final = 50.0
"""Requests since the change point without which nothing is claimed."""
FADE: Final = HOUR // 6
"""Ticks after which what the cost has done counts e times less: the mean of a drift that comes slowly says little …"""
FADE_REQUESTS: Final = 5000.0
"""… but not before that many requests have been seen."""
_PIECE: Final = 1 << 13
"""Ticks that are summed at once; e^(that/FADE) is a number."""
CROWD: Final = 3.0
"""Times the usual requests from which on a tick may add less than the cap, in proportion: a crowd is no change."""
_ROUNDS: Final = 4
"""The cap changes the tail and the tail the cap; they settle within a few rounds."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Per channel: where the tail starts, its slope, the most that a tick may add, and the alarm level."""

    start: Floats
    slope: Floats
    bonus: Floats
    """ln of the prior."""
    level: float
    """Of the best channel's surprise."""
    rho: Floats
    """Common shock: variance between minutes over that inside them, per request."""
    usual: float
    """Mean requests of a minute."""
    noise: float
    """Standard deviation of the cost of a request."""
    wander: float = 0.0
    """Standard deviation of the relative excess of cost over hours, beyond chance."""

    @property
    def alarm(self) -> Floats:
        """The sum at which a channel's surprise is at the level: float64[A]."""
        return np.asarray(self.start + self.slope * (self.level - self.bonus + np.log(TAIL)))

    @property
    def cap(self) -> Floats:
        """float64[A]."""
        return np.asarray(self.alarm * CAP)

    def surprise(self, sums: Floats) -> Floats:
        """−ln of the chance that a half hour reaches these sums, the prior included: float64[…, A]."""
        return np.asarray((sums - self.start) / self.slope - np.log(TAIL) + self.bonus)

    def damped(self, found: Floats, minute: Floats) -> Floats:
        """Evidence, less where requests come together.

        Args:
            found: float64[T, A].
            minute: float64[T]: requests of the minute that ends with each tick.
        """
        return np.asarray(found * damping(self.rho, self.usual, minute[:, None]))


def damping(rho: Floats, usual: float, minute: Floats) -> Floats:
    """What is left of evidence where more requests come in a minute than usual and share shocks."""
    return np.asarray(np.minimum(1.0, (1 + rho * usual) / (1 + rho * minute)))


def shock(found: Floats, n: Floats) -> tuple[Floats, float]:
    """(ρ of every channel, mean requests of a minute), from ticks in order.

    The variance of a minute's evidence is n σ_w² + n² σ_b² where requests of a minute share a shock; weighted least
    squares, weights 1/n². ρ = σ_b²/σ_w².
    """
    size = HOUR // 60
    whole = len(n) // size * size
    minute = n[:whole].reshape(-1, size).sum(axis=1)
    busy = minute > 0
    if busy.sum() < 60:
        return np.zeros(found.shape[1]), float(minute.mean()) if len(minute) else 0.0
    minute, sums = minute[busy], found[:whole].reshape(len(minute), size, -1).sum(axis=1)[busy]
    residual = sums - minute[:, None] * (sums.sum(axis=0) / minute.sum())
    scatter = residual**2 / minute[:, None]
    centred = minute - minute.mean()
    between = (centred @ scatter) / max(1e-12, float(centred @ centred))
    within = scatter.mean(axis=0) - between * minute.mean()
    rho = np.where(between > 0, between / np.maximum(within, 1e-3 * scatter.mean(axis=0) + 1e-12), 0.0)
    return np.clip(rho, 0.0, 1.0), float(minute.mean())


def cusum(steps: Floats, start: Floats | float = 0.0) -> Floats:
    """max(0, S + step) from tick to tick: float64[T, …]."""
    total = start + np.cumsum(steps, axis=0)
    return np.asarray(total - np.minimum(0.0, np.minimum.accumulate(total, axis=0)))


class Stretch(NamedTuple):
    """Neighbouring ticks with the evidence of one direction."""

    found: Floats
    """float64[T, A]: log-likelihood ratios."""
    gain: Floats
    """float64[T, A]: the change of cost that each channel's own cause explains, in replica-seconds."""
    n: Floats
    """float64[T]: requests."""
    cost: Floats
    """float64[T]: replica-seconds."""
    expected: Floats
    """float64[T]: the replica-seconds that were expected of these requests."""
    usual: Floats
    """float64[T]: requests that the hour usually brings."""


class Window(NamedTuple):
    """Sums since a change point, older ones fading, in the direction that is watched; of any shape."""

    n: Floats
    excess: Floats
    """Cost − expected cost."""
    expected: Floats
    gain: Floats


def fit(
    history: Stretch, bonus: Floats, peers: Sequence[str], *, noise: float, log_run: float, effect: float, way: int
) -> Scale:
    """Set the levels from evidence of a history without drift, out of sample.

    Args:
        history: its ticks.
        bonus: float64[A]: ln of the priors.
        peers: of every channel, which others are like it: one that was calm is not judged more strictly than most of
            its peers; '' for none.
        noise: standard deviation of the cost of a request.
        log_run: ln of the half hours between false alarms.
        effect: change of cost under which there is no alarm.
        way: 1 for rises, −1 for falls.
    """
    channels = history.found.shape[1]
    rho, usual = shock(history.found, history.n)
    astray = wander(history, noise)
    scale = Scale(np.zeros(channels), np.ones(channels), bonus, log_run, rho, usual, noise, astray)
    minute = trailing(history.n)
    parts = np.stack([history.n, way * (history.cost - history.expected), history.expected, history.n], axis=1)
    cap, crowd = np.full(channels, np.inf), np.maximum(1e-3, crowded(history.n, history.usual))
    parts *= crowd[:, None]
    for _ in range(_ROUNDS):
        both = []
        for a in range(channels):
            sums = cusum(np.minimum(history.found[:, a] * damping(rho[a], usual, minute), cap[a] * crowd))
            parts[:, 3] = way * history.gain[:, a] * crowd
            counts = _credible_at(sums, parts, scale, effect)
            both.append((_maxima(sums), _maxima(np.where(counts, sums, 0.0))))
        maxima, gated = (np.stack(parts, axis=1) for parts in zip(*both, strict=True))
        start, slope = _like_peers(*_tail(maxima), peers)
        scale = replace(scale, start=start, slope=slope, level=log_run)
        begin, steep = _tail(scale.surprise(gated).max(axis=1, initial=0.0)[:, None])
        level = max(log_run, begin[0] + max(1.0, steep[0]) * (log_run + np.log(TAIL)))
        scale = replace(scale, level=float(level))
        cap = scale.cap
    return scale


def _like_peers(start: Floats, slope: Floats, peers: Sequence[str]) -> tuple[Floats, Floats]:
    """Starts and slopes at least those of the median peer."""
    group = np.array(peers)
    for name in set(peers) - {""}:
        mine = group == name
        start[mine] = np.maximum(start[mine], np.median(start[mine]))
        slope[mine] = np.maximum(slope[mine], np.median(slope[mine]))
    return start, slope


def crowded(n: Floats, usual: Floats) -> Floats:
    """Part of the cap that each tick may add: float64[T]."""
    return np.asarray(np.minimum(1.0, CROWD * usual / np.maximum(n, 1.0)))


def trailing(n: Floats, before: Floats | None = None) -> Floats:
    """Requests of the minute that ends with each tick; ``before``: those of the five ticks before the first."""
    size = HOUR // 60
    whole = np.concatenate([np.zeros(size - 1) if before is None else before, n])
    total = np.concatenate([[0.0], np.cumsum(whole)])
    return np.asarray(total[size:] - total[:-size])


def wander(history: Stretch, noise: float) -> float:
    """How far the cost of some hours strays from what is expected of them, relative to it and beyond chance."""
    whole = len(history.n) // HOURS * HOURS
    n, cost, expected = (
        part[:whole].reshape(-1, HOURS).sum(axis=1) for part in (history.n, history.cost, history.expected)
    )
    surplus = (cost - expected) ** 2 - noise**2 * n
    return float(np.sqrt(max(0.0, surplus.sum() / max(1e-12, float(expected @ expected)))))


def credible(window: Window, scale: Scale, effect: float) -> Bools:
    """Where the cost surely changed by more than the minimum effect, and enough of it by the channel's own cause."""
    least = effect * window.expected
    error = np.sqrt(SURE**2 * scale.noise**2 * window.n + (ASTRAY * scale.wander * window.expected) ** 2)
    surely = window.excess > least + error
    return np.asarray(surely & (window.gain > least) & (window.n >= LEAST_REQUESTS))


def since(steps: Floats, zero: Ints, kept: Floats, n: Floats) -> Floats:
    """Sums since the last zero in which older ticks fade: float64[T, …], of the shape of the steps and zeros together.

    Args:
        steps: float64[T, …].
        zero: int64[T, …]: one more than the row of the last zero, 0 where there was none.
        kept: sums before the first tick.
        n: float64[T]: requests.
    """
    found = np.empty(np.broadcast_shapes(steps.shape, zero.shape))
    for begin in range(0, len(steps), _PIECE):
        end = begin + _PIECE
        grown = np.exp(np.cumsum(np.minimum(1 / FADE, n[begin:end] / FADE_REQUESTS)))[:, None]
        total = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps[begin:end] * grown, axis=0)])
        last = np.maximum(0, zero[begin:end] - begin)
        before = total[last, np.arange(steps.shape[1]) if steps.shape[1] > 1 else 0]
        found[begin:end] = (total[1:] - before + np.where(last > 0, 0.0, kept)) / grown
        kept = found[min(end, len(steps)) - 1]
    return found


def _credible_at(sums: Floats, parts: Floats, scale: Scale, effect: float) -> Bools:
    """The same after each tick, since the last zero of the sums there; ``parts``: what a window sums up, by column."""
    zero = np.maximum.accumulate(np.where(sums == 0.0, np.arange(1, len(sums) + 1), 0))
    return credible(Window(*since(parts, zero[:, None], np.zeros(parts.shape[1]), parts[:, 0]).T), scale, effect)


def _maxima(sums: Floats) -> Floats:
    """The highest sum of each half hour."""
    whole = max(BLOCK, len(sums) // BLOCK * BLOCK)
    return np.asarray(np.resize(sums, whole).reshape(-1, BLOCK).max(axis=1))


def _tail(maxima: Floats) -> tuple[Floats, Floats]:
    """Start and mean excess of the highest tenth of each column."""
    start = np.quantile(maxima, 1 - TAIL, axis=0)
    above = np.maximum(0.0, maxima - start)
    slope = above.sum(axis=0) / np.maximum(1, (above > 0).sum(axis=0))
    return start, np.maximum(slope, np.maximum(LEAST_SLOPE, 0.02 * start))
