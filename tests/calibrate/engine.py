"""A replica with continuous batching whose rates are known: requests wait, block each other, and share decode steps."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from capwatch.calibrate.windows import Observed
from capwatch.record import Floats


@dataclass(frozen=True)
class Engine:
    """What a replica does in how long; the truth that a calibration has to find.

    Attributes:
        prefill: computed prompt tokens/s alone.
        step: seconds of a decode step, whatever runs.
        sequence: seconds that each running sequence adds to it.
        slots: sequences at once.
        chunk: prompt tokens that a step takes along with the running sequences; 0: a prompt stops all others.
    """

    prefill: float = 4000.0
    step: float = 0.020
    sequence: float = 0.0006
    slots: int = 32
    chunk: int = 0

    def decode(self, running: float) -> float:
        """Output tokens/s in all, of so many sequences."""
        return running / (self.step + self.sequence * running)


@dataclass
class Served:
    """One request on its way through a replica."""

    at: float
    prompt: float
    output: int
    began: float = 0.0
    first: float = 0.0
    end: float = 0.0
    left: int = field(default=0)
    """Output tokens still to come."""


class _Replica:
    """One replica at work; `now` is its clock."""

    def __init__(self, engine: Engine, requests: Sequence[Served], workers: int) -> None:
        self.engine = engine
        self.now = 0.0
        self.coming = deque(requests)
        self.workers = workers
        self.ready: list[float] = [0.0] * min(workers, len(self.coming))
        """When workers may send, where requests follow each other."""
        self.running: list[Served] = []
        self.chunks: deque[tuple[Served, float]] = deque()
        """Prompts being computed beside the running sequences, and what is left of each."""
        self.done: list[Served] = []

    def next(self) -> float:
        """When the next request comes; never where none is to come."""
        if not self.coming or (self.workers and not self.ready):
            return math.inf
        return self.ready[0] if self.workers else self.coming[0].at

    def run(self) -> list[Served]:
        while self.coming or self.running or self.chunks:
            if not self.running and not self.chunks:
                self.now = max(self.now, self.next())
            while self.next() <= self.now and len(self.running) + len(self.chunks) < self.engine.slots:
                self.admit()
            self.step()
        return self.done

    def admit(self) -> None:
        one = self.coming.popleft()
        if self.workers:
            one.at = heapq.heappop(self.ready)
        one.began = self.now
        if self.engine.chunk:
            self.chunks.append((one, one.prompt))
        else:
            self.now += one.prompt / self.engine.prefill
            self.began_to_put_out(one)

    def began_to_put_out(self, one: Served) -> None:
        one.first, one.left = self.now, one.output - 1
        self.running.append(one)
        self.let_go()

    def let_go(self) -> None:
        for one in [one for one in self.running if not one.left]:
            one.end = self.now
            self.done.append(one)
            if self.workers:
                heapq.heappush(self.ready, self.now)
        self.running = [one for one in self.running if one.left]

    def step(self) -> None:
        """A token for each running sequence, and a chunk of prompts beside them."""
        fresh, worked = self.chunk()
        if self.running:
            self.now += self.engine.step + self.engine.sequence * len(self.running)
        self.now += worked / self.engine.prefill
        for one in self.running:
            one.left -= 1
        self.let_go()
        for one in fresh:
            self.began_to_put_out(one)

    def chunk(self) -> tuple[list[Served], float]:
        """Whose prompts are done with the next chunk, and its tokens."""
        room, fresh = float(self.engine.chunk), []
        while self.chunks and room > 0:
            one, left = self.chunks.popleft()
            if left == one.prompt:
                one.began = self.now
            taken = min(left, room)
            room -= taken
            if taken < left:
                self.chunks.appendleft((one, left - taken))
            else:
                fresh.append(one)
        return fresh, self.engine.chunk - room


def serve(engine: Engine, requests: Sequence[Served], workers: int = 0) -> list[Served]:
    """Serve requests in the order in which they come, and fill in their times.

    With ``workers`` that many clients send one request after the other, and `at` is set here.
    """
    return _Replica(engine, requests, workers).run()


def poisson(rate: float, n: int, seed: int, prompt: float = 1500.0, output: float = 100.0) -> list[Served]:
    """So many arrivals by chance, with lognormal lengths of these means (capacity text A: σ 0.79 and 0.85)."""
    draw = np.random.default_rng(seed)
    at = np.cumsum(draw.exponential(1 / rate, n))
    prompts = np.maximum(1, np.round(_lognormal(draw, prompt, 0.788, n)))
    outputs = np.maximum(1, np.round(_lognormal(draw, output, 0.845, n)))
    return [Served(float(t), float(p), int(o)) for t, p, o in zip(at, prompts, outputs, strict=True)]


def _lognormal(draw: np.random.Generator, mean: float, sigma: float, n: int) -> Floats:
    return draw.lognormal(np.log(mean) - sigma**2 / 2, sigma, n)


def observed(done: Sequence[Served], replica: int = 0) -> Observed:
    """What a log with the time to the first token tells of them."""
    columns = [[getattr(one, name) for one in done] for name in ("at", "first", "end", "prompt", "output")]
    return Observed.of(np.array(columns, np.float64), np.full(len(done), replica))
