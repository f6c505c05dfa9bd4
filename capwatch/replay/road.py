"""Replay: the same road as the daemon's, over finished files; the clock comes from the records.

Several files are merged by the event time of their blocks, so that time runs forward over rotated files and sources.
"""

from __future__ import annotations

import heapq
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import zstandard

from capwatch.config.schema import Config, Source
from capwatch.dialect import Decoded, Decoder
from capwatch.errors import UsageError
from capwatch.ledger import Totals
from capwatch.pipeline import FUTURE_S, Origin, Pipeline
from capwatch.replay.files import blocks, opened
from capwatch.sourcing import decoder_for

BLOCK: Final = 1 << 22
"""Bytes decoded at once: about 5,000 lines, enough that array code is cheap."""
MANY: Final = 8
"""With more files than this open at once, blocks are smaller, so that memory stays bounded."""
PER_DELTA: Final = 16
"""Blocks gathered before the totals take them over."""


@dataclass(frozen=True, slots=True)
class Log:
    """A file to replay, and the source it belongs to."""

    path: str
    source: Source
    counts: bool


def replay(
    config: Config, logs: Sequence[Log], now: float, *, step: float | None = None
) -> Iterator[tuple[Pipeline, Totals, int]]:
    """Read files to their end; now and then yield the pipeline, the totals so far and the bytes read so far.

    Args:
        config: the effective configuration.
        logs: the files.
        now: the wall clock (s, epoch): records more than five minutes ahead of it count in totals only.
        step: where given, yield at every multiple of it that the event clock passes, with all that came before and
            nothing that came after.

    Raises:
        UsageError: a file cannot be read.
    """
    pipeline = Pipeline(config, kept=False)
    totals = pipeline.totals()
    size = BLOCK if len(logs) <= MANY else BLOCK // MANY
    done = 0
    for number, (origin, length, decoded) in enumerate(_merged(config, logs, size), start=1):
        done += length
        if step is None:
            pipeline.take(origin, decoded, now)
            if number % PER_DELTA == 0:
                totals.apply(pipeline.freeze())
                yield pipeline, totals, done
            continue
        for begins, part in _parts(decoded, step, pipeline.clock, now):
            totals.apply(pipeline.freeze())
            for moment in _moments(totals.clock, begins, step):
                totals.advance(moment)
                yield pipeline, totals, done
            pipeline.take(origin, part, now)
    totals.apply(pipeline.freeze())
    yield pipeline, totals, done


def _moments(clock: float, until: float, step: float) -> Iterator[float]:
    """The multiples of ``step`` after ``clock`` and not after ``until``; none before the first event."""
    if clock:
        first = math.floor(clock / step) + 1
        yield from (number * step for number in range(first, math.floor(until / step) + 1))


def _parts(decoded: Decoded, step: float, clock: float, now: float) -> Iterator[tuple[float, Decoded]]:
    """Cut what was decoded where its event clock passes a multiple of ``step``; each part with the clock it begins at.

    Lines that are no request go with the first part.
    """
    event_at = decoded.batch.event_at
    event_at = np.where(event_at > now + FUTURE_S, 0.0, event_at)
    running = np.maximum.accumulate(np.maximum(event_at, clock)) if len(event_at) else event_at
    cuts = [0, *(np.flatnonzero(np.diff(running // step)) + 1).tolist(), len(running)]
    others = decoded.counted - len(set(decoded.lines.tolist()))
    for begin, end in pairwise(cuts):
        rows = np.arange(begin, end)
        lines = decoded.lines[begin:end]
        counted = len(set(lines.tolist()))
        part = replace(decoded, batch=decoded.batch.take(rows), lines=lines, read=counted, counted=counted, skipped=0)
        part.dropped = Counter()
        if begin == 0:
            part.counted += others
            part.read, part.skipped, part.dropped = (
                decoded.read - (decoded.counted - part.counted),
                decoded.skipped,
                decoded.dropped,
            )
        else:
            part.samples = []
        yield (float(running[begin]) if len(running) else clock), part


def _merged(config: Config, logs: Sequence[Log], size: int) -> Iterator[tuple[Origin, int, Decoded]]:
    """Decoded blocks of all files, whichever begins earliest next."""
    streams = ((log, _decoded(config, log, size)) for log in logs)
    heap: list[tuple[float, int, Log, tuple[int, Decoded], Iterator[tuple[int, Decoded]]]] = []
    for order, (log, stream) in enumerate(streams):
        _push(heap, order, log, stream, 0.0)
    while heap:
        at, order, log, (length, decoded), rest = heapq.heappop(heap)
        yield Origin(log.source.name, log.source.pool, counts=log.counts), length, decoded
        _push(heap, order, log, rest, at)


def _push(
    heap: list[tuple[float, int, Log, tuple[int, Decoded], Iterator[tuple[int, Decoded]]]],
    order: int,
    log: Log,
    rest: Iterator[tuple[int, Decoded]],
    before: float,
) -> None:
    """Put a file's next block in line; one without any event is as early as the block before it."""
    found = next(rest, None)
    if found is None:
        return
    events = found[1].batch.event_at
    times = [*events[:1].tolist(), *(sample.at for _, sample in found[1].samples[:1])]
    heapq.heappush(heap, (min(filter(None, times), default=before), order, log, found, rest))


def _decoded(config: Config, log: Log, size: int) -> Iterator[tuple[int, Decoded]]:
    """A file's blocks: bytes read, and what they tell."""
    decoder = decoder_for(log.source, log.path, config.limits.line_bytes)
    try:
        near = os.stat(log.path).st_mtime
        with opened(log.path) as stream:
            for length, data, too_long, whole in blocks(stream, size, config.limits.line_bytes):
                yield length, _judged(decoder, data, near, too_long, whole=whole)
    except (OSError, EOFError, zstandard.ZstdError) as error:
        raise UsageError(f"{log.path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _judged(decoder: Decoder, data: bytes, near: float, too_long: int, *, whole: bool) -> Decoded:
    decoded = decoder.decode(data, near)
    if not whole and decoded.dropped["malformed"]:
        decoded.dropped["malformed"] -= 1
        decoded.dropped["partial"] += 1
    if too_long:
        decoded.dropped["too_long"] += too_long
        decoded.read += too_long
    return decoded
