"""The process that learns: fits a detector's model on the history, beside the daemon and at the lowest priority.

A job comes by standard input and what is learnt goes to standard output, both as packed values; None is too short a
history. The history is read piece by piece, so that two weeks take some 200 MB.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from capwatch.drift.history import History
from capwatch.drift.model import Settings, fit_span, reach
from capwatch.drift.novice import LEARNING
from capwatch.drift.rebase import Rebased, shift
from capwatch.drift.saved import save
from capwatch.drift.ticks import DAY, TICK_S, Ticks
from capwatch.keep.bundle import AXES, SIZE, Texts
from capwatch.keep.codec import pack, unpack
from capwatch.keep.past import Past

HISTORY: Final = 28 * DAY
"""Ticks: four weeks, of which the last two matter most."""
SHOWN: Final = DAY
"""Ticks of a new mix that are looked at …"""
ENOUGH: Final = 14 * DAY
"""… and after so many the time before it is not needed any more."""
SAME: Final = 1e-4
"""Costs that differ by less were summed with the same rates."""
LOWEST: Final = 19
"""Priority: what else the machine has to do comes first."""


@dataclass
class Learnable:
    """What of a pool's history may be learnt: neither time of an alarm, nor what was summed with other rates."""

    past: Past
    pool: str
    settings: Settings
    alarmed: Sequence[tuple[float, float]] = ()
    """(first, last) ticks of drifts that are not the new normal."""
    parent: int = 0
    """Who wants to know; 0: nobody who could go away."""
    texts: Texts = field(default_factory=Texts)
    recent: Ticks = field(default_factory=Ticks.empty)
    """What the history does not have yet."""

    @property
    def span(self) -> tuple[int, int]:
        """First tick and the one after the last, about."""
        first, last = self.past.tick_span(self.pool)
        return (first, max(last, int(self.recent.tick[-1]) + 1)) if len(self.recent) else (first, last)

    def add(self, recent: Sequence[Any], texts: Mapping[str, Sequence[str]]) -> None:
        """Take ticks that the history does not have yet, their names as places in lists of texts."""
        tick, *codes, sums = recent
        named = [self.texts.codes(axis, texts[axis])[column] for axis, column in zip(AXES, codes, strict=True)]
        _, last = self.past.tick_span(self.pool)
        kept = self.past.ticks(self.pool, last - SIZE, last, self.texts)
        ticks = Ticks(tick, named[0], named[1], named[2], sums)
        self.recent = ticks.between(int(kept.tick[-1]) + 1, 1 << 60) if len(kept) else ticks

    def between(self, first: int, last: int) -> Ticks:
        """See `capwatch.drift.history.History`."""
        if self.parent and os.getppid() != self.parent:
            raise SystemExit("nobody waits for this any more")
        ticks = self.past.ticks(self.pool, first, last, self.texts)
        if len(self.recent) and last > self.recent.tick[0]:
            ticks = Ticks.join([ticks, self.recent.between(first, last)])
        cost = ticks["computed"] / self.settings.prefill_rate + ticks["output"] / self.settings.decode_rate
        good = np.abs(ticks["cost"] - cost) <= SAME * cost
        for begin, end in self.alarmed:
            good &= (ticks.tick < begin) | (ticks.tick >= end)
        return ticks if good.all() else ticks.take(good)


def alarmed(events: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """(first, last) ticks of drifts that were not accepted; those still active have no end.

    What the wide rule of a short history found is usual for all it knows, a busy hour of the day perhaps.
    """
    spans = []
    open_since: dict[str, float] = {}
    for event in events:
        way = event["direction"]
        if event["event"] == "raised" and not event.get("note", "").startswith(LEARNING):
            open_since.setdefault(way, event["started_at"] // TICK_S)
        elif (
            event["event"] == "cleared"
            and (begin := open_since.pop(way, None)) is not None
            and event.get("note") != "accepted"
        ):
            spans.append((begin, event["at"] / TICK_S))
    return spans + [(begin, np.inf) for begin in open_since.values()]


def accepted(events: Sequence[Mapping[str, Any]]) -> list[int]:
    """Ticks from which on a new mix held that was accepted, in order; those accepted together are one."""
    since: dict[str, int] = {}
    found: dict[float, int] = {}
    for event in events:
        way = event["direction"]
        if event["event"] == "raised":
            since[way] = int(event["started_at"] // TICK_S)
        elif (begin := since.pop(way, None)) is not None and event.get("note") == "accepted":
            found[event["at"]] = min(begin, found.get(event["at"], begin))
    return sorted(found.values())


def rebased(history: History, first: int, last: int, changes: Sequence[int], settings: Settings) -> tuple[History, int]:
    """A history as if all changes had always been, and its first tick; see `capwatch.drift.rebase`.

    What is before a change counts no more when two weeks have come after it, or when it is too little to tell.
    """
    for place, begin in enumerate(changes):
        if not first < begin < last:
            continue
        end = min([last, begin + SHOWN, *changes[place + 1 : place + 2]])
        change = None if last - begin >= ENOUGH else shift(history, first, begin, end, settings)
        if change is None:
            first = begin
        else:
            history = Rebased(history, change)
    return history, first


def learn(past: Past, job: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the history teaches for a job of `capwatch.drifting.watch.Drifting`; None where it is too short."""
    settings = Settings(**job["settings"])
    told = {(one["at"], one["direction"], one["event"]): one for one in past.events(0.0, np.inf, job["pool"])}
    told |= {(one["at"], one["direction"], one["event"]): one for one in job["events"]}
    events = [told[key] for key in sorted(told)]
    kept = Learnable(past, job["pool"], settings, alarmed(events), job.get("parent", 0))
    kept.add(job["recent"], job["texts"])
    first, last = kept.span
    until = job["until"] or last
    first, last = max(first, until - HISTORY), min(last, until)
    history, first = rebased(kept, first, last, accepted(events), settings)
    found = reach(history, first, last)
    if found is None:
        return None
    model = fit_span(history, *found, settings)
    return {"model": save(model), "texts": kept.texts.texts, "settings": asdict(settings), "until": until}


def main() -> None:
    """Do one job."""
    job = unpack(sys.stdin.buffer.read())
    if not job.get("hurry"):
        with suppress(OSError):  # a sandbox may forbid even to be modest
            os.nice(LOWEST)
    with closing(Past(job["folder"])) as past:
        found = learn(past, job)
    sys.stdout.buffer.write(pack(found))


if __name__ == "__main__":
    main()
