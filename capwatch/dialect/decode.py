"""Lines in, columns out: the one road that every dialect takes, fast or line by line, and the fate of every line.

Law 1 of the contract starts here: each line is counted (a record), skipped (understood, not a record), dropped with
a reason, or held back as a part of a wrapped record until that resolves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from capwatch.dialect.settle import DROPS, settle
from capwatch.dialect.verdict import Drop, Format, Options, Skip, Verdict, Wrapper
from capwatch.record import Batch, EngineSample, Floats, Ints, Request

COUNTED: Final = "record"
SKIPPED: Final = "skip"
HELD: Final = "held"

Fate = str
"""`COUNTED`, `SKIPPED`, `HELD`, or the reason of a drop."""

BAD_DATA: Final = (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError)
"""What a parser may meet on a bad line. It costs that line, never the source."""


@dataclass(slots=True)
class Decoded:
    """What some lines of one file tell."""

    batch: Batch
    """The good records, settled."""
    lines: Ints
    """int64[len(batch)]: the index of the line that each record stands on."""
    samples: list[tuple[int, EngineSample]]
    """Engine samples with the index of their line; ``at`` is always set."""
    read: int
    """Lines that resolved here: counted + skipped + dropped, parts held back earlier included."""
    counted: int
    skipped: int
    dropped: Counter[str]
    fates: dict[int, tuple[Fate, str]] = field(default_factory=dict)
    """For lines that are no record: fate and reason text, by index. Texts are the reader's own, never the line's."""


class Decoder:
    """Decodes the lines of one file: wrapper, then the fast scanner where there is one, then the reader."""

    def __init__(self, form: Format, options: Options, wrapper: Wrapper | None = None) -> None:
        self._form = form
        self._wrapper = wrapper
        self._scanner = form.scanner(options) if form.scanner else None
        self._reader = form.reader(options)

    def decode(self, data: bytes, near: float) -> Decoded:
        """Decode whole lines, in file order; a line feed after the last one is optional.

        ``near`` (s, epoch): see `Reader.read`; it is the time of records in dialects without a clock.
        """
        lines: Sequence[bytes] = data.split(b"\n")
        if not lines[-1]:
            lines = lines[:-1]
        clean = data.isascii() and b"\0" not in data
        fates: dict[int, tuple[Fate, str]] = {}
        written: dict[int, float] = {}
        released: Counter[str] = Counter()
        index: Sequence[int] = range(len(lines))
        if self._wrapper is not None:
            index, lines = self._unwrap(lines, fates, written, released)
        columns: list[Batch] = []
        rows: list[int] = []
        if self._scanner is not None:
            found, taken, left = self._scanner.scan(lines, clean=clean)
            columns.append(Batch.of_columns(found, len(taken)))
            rows += [index[i] for i in taken]
        else:
            left = list(range(len(lines)))
        requests: list[Request] = []
        samples: list[tuple[int, EngineSample]] = []
        for i in left:
            line = index[i]
            for found_here in self._judge(lines[i], written.get(line, near), line, fates):
                if isinstance(found_here, Request):
                    requests.append(found_here)
                    rows.append(line)
                else:
                    samples.append((line, found_here))
        if requests or not columns:
            columns.append(Batch.of(requests))
        batch, rows = _joined(columns, rows)
        for line, sample in samples:
            sample.at = written.get(line, near) if sample.at is None else sample.at
        spare = np.nan if self._form.clock else near
        times = np.array([written.get(row, spare) for row in rows]) if written else np.full(len(rows), spare)
        return _settled(batch, np.array(rows, np.int64), samples, times, (fates, released))

    def _judge(
        self, line: bytes, near: float, index: int, fates: dict[int, tuple[Fate, str]]
    ) -> Sequence[Request | EngineSample]:
        """What one line holds; a line that holds nothing gets its fate."""
        verdict = self._read(line, near)
        if isinstance(verdict, Skip):
            fates[index] = (SKIPPED, verdict.reason)
            return ()
        if isinstance(verdict, Drop):
            fates[index] = (verdict.reason, verdict.detail)
            return ()
        found = verdict if isinstance(verdict, list) else [verdict]
        if not found:
            fates[index] = (SKIPPED, "no request in it")
        return found

    def _read(self, line: bytes, near: float) -> Verdict:
        try:
            text = line.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            return Drop("bad_utf8")
        if not text.strip():
            return Skip("blank line")
        if "\0" in text:
            return Drop("malformed", "NUL bytes")
        try:
            return self._reader.read(text, near)
        except BAD_DATA as error:
            return Drop("malformed", type(error).__name__)

    def _unwrap(
        self,
        lines: Sequence[bytes],
        fates: dict[int, tuple[Fate, str]],
        written: dict[int, float],
        released: Counter[str],
    ) -> tuple[list[int], list[bytes]]:
        assert self._wrapper is not None  # noqa: S101 - for the type checker
        index: list[int] = []
        inner: list[bytes] = []
        for i, line in enumerate(lines):
            try:
                piece = self._wrapper.unwrap(line.removesuffix(b"\r"))
            except BAD_DATA as error:
                piece = Drop("malformed", type(error).__name__)
            released.update(self._wrapper.released())
            if isinstance(piece, Skip):
                fates[i] = (SKIPPED, piece.reason)
            elif isinstance(piece, Drop):
                fates[i] = (piece.reason, piece.detail)
            elif piece is None:
                fates[i] = (HELD, "part of a longer record")
            else:
                index.append(i)
                inner.append(piece.line)
                if piece.at is not None:
                    written[i] = piece.at
        return index, inner

    def save(self) -> object:
        """Everything remembered between lines, as plain builtins."""
        return [self._reader.save(), self._wrapper.save() if self._wrapper else None]

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        if isinstance(saved, list | tuple) and len(saved) == 2:
            self._reader.load(saved[0])
            if self._wrapper:
                self._wrapper.load(saved[1])


def _joined(parts: Sequence[Batch], rows: list[int]) -> tuple[Batch, list[int]]:
    """One batch in the order of the file, which decides what is late, what is a repeat, and who gets a name first."""
    if len(parts) == 1:
        return parts[0], rows
    order = np.argsort(rows, kind="stable")
    return Batch.join(parts).take(order), np.array(rows, np.int64)[order].tolist()


def _settled(
    batch: Batch,
    rows: Ints,
    samples: list[tuple[int, EngineSample]],
    times: Floats,
    judged: tuple[dict[int, tuple[Fate, str]], Counter[str]],
) -> Decoded:
    """Settle the records, take out those that cannot be used, and count the fates of all lines."""
    fates, released = judged
    verdict = settle(batch, times)
    if verdict.any():
        good = set(rows[verdict == 0].tolist()) | {row for row, _ in samples}
        for row, reason in zip(rows.tolist(), verdict.tolist(), strict=True):
            if reason and row not in good:
                fates[row] = (DROPS[reason], "")
        batch, rows = batch.take(verdict == 0), rows[verdict == 0]
    counted = len(set(rows.tolist()) | {row for row, _ in samples})
    outcome = Counter(fate for fate, _ in fates.values()) + released
    skipped = outcome.pop(SKIPPED, 0)
    outcome.pop(HELD, 0)
    read = counted + skipped + outcome.total()
    return Decoded(batch, rows, samples, read, counted, skipped, outcome, fates)
