"""The simulation in time: what has ended so far, and what the replicas say of themselves. Same seed, same run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from capwatch.demo.draw import Floats, Rows, draw
from capwatch.demo.fleet import Fleet
from capwatch.demo.workload import KV_TOKENS, RATE, REPLICAS, after, before

BLOCK_S: Final = 10.0
"""Requests are drawn for so long at once, each block from its own seed, so that no way of asking changes them."""
STATISTICS_S: Final = 10.0
"""Between two statistics of a replica, as vLLM prints them."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """What one replica says of the last ten seconds (rates) and of this moment (the rest)."""

    replica: int
    prompt_tokens_per_s: float
    output_tokens_per_s: float
    running: int
    waiting: int
    kv_share: float
    """Of the KV cache's tokens that are in use, 0..1."""
    hit_share: float
    """Of all prompt tokens so far that were in the prefix cache, 0..1."""


class Simulation:
    """The reference scenario from a moment on."""

    def __init__(self, scenario: str, seed: int, begin: float, change_after: float) -> None:
        """Nothing has happened yet.

        Args:
            scenario: one of `SCENARIOS`.
            seed: of all chance, ≥ 0.
            begin: when it begins, s since the epoch.
            change_after: how long after that the scenario's change comes, a multiple of `BLOCK_S`.
        """
        self.begin = begin
        self.change_at = begin + change_after
        """A multiple of `BLOCK_S` after the begin; may be moved while both times lie ahead of what was asked for."""
        self.seed = seed
        self.scenario = scenario
        self._fleet = Fleet()
        self._blocks = 0
        self._reached = begin
        self._rows = self._drawn()
        """Rows that have not ended, or have just now, as statistics need them."""
        self._hits = np.zeros((REPLICAS, 2))
        """Cached and all prompt tokens by replica."""

    def until(self, at: float) -> Rows:
        """The requests that have ended since the last call and up to a time (s, epoch), by their end."""
        fresh = [self._rows]
        while self.begin + self._blocks * BLOCK_S < at:
            fresh.append(self._drawn())
        rows = Rows.join(*fresh)
        ended = rows.ended
        done = np.flatnonzero((ended > self._reached) & (ended <= at))
        self._rows = rows.take(ended > at - STATISTICS_S)
        self._reached = max(self._reached, at)
        over = rows.take(done[np.argsort(ended[done], kind="stable")])
        for row, tokens in enumerate((over.cached, over.computed + over.cached)):
            served = over.replica >= 0
            self._hits[:, row] += np.bincount(over.replica[served], tokens[served], REPLICAS)
        return over

    def statistics(self, at: float) -> list[Statistic]:
        """What the replicas say at a time (s, epoch): that of the last `until`."""
        rows = self._rows.take(self._rows.replica >= 0)
        arrived, started, ended = rows.arrived + rows.gateway, rows.started, rows.ended
        answering = started + rows.prefill
        since = at - STATISTICS_S
        prompts = rows.computed * _share(started, answering, since, at)
        outputs = rows.output * _share(answering, ended, since, at)
        running = (started <= at) & (ended > at)
        so_far = np.where(ended > answering, (at - answering) / np.maximum(ended - answering, 1e-9), 1.0)
        held = np.where(running, rows.computed + rows.cached + rows.output * np.clip(so_far, 0.0, 1.0), 0.0)

        def sums(values: Floats) -> Floats:
            return np.bincount(rows.replica, values, REPLICAS).astype(np.float64, copy=False)

        columns = (
            sums(prompts) / STATISTICS_S,
            sums(outputs) / STATISTICS_S,
            sums(running.astype(np.float64)),
            sums(((arrived <= at) & (started > at)).astype(np.float64)),
            np.minimum(sums(held) / KV_TOKENS, 1.0),
            self._hits[:, 0] / np.maximum(self._hits[:, 1], 1.0),
        )
        return [
            Statistic(replica, prompt, output, int(busy), int(waiting), kv, hits)
            for replica, (prompt, output, busy, waiting, kv, hits) in enumerate(np.stack(columns, axis=1).tolist())
        ]

    def _drawn(self) -> Rows:
        """The requests of the next block, served."""
        begin = self.begin + self._blocks * BLOCK_S
        workload = (after if begin >= self.change_at else before)(self.scenario)
        generator = np.random.default_rng((self.seed, self._blocks))
        first = self._blocks << 20  # far more than a block has requests
        self._blocks += 1
        rows = draw(generator, workload, np.array([begin]), BLOCK_S, rates=np.array([RATE]), first=first)
        return self._fleet.serve(rows)


def _share(begin: Floats, end: Floats, since: float, until: float) -> Floats:
    """The part, 0..1, of each stretch that lies between two times."""
    inside = np.minimum(end, until) - np.maximum(begin, since)
    share: Floats = np.clip(inside / np.maximum(end - begin, 1e-9), 0.0, 1.0)
    return share
