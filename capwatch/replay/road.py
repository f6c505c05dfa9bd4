"""Replay: the same road as the daemon's, over finished files; the clock comes from the records.

Several files are merged by event time, so that time runs forward over rotated files and sources.
"""

from __future__ import annotations

import heapq
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np

from capwatch.config.schema import Config, Source
from capwatch.dialect import PIECE, Decoded
from capwatch.errors import UsageError
from capwatch.eventclock import FUTURE_S
from capwatch.ledger import Totals
from capwatch.meters import fill_history
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.replay.files import UNREADABLE, blocks, opened
from capwatch.replay.notes import notes
from capwatch.seen import Meter
from capwatch.sourcing import decoder_for, engine_of

BLOCK: Final = 8 << 20
"""Bytes decoded at once: about 11,000 lines, enough that array code is cheap."""
MANY: Final = 8
"""With more files than this open at once, blocks are smaller, so that memory stays bounded."""
PER_DELTA: Final = 1 << 26
"""Bytes read until the totals take them over."""
MERGE_S: Final = 10.0
"""Files are merged in steps of this event time: less than a slice of the window, so that nothing is late by merging."""
MERGE_STEP_S: Final = 60.0
"""Where whoever asks looks at longer steps alone, a fifth of the window: still far from late, in fewer parts."""


@dataclass(frozen=True, slots=True)
class Log:
    """A file to replay, and the source it belongs to."""

    path: str
    source: Source
    counts: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """What a file tells between two multiples of the step of merging."""

    number: int
    """Multiple of the step at which it ends, itself included."""
    begins: float
    origin: Origin
    length: int
    decoded: Decoded


def replay(
    config: Config,
    logs: Sequence[Log],
    now: float,
    *,
    step: float | None = None,
    kept: bool = False,
    shown: bool = True,
    secret: bytes = b"",
    also: Sequence[Meter] = (),
) -> Iterator[tuple[Pipeline, Totals, int]]:
    """Read files to their end; now and then yield the pipeline, the totals so far and the bytes read so far.

    Args:
        config: the effective configuration.
        logs: the files; their order does not matter.
        now: a time (s, epoch) that no record can be later than: one more than five minutes ahead of it counts in
            totals only.
        step: where given, yield at every multiple of it that the event clock passes, with all that happened until
            then and nothing that happened later.
        kept: whether a history is kept, so that closed slots wait in the totals for the caller; see also `Pipeline`.
        shown: whether anybody looks at the metrics; if not, only what a history is made of is measured.
        secret: see `Pipeline`.
        also: meters beside those of the shelf.

    Raises:
        UsageError: a file cannot be read.
    """
    pipeline = Pipeline(config, kept=kept, secret=secret)
    pipeline.meters = [*pipeline.meters, *also]
    pipeline.drifts.marks.recall(notes(config))
    totals = pipeline.totals(shown=shown)
    if not shown:
        pipeline.meters = fill_history(pipeline.meters)
    done = pending = last = 0
    for part in _merged(config, logs, now, step):
        if step is not None:
            moments = _moments(pipeline.clock, part.begins, step, last)
            if moments:
                _hand_over(pipeline, totals, kept=kept)
            for moment in moments:
                totals.advance(moment * step)
                yield pipeline, totals, done
                last = moment
        elif pending >= PER_DELTA:
            pending = 0
            _hand_over(pipeline, totals, kept=kept)
            yield pipeline, totals, done
        pipeline.take(part.origin, part.decoded, now)
        done += part.length
        pending += part.length
    if not pipeline.clock:
        pipeline.tick(now)  # only engines have told anything, so the clock is theirs
    _hand_over(pipeline, totals, kept=kept)
    yield pipeline, totals, done


def _hand_over(pipeline: Pipeline, totals: Totals, *, kept: bool) -> None:
    """Let the totals take over what was read."""
    totals.apply(pipeline.freeze())
    if not kept:
        totals.kept(len(totals.closed))  # there is no history that waits for them


def told_until(config: Config, logs: Sequence[Log], wall: float) -> float:
    """When (s, epoch) the logs were last written, after which they tell of nothing; at most ``wall``.

    It is the newest time of the files, unless what that file tells is newer: it was copied without its time.
    """
    at, log = max(((os.path.getmtime(log.path), log) for log in logs), key=itemgetter(0))
    decoder = decoder_for(log.source, config.limits.line_bytes)
    with suppress(*UNREADABLE), opened(log.path) as stream:
        for _, lines, _, _ in islice(blocks(stream, PIECE, config.limits.line_bytes), 1):
            told = decoder.decode(lines, at).batch.event_at
            if len(told) and np.median(told) > at + FUTURE_S:
                return wall
    return min(at, wall)


def _moments(clock: float, until: float, step: float, last: int) -> range:
    """The multiples of ``step`` from ``clock`` on, behind the ``last`` one and before ``until``; none at the start."""
    return range(max(math.ceil(clock / step), last + 1), math.ceil(until / step)) if clock else range(0)


