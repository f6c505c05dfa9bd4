"""Lines through a decoder, one by one: what became of each, and what was still open at their end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

import numpy as np

from capwatch.dialect import (
    Decoded,
    Decoder,
    Drop,
    Format,
    Holding,
    Options,
    Reader,
    Skip,
    Unwrapped,
    Verdict,
    Wrapper,
    settle,
)
from capwatch.dialect.decode import HELD, SKIPPED
from capwatch.record import Batch, EngineSample, Reached, Request

Record = Request | EngineSample


@dataclass(slots=True)
class Judged:
    """What became of one line."""

    line: int
    """From 1."""
    outcome: Literal["record", "skip", "drop"]
    records: Sequence[Record] = ()
    reason: str = ""
    """Why it is no record; for a drop one of `capwatch.dialect.DROP_REASONS`."""
    detail: str = ""
    inner: bytes | None = field(default=None, repr=False)
    """The line without its wrapper; None where it is a part of a longer one. For the names of its keys alone."""
    reached: Sequence[Reached] = ()
    """How far the start of an engine has come with it."""


def explain(
    lines: Iterable[bytes | None], form: Format, options: Options, wrapper: Wrapper | None = None, near: float = 0.0
) -> Iterator[Judged]:
    """Judge lines (without their line feeds; None is one that is too long) in order: one result a line.

    Results wait while a wrapper holds parts of a longer line, and to the end where the reader holds records back.
    ``near`` (s, epoch) stands in for the clock of logs that have none, or no year: the time of reading.
    """
    reader = _Counting(form.reader(options))
    around = _Opened(wrapper) if wrapper else None
    decoder = Decoder(replace(form, reader=lambda _: reader), options, around)
    waiting: list[Judged] = []
    for number, line in enumerate(lines, 1):  # one by one: a person looks at them, and what a wrapper held is plain
        reader.line = number
        waiting.append(_judge(number, line, decoder, near, around))
        if not (reader.holds or (around and around.held)):
            yield from waiting
            waiting.clear()
    if around:
        _give_up(waiting, around)
    for number, request in reader.given_up():
        batch = Batch.of([request])
        if not settle(batch, np.array([np.nan if form.clock else near])).any():
            judged = waiting[number - 1]
            judged.outcome, judged.records, judged.reason = "record", [batch.row(0)], ""
    yield from waiting


def records(decoded: Decoded) -> list[Record]:
    """All that some lines told: requests, then engine samples."""
    return [*map(decoded.batch.row, range(len(decoded.batch))), *(sample for _, sample in decoded.samples)]


def _judge(number: int, line: bytes | None, decoder: Decoder, near: float, around: _Opened | None) -> Judged:
    if line is None:
        return Judged(number, "drop", reason="too_long", inner=b"")
    decoded = decoder.decode(line + b"\n", near)
    inner = around.inner if around else line
    found, reached = records(decoded), [one for _, one in decoded.reached]
    if found:
        return Judged(number, "record", found, inner=inner, reached=reached)
    fate, text = decoded.fates[0]
    if fate in (SKIPPED, HELD):
        return Judged(number, "skip", reason=text, inner=inner, reached=reached)
    return Judged(number, "drop", reason=fate, detail=text, inner=inner)


def _give_up(waiting: list[Judged], around: _Opened) -> None:
    """At the end of the lines: parts whose rest never came are dropped, one drop for each longer line."""
    around.expire(inf)
    reasons = [reason for reason, count in around.released().items() if reason != SKIPPED for _ in range(count)]
    parts = [judged for judged in waiting if judged.inner is None and judged.outcome == "skip"]
    for judged, reason in zip(reversed(parts), reasons, strict=False):
        judged.outcome, judged.reason = "drop", reason


class _Counting:
    """A reader that knows the line of each of its calls, where it holds records back."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._calls: list[int] = []
        self.holds = isinstance(reader, Holding)
        self.line = 0

    def read(self, line: str, near: float) -> Verdict:
        if self.holds:
            self._calls.append(self.line)
        return self._reader.read(line, near)

    def given_up(self) -> list[tuple[int, Request]]:
        """The records still open at the end of the lines, with their lines."""
        if not isinstance(self._reader, Holding):
            return []
        return [(self._calls[-1 - ago], request) for ago, request in self._reader.expire(inf)]

    def save(self) -> object:
        return self._reader.save()

    def load(self, saved: object) -> None:
        self._reader.load(saved)


class _Opened:
    """A wrapper that shows what was in the last line and how many parts it holds."""

    def __init__(self, wrapper: Wrapper) -> None:
        self._wrapper = wrapper
        self.inner: bytes | None = None
        self.held = 0

    def unwrap(self, line: bytes) -> Unwrapped | Skip | Drop | None:
        piece = self._wrapper.unwrap(line)
        self.inner = piece.line if isinstance(piece, Unwrapped) else b"" if piece else None
        self.held += piece is None
        return piece

    def released(self) -> Mapping[str, int]:
        released = self._wrapper.released()
        self.held -= sum(released.values())
        return released

    def expire(self, now: float) -> None:
        self._wrapper.expire(now)

    def save(self) -> object:
        return self._wrapper.save()

    def load(self, saved: object) -> None:
        self._wrapper.load(saved)
