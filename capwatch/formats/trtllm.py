"""TensorRT-LLM's log and its JSON statistics: requests at work, KV utilisation and capacity.

Program: TensorRT-LLM 0.1x to 1.3, `trtllm-serve` and the PyTorch back end.
Switched on: iteration lines by `print_iter_log: true`. Saved answers of `GET /metrics`, one list a line, are read too
(`enable_iter_perf_stats: true`); it hands each iteration out once, so that two who ask steal from each other: better
scrape `/prometheus/metrics`.
Example: [04/20/2026-05:14:22] [TRT-LLM] [RANK 0] [I] iter = 310, global_rank = 0, rank = 0, num_scheduled_requests =
21, kv_cache_util = 0.412, currank_total_requests = 8/8, timestamp = 2026-04-20 05:14:22, states = {…}
Units: whole requests, blocks, shares; times are process local, C++ lines have none and take that of the line before.
A start is told from `TensorRT-LLM inited` on: KV cache and ready, each at the time of the line before.
Of the ranks only rank 0 is taken: the others repeat it. An empty list, and silence, tell nothing.
Missing: single requests; the waiting ones in iteration lines; pauses, which no line tells.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, tzinfo
from typing import Final, cast

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.colour import plain
from capwatch.dialect.iterations import Iteration, iteration, statistic
from capwatch.dialect.starts import Starts
from capwatch.dialect.value import epoch
from capwatch.record import EngineSample

_PREFIX = re.compile(r"(?:\S{1,40} ?)?\[(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] \[", re.ASCII)
_NATIVE: Final = "[TensorRT-LLM]["
_CAPACITY = re.compile(r"for max tokens in paged KV cache (?:\((\d{1,15})\))?", re.ASCII)
_BUSY = re.compile(r"\biter = \d", re.ASCII)


class Lines:
    """Reads one line at a time; remembers the last iteration and clock time, and starts not told yet."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._starts = Starts()
        self._iteration = 0
        self._clock: float | None = None

    def read(self, line: str, near: float) -> Verdict:  # noqa: ARG002 - lines have their year
        """An iteration line is a sample; a list of statistics is one for each of its objects."""
        line = plain(line)
        if line.startswith("["):
            try:
                return self._poll(cast("object", json.loads(line)))
            except ValueError:
                if line.startswith("[{"):
                    return Drop("malformed", "broken JSON")
        prefix = _PREFIX.match(line)
        if prefix:
            self._clock = _clock(prefix[1], self._zone)
        if line.endswith("Application startup complete."):
            return self._starts.reach("ready", self._clock, Skip("other output"))
        if not prefix and _NATIVE not in line and not _BUSY.search(line):
            return Skip("other output")
        if "TensorRT-LLM inited" in line:
            self._iteration = 0
            return self._starts.begin(self._clock)
        if capacity := _CAPACITY.search(line):
            return self._capacity(capacity[1])
        found = iteration(line, self._zone)
        if isinstance(found, Iteration):
            return self._sample(found) or Skip("repeats another rank")
        return found or Skip("no statistics")

    def _poll(self, found: object) -> Verdict:
        """One answer of the endpoint: the iterations since the answer before."""
        if not isinstance(found, list):
            return Skip("other output")
        if found and not any(isinstance(one, dict) for one in found):
            return Skip("other output")
        samples: list[EngineSample] = []
        for one in found:
            told = statistic(one, self._zone)
            if isinstance(told, Drop):
                return told
            if sample := self._sample(told):
                samples.append(sample)
        return cast("Verdict", samples) if samples else Skip("nothing since the poll before")

    def _sample(self, told: Iteration) -> EngineSample | None:
        """The sample of the first rank; iterations that begin anew are those of a new process."""
        if told.rank:
            return None
        if told.number < self._iteration:
            self._starts.begin()
        self._iteration = told.number
        self._clock = told.sample.at
        return self._starts.tell(told.sample)

    def _capacity(self, tokens: str | None) -> Verdict:
        """Told twice: first a small pool for the estimate, then the real one, which replaces it."""
        if not tokens:
            return Drop("malformed", "capacity cut short")
        sample = self._starts.tell(EngineSample(at=self._clock, kv_capacity_tokens=float(tokens)))
        return self._starts.reach("kv_cache", self._clock, sample)

    def save(self) -> object:
        """Starts, the last iteration, and the last clock time."""
        return [self._starts.save(), self._iteration, self._clock]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        starts, self._iteration, self._clock = cast("tuple[object, int, float | None]", saved)
        self._starts.load(starts)


def _clock(text: str, zone: tzinfo) -> float | None:
    try:
        return epoch(datetime.strptime(text, "%m/%d/%Y-%H:%M:%S"), zone)  # noqa: DTZ007 - it has no zone
    except ValueError:
        return None


FORMAT = Format(
    name="trtllm", kind="engine", title="TensorRT-LLM log and JSON statistics (to 1.3)", reader=Lines, mappable=False
)
