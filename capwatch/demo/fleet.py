"""Replicas that serve requests first come first served, with a bounded number of slots and a bounded KV cache.

The model: a replica does one replica-second of work a second, a quarter of it in each of its four slots, so a request
occupies a slot for four times its cost and utilisation is λ·cost/replicas, as in the capacity texts. One line forms
for all replicas. The first in it is taken up as soon as a replica has a free slot and room in its KV cache for the
prompt; of several the one that holds the fewest tokens. Until then it waits, and so does everybody behind it.

Preemption: where the sequences of a replica, grown to their ends, will not fit its KV cache, the one taken up last
loses its place once and computes its prompt anew. (Simpler than the engine, which does so when and as often as it
happens; it takes place in saturation only.)
"""

from __future__ import annotations

import heapq

import numpy as np

from capwatch.demo.draw import LIMIT, Rows
from capwatch.demo.workload import KV_TOKENS, REPLICAS, SLOTS


class Fleet:
    """The state of all replicas between two calls."""

    def __init__(self) -> None:
        self._running: list[tuple[float, int, int, int]] = []
        """A heap of (end, replica, prompt tokens, all tokens)."""
        self._busy = [0] * REPLICAS
        self._prompts = [0] * REPLICAS
        self._tokens = [0] * REPLICAS
        self._last = 0.0
        """When the latest request was taken up: nobody overtakes."""

    def serve(self, rows: Rows) -> Rows:
        """Give requests, by arrival and later than all before, to replicas; sets replica, queue and preemptions."""
        replica, queue = rows.replica.copy(), rows.queue.copy()
        decode, preempted = rows.decode.copy(), rows.preempted.copy()
        at = rows.arrived + rows.gateway
        prompt = rows.computed + rows.cached
        for row in np.flatnonzero(rows.fate != LIMIT).tolist():
            place, start = self._place(float(at[row]), int(prompt[row]))
            whole = int(prompt[row] + rows.output[row])
            if self._tokens[place] + whole > KV_TOKENS and self._busy[place]:
                preempted[row] = 1
                decode[row] += rows.prefill[row]
            end = start + float(rows.prefill[row] + decode[row])
            heapq.heappush(self._running, (end, place, int(prompt[row]), whole))
            self._take_up(place, 1, int(prompt[row]), whole)
            replica[row], queue[row], self._last = place, start - at[row], start
        return Rows(
            *(rows.number, rows.arrived, rows.kind, rows.tenant, rows.computed, rows.cached, rows.output, rows.fate),
            *(replica, rows.gateway, queue, rows.prefill, decode, preempted),
        )

    def _place(self, at: float, prompt: int) -> tuple[int, float]:
        """Who takes a request up, and when."""
        start = max(at, self._last)
        while True:
            while self._running and self._running[0][0] <= start:
                self._leave()
            free = [
                (self._prompts[one], one)
                for one in range(REPLICAS)
                if self._busy[one] < SLOTS and (self._prompts[one] + prompt <= KV_TOKENS)
            ]
            if free:
                return min(free)[1], start
            start = self._running[0][0]

    def _leave(self) -> None:
        _, place, prompt, whole = heapq.heappop(self._running)
        self._take_up(place, -1, -prompt, -whole)

    def _take_up(self, place: int, sequences: int, prompt: int, whole: int) -> None:
        self._busy[place] += sequences
        self._prompts[place] += prompt
        self._tokens[place] += whole
