"""The fleet: what each engine replica last told, and how old that is. A value older than its patience is withdrawn.

Busy, idle and unknown are three states: an engine known to be silent is not one that nobody hears of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from capwatch.metrics import ENGINE_STATES
from capwatch.record import EngineSample

PATIENCE_S: Final = 60.0
"""For logs: engines print their statistics every 5 or 10 s while they work, and fall silent after one idle line."""
GAUGES: Final = (
    "running",
    "waiting",
    "kv_utilisation",
    "kv_capacity_tokens",
    "prefix_hit_ratio",
    "prompt_tokens_per_s",
    "output_tokens_per_s",
)
"""Fields of a sample that hold until the next one."""
LASTING: Final = frozenset({"kv_capacity_tokens"})
"""Told once at the start, and true until the next start."""
RETIRE_S: Final = 7 * 86400.0
"""A replica that was silent so long is gone, like names of requests (contract, section 5): rollouts bring new ones."""
HOLDS_S: Final = 300.0
"""What a replica that is asked told holds for so long at most where sums over time are made of it."""
LOST_S: Final = 900.0
"""A replica whose log falls silent in the middle of work is gone after so long; logs are read apart by less."""
MOST: Final = 10_000
"""Replicas known at once, as many as a configuration can name; more come from hostile logs alone, and are not heard."""


class Replica(msgspec.Struct, array_like=True):
    """One engine replica as it last was; None is not told, or withdrawn."""

    at: float
    """s, epoch, of the last sample; 0 before the first."""
    patience: float
    """Seconds until its values are withdrawn; infinite where whoever asks the engine says so."""
    state: str
    values: dict[str, float]
    working: bool = False
    """Whether it had work when it told of it last."""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """What changed of one replica."""

    pool: str
    engine: str
    replica: Replica
    at: float
    """s, epoch: when it was heard, or was last."""
    preemptions: float = 0.0
    restarts: float = 0.0
    seconds: float = 0.0
    """Since it was heard before, while that holds."""
    held: Mapping[str, float] = field(default_factory=dict)
    """What it had told before, which held for so long."""
    came: bool = False
    left: bool = False


class Fleet:
    """All replicas by (pool, engine). Plain values: `save` and `load`."""

    def __init__(self) -> None:
        self._replicas: dict[tuple[str, str], Replica] = {}
        self._changed: set[tuple[str, str]] = set()
        self._heard: set[tuple[str, str]] = set()
        """Those heard by this very process: after a restart one of which nothing was read yet is not lost."""

    def hear(
        self,
        pool: str,
        engine: str,
        sample: EngineSample | None,
        *,
        patience: float = PATIENCE_S,
        state: str | None = None,
    ) -> News | None:
        """Take in a sample whose `at` is set.

        Args:
            pool: of the engine.
            engine: the replica's label.
            sample: None where its source says that nothing is known any more.
            patience: seconds until its values are withdrawn.
            state: what the source says; otherwise busy while it has requests or moves tokens, else idle.

        Returns:
            What changed; None where that is nothing.
        """
        known = self._replicas.get((pool, engine))
        if sample is None or sample.at is None:
            return self._withdraw(pool, engine, known, lost=known.state != "unknown") if known else None
        if known is None and len(self._replicas) >= MOST:
            return None
        told = {name: value for name in GAUGES if (value := getattr(sample, name)) is not None}
        preemptions, starts = sample.preemptions or 0.0, sample.starts or 0.0
        came = known is None or not known.at
        if known is None or came:
            known = self._replicas[pool, engine] = Replica(sample.at, patience, "unknown", {})
            starts = 0.0  # a start is a restart only of an engine that was known
        elif sample.at < known.at:
            return News(pool, engine, known, sample.at, preemptions, starts)
        self._changed.add((pool, engine))
        self._heard.add((pool, engine))
        seconds, held = 0.0 if starts else _since(known, sample.at, patience), dict(known.values)
        came, known.lost = came or known.lost, False
        known.at, known.patience = sample.at, patience
        if starts:
            known.values = {}
        known.values |= told
        if told.keys() - LASTING or state is not None:
            known.state = state or _state(known.values)
            known.working = known.state == "busy"
        return News(pool, engine, known, sample.at, preemptions, starts, seconds, held, came)

    def live(self, pool: str) -> int:
        """How many replicas of a pool are heard of."""
        return sum(of == pool and replica.state != "unknown" for (of, _), replica in self._replicas.items())

    def expect(self, engines: Iterable[tuple[str, str]]) -> list[News]:
        """Know nothing of these (pool, engine), which are about to be asked; nor of any that was asked before."""
        asked = {key: replica for key, replica in self._replicas.items() if replica.patience == math.inf}
        for replica in asked.values():
            replica.patience = PATIENCE_S  # nobody asks it any more, so that it may retire
        for key in engines:
            asked[key] = self._replicas.setdefault(key, Replica(0.0, math.inf, "unknown", {}))
            asked[key].patience = math.inf
        return [self._withdraw(*key, replica) for key, replica in asked.items()]

    def expire(self, clock: float) -> list[News]:
        """Withdraw what is too old at this event time (s, epoch)."""
        found = []
        for key, replica in self._replicas.items():
            silent = clock - replica.at
            lost = replica.working and not replica.lost and silent > LOST_S and replica.patience < math.inf
            lost = lost and key in self._heard
            if lost or (replica.state != "unknown" and silent > replica.patience):
                found.append(self._withdraw(*key, replica, lost=lost))
        return found

    def retire(self, clock: float) -> set[str]:
        """Forget replicas that have been silent for seven days of event time (s, epoch), those apart that are asked.

        The names that no replica bears any more.
        """
        gone = [
            key
            for key, replica in self._replicas.items()
            if replica.patience < math.inf and clock - replica.at > RETIRE_S
        ]
        for key in gone:
            del self._replicas[key]
            self._changed.add(key)
            self._heard.discard(key)
        return {engine for _, engine in gone} - {engine for _, engine in self._replicas}

    def _withdraw(self, pool: str, engine: str, replica: Replica, *, lost: bool = False) -> News:
        self._changed.add((pool, engine))
        replica.state, replica.lost = "unknown", replica.lost or lost
        replica.values = {name: value for name, value in replica.values.items() if name in LASTING}
        return News(pool, engine, replica, replica.at, left=lost)

    def news(self) -> list[object]:
        """Replicas that changed since the last call, as plain builtins; None for one that is gone."""
        changed, self._changed = self._changed, set()
        return [[*key, msgspec.to_builtins(self._replicas.get(key))] for key in sorted(changed)]

    def absorb(self, news: Iterable[Any]) -> None:
        """Remember what `news` gave elsewhere."""
        for pool, engine, replica in news:
            self._replicas.pop((pool, engine), None)
            if replica is not None:
                self._replicas[pool, engine] = msgspec.convert(replica, Replica)
        self._changed = set()

    def save(self) -> list[object]:
        """Everything, as plain builtins."""
        return [[*key, msgspec.to_builtins(replica)] for key, replica in self._replicas.items()]

    def load(self, saved: Iterable[Any]) -> None:
        """Take over what `save` gave."""
        self._replicas = {(pool, engine): msgspec.convert(replica, Replica) for pool, engine, replica in saved}


def _since(known: Replica, at: float, patience: float) -> float:
    """Seconds for which a replica's values held until a time (s, epoch); 0 where they did not hold until then."""
    seconds = at - known.at
    return seconds if known.state != "unknown" and seconds <= min(patience, HOLDS_S) else 0.0


def _state(values: Mapping[str, float]) -> str:
    moving = ("running", "waiting", "prompt_tokens_per_s", "output_tokens_per_s")
    state = "busy" if any(values.get(name, 0) > 0 for name in moving) else "idle"
    assert state in ENGINE_STATES  # noqa: S101 - one spelling in catalogue and code
    return state