def _merged(config: Config, logs: Sequence[Log], now: float, step: float | None) -> Iterator[_Part]:
    """The parts of all files by event time."""
    # What happened in the same step has an order, too: what only adds to requests comes before they are counted.
    ordered = sorted(logs, key=attrgetter("counts", "path"))
    size = BLOCK if len(logs) <= MANY else BLOCK // MANY
    every = step or math.inf
    if len(logs) > 1 and every > MERGE_S:
        every = MERGE_S if step is None else step / math.ceil(step / MERGE_STEP_S)
    return heapq.merge(*(_stream(config, log, size, now, every) for log in ordered), key=attrgetter("number"))


def _stream(config: Config, log: Log, size: int, now: float, every: float) -> Iterator[_Part]:
    """The parts of one file in order."""
    origin = Origin(log.source.name, log.source.pool, engine_of(log.source, log.path), log.counts)
    clock = 0.0
    for length, decoded in _decoded(config, log, size):
        for number, (begins, part) in enumerate(_parts(decoded, every, clock, now)):
            clock = begins
            yield _Part(math.ceil(clock / every), clock, origin, 0 if number else length, part)


def _parts(decoded: Decoded, every: float, clock: float, now: float) -> Iterator[tuple[float, Decoded]]:
    """Cut what was decoded behind each multiple of ``every`` that its event clock passes; each part with its begin.

    Lines that tell of no event go with the first part.
    """
    lines = np.array([*decoded.lines.tolist(), *(line for line, _ in decoded.samples)], np.int64)
    at = np.array([*decoded.batch.event_at.tolist(), *(sample.at or 0.0 for _, sample in decoded.samples)], np.float64)
    if not len(lines) or math.isinf(every):
        yield clock, decoded
        return
    order = np.argsort(lines, kind="stable")
    at = np.where(at > now + FUTURE_S, 0.0, at)[order]
    running = np.maximum.accumulate(np.maximum(at, clock))
    cuts = np.flatnonzero(np.diff(np.ceil(running / every))) + 1
    firsts, place = np.unique(lines[order][cuts], return_index=True)
    edges = [0, *firsts.tolist(), int(lines.max()) + 1]
    begins = running[[0, *cuts[place].tolist()]].tolist()
    for number, (first, end) in enumerate(pairwise(edges)):
        yield begins[number], _between(decoded, first, end, whole=number == 0)


def _between(decoded: Decoded, first: int, end: int, *, whole: bool) -> Decoded:
    """What stands on the lines from ``first`` to before ``end``; with the lines that tell nothing where ``whole``."""
    begin, behind = np.searchsorted(decoded.lines, (first, end)).tolist()
    lines = decoded.lines[begin:behind]
    samples = [one for one in decoded.samples if first <= one[0] < end]
    counted = len({*lines.tolist(), *(line for line, _ in samples)})
    return replace(
        decoded,
        batch=decoded.batch.take(np.arange(begin, behind)),
        lines=lines,
        samples=samples,
        reached=[one for one in decoded.reached if first <= one[0] < end],
        read=counted + (decoded.read - decoded.counted) * whole,
        counted=counted,
        skipped=decoded.skipped * whole,
        dropped=decoded.dropped if whole else Counter(),
    )


def _decoded(config: Config, log: Log, size: int) -> Iterator[tuple[int, Decoded]]:
    """A file's blocks: bytes read, and what they tell."""
    decoder = decoder_for(log.source, config.limits.line_bytes)
    try:
        near = os.stat(log.path).st_mtime
        with opened(log.path) as stream:
            pieces = _Pieces(blocks(stream, PIECE, config.limits.line_bytes), size)
            while pieces.begin():
                decoded = decoder.decode(pieces, near)
                _drop(decoded, "too_long", pieces.too_long)
                yield pieces.length, decoded
            opens = decoder.expire(math.inf)
            if opens.read:
                yield 0, opens
            if pieces.cut:
                decoded = decoder.decode(pieces.cut, near)
                if decoded.dropped["malformed"]:
                    decoded.dropped = Counter({"partial": 1})
                yield 0, decoded
    except UNREADABLE as error:
        raise UsageError(f"{log.path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


class _Pieces:
    """The next pieces of a file, read while they are decoded: never a block in memory, let alone a file."""

    def __init__(self, pieces: Iterator[tuple[int, bytes, int, bool]], size: int) -> None:
        self._pieces = pieces
        self._size = size
        self._next = next(pieces, None)
        self.length = 0
        """Bytes read for this block."""
        self.too_long = 0
        self.cut = b""
        """The last line of the file, where it has no end."""

    def begin(self) -> bool:
        """Begin a block; False where the file has ended."""
        self.length = self.too_long = 0
        return self._next is not None

    def __iter__(self) -> Iterator[bytes]:
        while self._next is not None and self.length < self._size:
            length, data, too_long, whole = self._next
            self._next = next(self._pieces, None)
            self.length += length
            self.too_long += too_long
            if whole:
                yield data
            else:
                self.cut = data


def _drop(decoded: Decoded, reason: str, lines: int) -> None:
    if lines:
        decoded.dropped[reason] += lines
        decoded.read += lines
