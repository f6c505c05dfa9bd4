"""vLLM's server log: periodic statistics, KV capacity and preemptions of V0 and V1 engines.

Program: vLLM 0.2 to 0.32, `vllm serve` or the OpenAI API server.
Switched on: by default; `--disable-log-stats` takes it away, and several API servers print no statistics at all.
Example: (APIServer pid=31) INFO 10-05 08:31:10 [loggers.py:366] Engine 000: Avg prompt throughput: 2048.4 tokens/s,
Avg generation throughput: 260.0 tokens/s, Running: 10 reqs, Waiting: 0 reqs, GPU KV cache usage: 14.2%
Units: tokens/s, whole requests, percent; times are process local, `MM-DD HH:MM:SS` without year and zone. Lines may be
coloured, carry the process before the level or before JSON (`asctime`, `message`), or be somebody else's.
A start is told from the version on: weights, KV cache, ready (by the line before, where uvicorn says it without a
time), and the first statistics with output tokens, which come up to 10 s after the first request.
An idle engine prints one line of zeros and then nothing, so silence is no news.
Missing: single requests; they have no usable line.
"""

from __future__ import annotations

import json
import re
from math import log2
from typing import Any, Final, NamedTuple, cast

from capwatch.dialect import Drop, Format, Options, Skip, Verdict
from capwatch.dialect.colour import plain
from capwatch.dialect.path import first
from capwatch.dialect.starts import LAST, Starts
from capwatch.dialect.statistics import capacity, statistics, whole
from capwatch.dialect.value import REFUSED, text, time
from capwatch.dialect.yearless import yearless
from capwatch.record import EngineSample

BLOCK_TOKENS: Final = 16
"""vLLM's default KV block. V0 and early V1 print blocks alone; the line after them corrects another size."""
MOST_PROCESSES: Final = 64
"""Processes whose last preemption count is remembered; more than a node has engines."""
FIRST: Final = "0"
"""The index of an engine that names none."""
PHASES: Final = {
    "Loading weights took ": "weights",
    "Model loading took ": "weights",
    "Starting vLLM server on ": "ready",
    "Starting vLLM API server ": "ready",
    "Application startup complete.": "ready",
}
"""Words of a start, and the phase that it has come to with them; the last of several counts."""
REQUEST_LOGGERS: Final = frozenset({"logger.py", "request_logger.py"})
"""Files that print what clients wrote: nothing in their lines is believed, each continued line has the full prefix."""

_PROCESS = re.compile(r"\(([^()]*) pid=(\d+)\)\s*", re.ASCII)
_PREFIX = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d-\d\d \d\d:\d\d:\d\d) \[?(?:[\w.-]*/)*([\w.-]+):\d+\] ?", re.ASCII
)
_JSON_LOG = re.compile(r'\{\s*"(?:asctime|levelname|message|name|timestamp)"')
_START = re.compile(r"vLLM (?:API )?server version |Initializing an? (?:V\d )?LLM engine ", re.ASCII)

_BANNER = re.compile(r"[ ▀-▟]+version \d")
_RANK = re.compile(r"(?:DP|EngineCore_)(\d{1,4})(?!\d)", re.ASCII)
_BLOCKS = re.compile(r"# \w+ blocks: (\d{1,12})\b", re.ASCII)
_CONCURRENCY = re.compile(r"Maximum concurrency for (\d[\d,]{0,15}) tokens per request: (\d{1,12}\.\d+)x", re.ASCII)
_PREEMPTED = re.compile(r"total\w{0,30}preemption\w{0,30}=(\d{1,12})\.?", re.ASCII)
_V0_PREFIX = re.compile(r"Prefix cache hit rate: GPU: (\d{1,3}\.\d+)%", re.ASCII)


class _Said(NamedTuple):
    """A log message without what is printed around it."""

    message: str
    at: float | None
    """Seconds since the epoch; None where the line has no time, `REFUSED` where it has a broken one."""
    file: str
    process: str
    pid: str


