"""Drifts put into the past by hand: how soon would the detector have seen them?

A drift is put into the sums of ten seconds, not into single requests: lengths are changed as if all requests of a cell
were alike, and requests that come on top are drawn from what dear requests of this past were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from capwatch.drift.attribution import Names
from capwatch.drift.detector import Detector
from capwatch.drift.model import Model, Settings
from capwatch.drift.ticks import COLUMN, HOUR, TICK_S, Ticks, added
from capwatch.record import Bools, Floats, Ints

BEFORE: Final = HOUR
"""Ticks that a fresh detector watches before the onset …"""
AFTER: Final = 3 * HOUR
"""… and after it."""
NEWCOMER: Final = 1 << 20
"""Code of a tenant that no past has."""
DEAR: Final = 0.9
"""Requests that come on top are like those of the dearest tenth of the cells."""


@dataclass(frozen=True, slots=True)
class Delays:
    """What became of the onsets of one drift."""

    kind: str
    size: float
    onsets: int
    seconds: tuple[float, ...]
    """From the onset to the end of the tick that raised it, of those that were found."""


def lengths(
    ticks: Ticks, after: Bools, settings: Settings, *, prompt: float = 0.0, output: float = 0.0, lost: float = 0.0
) -> Ticks:
    """Prompts and answers longer by a part of themselves, and a part of the cache hits lost."""
    sums = ticks.sums.copy()
    old = {name: ticks[name][after] for name in ("prompt", "computed", "output", "cost", "n")}
    hits = old["prompt"] - old["computed"]
    new = {
        "prompt": old["prompt"] * (1 + prompt),
        "computed": old["computed"] + prompt * old["prompt"] + lost * hits,
        "output": old["output"] * (1 + output),
    }
    new["cost"] = new["computed"] / settings.prefill_rate + new["output"] / settings.decode_rate
    ratio = {name: value / old[name] for name, value in new.items()}
    for name, value in new.items():
        sums[after, COLUMN[name]] = value
    for name in ("computed", "output", "cost"):
        sums[after, COLUMN[f"log_{name}"]] += old["n"] * np.log(ratio[name])
    sums[after, COLUMN["log_ratio"]] += old["n"] * np.log(ratio["computed"] / ratio["prompt"])
    sums[after, COLUMN["root_cost"]] *= np.sqrt(ratio["cost"])
    return replace(ticks, sums=sums)


def on_top(ticks: Ticks, after: Bools, share: float, tenant: int | None, rng: np.random.Generator) -> Ticks:
    """More dear requests, ``share`` of all, of their own tenants or of one that is new."""
    mean = ticks["cost"] / ticks["n"]
    dear = np.flatnonzero(mean >= np.quantile(mean, DEAR))
    tick, n = _per_tick(ticks.take(after))
    chosen = rng.choice(dear, int(rng.poisson(share / (1 - share) * n.sum())))
    more = ticks.take(chosen)
    more = replace(
        more,
        tick=rng.choice(tick, len(chosen), p=n / n.sum()),
        tenant=more.tenant if tenant is None else np.full(len(chosen), tenant),
        sums=more.sums / more["n"][:, None],
    )
    return Ticks.merge([ticks, more])


def _per_tick(ticks: Ticks) -> tuple[Ints, Floats]:
    tick, of = np.unique(ticks.tick, return_inverse=True)
    return tick, added(of, ticks["n"], len(tick))


def _injected(
    drift: tuple[str, float], ticks: Ticks, onset: int, settings: Settings, rng: np.random.Generator
) -> Ticks:
    kind, size = drift
    after = ticks.tick >= onset
    kinds: dict[str, Callable[[], Ticks]] = {
        "prompt": lambda: lengths(ticks, after, settings, prompt=size),
        "output": lambda: lengths(ticks, after, settings, output=size),
        "cache": lambda: lengths(ticks, after, settings, lost=size),
        "mix": lambda: on_top(ticks, after, size, None, rng),
        "tenant": lambda: on_top(ticks, after, size, NEWCOMER, rng),
    }
    return kinds[kind]()


KINDS: Final = {
    "prompt": "prompts longer by that part",
    "output": "answers longer by that part",
    "cache": "that part of the cache hits lost",
    "mix": "that part of the requests dear ones, on top",
    "tenant": "that part of the requests from a new tenant, dear ones",
}


def delays(
    drift: tuple[str, float], watched: Ticks, model: Model, settings: Settings, names: Names, *, trials: int
) -> Delays:
    """Put one drift into the past at evenly spaced times, each time before a fresh detector."""
    first, last = int(watched.tick[0]) + BEFORE, int(watched.tick[-1]) - HOUR // 6
    found = []
    onsets = np.unique(np.linspace(first, max(first, last), trials).astype(np.int64)).tolist()
    for number, onset in enumerate(onsets):
        piece = watched.between(onset - BEFORE, onset + AFTER)
        if not len(piece) or piece.tick[-1] < onset:
            continue
        rng = np.random.default_rng(number)
        changed = _injected(drift, piece, onset, settings, rng)
        detector = Detector(settings, _named(names), model, begin=int(piece.tick[0]))
        events = detector.feed(changed, int(changed.tick[-1]) + 1)
        seen = [event.at for event in events if event.event == "raised" and event.direction == "up"]
        found += [at - onset * TICK_S for at in seen if at > onset * TICK_S][:1]
    return Delays(*drift, len(onsets), tuple(sorted(found)))


def _named(names: Names) -> Names:
    return lambda dimension, code: "injected" if code == NEWCOMER else names(dimension, code)


def quantile(found: Delays, q: float) -> float | None:
    """The delay that a part q of all onsets did not exceed; None where fewer were found."""
    rank = int(np.ceil(q * found.onsets)) - 1
    return found.seconds[rank] if 0 <= rank < len(found.seconds) else None