class Lines:
    """Reads one line at a time; remembers preemption counts, starts not told yet, and KV blocks of unknown size."""

    def __init__(self, options: Options) -> None:
        self._zone = options.zone
        self._preempted: dict[str, int] = {}
        self._started: set[str] = set()
        self._starts = Starts()
        self._clock: float | None = None
        self._blocks = 0

    def read(self, line: str, near: float) -> Verdict:
        """One line is at most one sample."""
        said = self._strip(plain(line), near)
        if isinstance(said, Skip | Drop):
            return said
        if said.file in REQUEST_LOGGERS:
            return Skip("request line")
        if said.at is not None and said.at != REFUSED:
            self._clock = said.at
        if _START.match(said.message) or _BANNER.match(said.message):
            return self._begin(said)
        verdict = self._understand(said)
        if not isinstance(verdict, EngineSample):
            phase = next((phase for words, phase in PHASES.items() if words in said.message), "")
            return self._starts.reach(phase, self._clock, verdict) if phase else verdict
        if said.at is None or said.at == REFUSED:
            return Drop("bad_time")
        verdict.at = said.at
        engine = verdict.engine or FIRST
        if engine in self._started:
            self._started.remove(engine)
            verdict.starts = 1.0
        if verdict.kv_capacity_tokens is not None:
            return self._starts.reach("kv_cache", said.at, verdict)
        good = self._starts.ready and verdict.output_tokens_per_s
        return self._starts.reach(LAST, said.at, verdict) if good else verdict

    def _begin(self, said: _Said) -> Verdict:
        """Several lines speak of one start: that of the server is the first, those of its engines follow."""
        if _START.match(said.message):
            self._preempted.clear()
            self._started.add(_rank(said.process) or FIRST)
        if self._starts.open and said.message.startswith("Initializing "):
            return Skip("start of an engine")
        return self._starts.begin(self._clock if said.at is None else said.at)

    def _strip(self, line: str, near: float) -> _Said | Skip | Drop:
        """Take off process, level, time and file, or the JSON around a message."""
        process = _PROCESS.match(line)
        name, pid = process.groups() if process else ("", "")
        rest = line[process.end() :] if process else line
        if rest.startswith("{"):
            return self._json(rest, name, pid)
        prefix = _PREFIX.search(rest)
        if prefix:
            return _Said(rest[prefix.end() :], yearless(prefix[1], self._zone, near), prefix[2], name, pid)
        return _Said(rest, None, "", name, pid)

    def _json(self, line: str, name: str, pid: str) -> _Said | Skip | Drop:
        try:
            found = cast("object", json.loads(line))
        except ValueError:
            return Drop("malformed", "broken JSON") if _JSON_LOG.match(line) else Skip("other output")
        message = first(found, "message", "msg")
        if not isinstance(message, str):
            return Skip("other output")
        at = time(first(found, "asctime", "timestamp", "time", "created"), self._zone)
        file = text(first(found, "filename")) or ""
        process = text(first(found, "vllm_process_name", "processName")) or name
        return _Said(message, at, file, process, text(first(found, "process")) or pid)

    def _understand(self, said: _Said) -> Verdict:
        """The sample in a message; its time is not set yet."""
        message = said.message.rstrip()
        if told := statistics(message):
            return told
        if told := capacity(message):
            if isinstance(told, EngineSample):
                told.engine = _rank(said.process)
            return told
        if blocks := _BLOCKS.match(message):
            self._blocks = int(blocks[1])
            return self._capacity(said, self._blocks * BLOCK_TOKENS)
        if (concurrency := _CONCURRENCY.match(message)) and self._blocks:
            return self._other_block_size(said, whole(concurrency[1]) * float(concurrency[2]))
        if message.startswith("Sequence group ") and " is preempted by " in message:
            return self._preemptions(said, message)
        if hits := _V0_PREFIX.match(message):
            return EngineSample(prefix_hit_ratio=float(hits[1]) / 100)
        return Skip("no statistics")

    def _capacity(self, said: _Said, tokens: int) -> EngineSample:
        return EngineSample(engine=_rank(said.process), kv_capacity_tokens=float(tokens))

    def _other_block_size(self, said: _Said, tokens: float) -> Verdict:
        """Sharpen the capacity by what fits at once: block sizes are powers of two, the product tells which."""
        blocks, self._blocks = self._blocks, 0
        size = 2 ** round(log2(max(1.0, tokens / blocks)))
        return Skip("block size as assumed") if size == BLOCK_TOKENS else self._capacity(said, blocks * size)

    def _preemptions(self, said: _Said, message: str) -> Verdict:
        """The number is cumulative in its process; the first one seen tells of one event at least."""
        found = _PREEMPTED.search(message)
        if not found or found.end() != len(message):
            return Drop("malformed", "preemption without its number")
        total = int(found[1])
        before = self._preempted.pop(said.pid, total - 1)
        self._preempted[said.pid] = total
        if len(self._preempted) > MOST_PROCESSES:
            del self._preempted[next(iter(self._preempted))]
        return EngineSample(preemptions=float(total - before if total >= before else total))

    def save(self) -> object:
        """Preemption counts by process, engines whose start is not told yet, KV blocks of unknown size."""
        return [dict(self._preempted), sorted(self._started), self._blocks, self._starts.save(), self._clock]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        preempted, started, self._blocks, *more = cast("tuple[dict[str, int], list[str], int, *tuple[Any, ...]]", saved)
        if more:  # an older state has none
            self._starts.load(more[0])
            self._clock = more[1]
        self._preempted, self._started = dict(preempted), set(started)


def _rank(process: str) -> str | None:
    """The data-parallel rank in the name of a process: the index of its engine."""
    rank = _RANK.search(process)
    return str(int(rank[1])) if rank else None


FORMAT = Format(name="vllm", kind="engine", title="vLLM server log (V0, V1)", reader=Lines, mappable=False)
