"""Lines in, columns out: the one road that every dialect takes, fast or line by line, and the fate of every line.

Law 1 of the contract starts here: each line is counted (a record), skipped (understood, not a record), dropped with
a reason, or held back as a part of a wrapped record until that resolves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from capwatch.dialect.settle import DROPS, settle
from capwatch.dialect.verdict import Aside, Drop, Format, Going, Held, Holding, Options, Skip, Verdict, Wrapper
from capwatch.record import Batch, Bools, EngineSample, Floats, Ints, Note, Reached, Request

COUNTED: Final = "record"
SKIPPED: Final = "skip"
HELD: Final = "held"

Fate = str
"""`COUNTED`, `SKIPPED`, `HELD`, or the reason of a drop."""

PIECE: Final = 1 << 19
"""Bytes decoded at once: what is made of them, several times as much, stays in the processor's own cache."""

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
    reached: list[tuple[int, Reached]] = field(default_factory=list)
    """How far starts of engines have come, with the index of the line; ``at`` is always set."""
    notes: list[tuple[int, Note]] = field(default_factory=list)
    """Deploy notes with the index of their line."""
    going: list[tuple[int, Going]] = field(default_factory=list)
    """Rows of requests that go on, with the index of the line; they are skipped."""
    fates: dict[int, tuple[Fate, str]] = field(default_factory=dict)
    """For lines that are no record: fate and reason text, by index. Texts are the reader's own, never the line's."""

    def lost(self, repeated: Bools) -> int:
        """Lines counted here all of whose records are repeats: they are skipped lines."""
        if not repeated.any():
            return 0
        kept = set(self.lines[~repeated].tolist()) | {line for line, _ in self.samples}
        return len(set(self.lines[repeated].tolist()) - kept)


@dataclass(slots=True)
class _Found:
    """What the pieces of a block hold, so far."""

    lines: int = 0
    batches: list[Batch] = field(default_factory=list)
    rows: list[Ints] = field(default_factory=list)
    samples: list[tuple[int, EngineSample]] = field(default_factory=list)
    reached: list[tuple[int, Reached]] = field(default_factory=list)
    notes: list[tuple[int, Note]] = field(default_factory=list)
    going: list[tuple[int, Going]] = field(default_factory=list)
    fates: dict[int, tuple[Fate, str]] = field(default_factory=dict)
    written: dict[int, float] = field(default_factory=dict)
    """When a wrapper says that a line was written, by index."""
    released: Counter[str] = field(default_factory=Counter)


class Decoder:
    """Decodes the lines of one file: wrapper, then the fast scanner where there is one, then the reader."""

    def __init__(self, form: Format, options: Options, wrapper: Wrapper | None = None) -> None:
        self._form = form
        self._wrapper = wrapper
        self._scanner = form.scanner(options) if form.scanner else None
        self._reader = form.reader(options)
        self._holding = self._reader if isinstance(self._reader, Holding) else None

    def decode(self, data: bytes | Iterable[bytes], near: float) -> Decoded:
        """Decode whole lines, in file order.

        Args:
            data: lines, the last one with or without its line feed; or pieces of about `PIECE` bytes of such lines,
                each piece with all its line feeds.
            near: s, epoch; see `Reader.read`. It is the time of records in dialects without a clock.
        """
        found = _Found()
        for piece in _pieces(data) if isinstance(data, bytes) else data:
            self._piece(piece, near, found)
        if not found.batches:
            self._piece(b"", near, found)
        if self._holding is not None:
            found.released[SKIPPED] += self._holding.released()
        batch = found.batches[0] if len(found.batches) == 1 else Batch.join(found.batches)
        rows = np.concatenate(found.rows)
        for line, sample in found.samples:
            sample.at = found.written.get(line, near) if sample.at is None else sample.at
        for line, reached in found.reached:
            reached.at = found.written.get(line, near) if reached.at is None else reached.at
        times = np.full(len(rows), np.nan if self._form.clock else near)
        if found.written:
            times = np.array([found.written.get(row, time) for row, time in zip(rows.tolist(), times, strict=True)])
        return _settled(batch, rows, times, found)

    @property
    def holds(self) -> bool:
        """Whether lines may be held back, so that `expire` has something to do."""
        return self._wrapper is not None or self._holding is not None

    @property
    def held(self) -> int:
        """Bytes of records whose last part has not come yet."""
        return self._wrapper.held if self._wrapper else 0

    def expire(self, now: float) -> Decoded:
        """What comes of records that stayed open too long at ``now``; mostly nothing.

        See `Parts.expire` and `Holding.expire`; records of held lines stand on no line of a block.
        """
        found = _Found()
        if self._wrapper is not None:
            self._wrapper.expire(now)
            found.released.update(self._wrapper.released())
        requests = [request for _, request in self._holding.expire(now)] if self._holding is not None else []
        rows = np.arange(len(requests))
        return _settled(Batch.of(requests), rows, np.full(len(rows), np.nan), found)

    def _piece(self, data: bytes, near: float, found: _Found) -> None:
        """Add what one piece holds."""
        if self._scanner is not None and self._wrapper is None and (whole := self._scanner.whole(data)):
            columns, count = whole
            found.batches.append(Batch.of_columns(columns, count))
            found.rows.append(np.arange(found.lines, found.lines + count))
            found.lines += count
            return
        lines: Sequence[bytes] = data.split(b"\n")
        if not lines[-1]:
            lines = lines[:-1]
        begin, found.lines = found.lines, found.lines + len(lines)
        index: Sequence[int] = range(begin, found.lines)
        if self._wrapper is not None:
            index, lines = self._unwrap(lines, begin, found)
        batches: list[Batch] = []
        rows: list[int] = []
        left: Sequence[int] = range(len(lines))
        if self._scanner is not None:
            columns, taken, left = self._scanner.scan(lines, clean=data.isascii() and b"\0" not in data)
            batches.append(Batch.of_columns(columns, len(taken)))
            rows += index if len(taken) == len(index) else [index[i] for i in taken]
        requests: list[Request] = []
        for i in left:
            for one in self._judge(lines[i], found.written.get(index[i], near), index[i], found):
                if isinstance(one, Request):
                    requests.append(one)
                    rows.append(index[i])
                else:
                    found.samples.append((index[i], one))
        if requests or not batches:
            batches.append(Batch.of(requests))
        where = np.array(rows, np.int64)
        if len(batches) > 1:
            # The order of the file decides what is late, what is a repeat, and who gets a name first.
            order = np.argsort(where, kind="stable")
            batches, where = [Batch.join(batches).take(order)], where[order]
        found.batches += batches
        found.rows.append(where)

    def _judge(self, line: bytes, near: float, index: int, into: _Found) -> Sequence[Request | EngineSample]:
        """What one line holds; a line that holds nothing gets its fate."""
        verdict, fates = self._read(line, near), into.fates
        if isinstance(verdict, Aside):
            into.reached.append((index, verdict.reached))
            verdict = verdict.verdict
        if isinstance(verdict, Going):
            into.going.append((index, verdict))
            fates[index] = (SKIPPED, "row of a request that goes on")
            return ()
        if isinstance(verdict, Note):
            into.notes.append((index, verdict))
            return ()
        if isinstance(verdict, Skip):
            fates[index] = (SKIPPED, verdict.reason)
            return ()
        if isinstance(verdict, Drop):
            fates[index] = (verdict.reason, verdict.detail)
            return ()
        if isinstance(verdict, Held):
            fates[index] = (HELD, verdict.reason)
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

    def _unwrap(self, lines: Sequence[bytes], begin: int, found: _Found) -> tuple[list[int], list[bytes]]:
        assert self._wrapper is not None  # noqa: S101 - for the type checker
        index: list[int] = []
        inner: list[bytes] = []
        fates = found.fates
        for i, line in enumerate(lines, begin):
            try:
                piece = self._wrapper.unwrap(line.removesuffix(b"\r"))
            except BAD_DATA as error:
                piece = Drop("malformed", type(error).__name__)
            found.released.update(self._wrapper.released())
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
                    found.written[i] = piece.at
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


def _pieces(data: bytes) -> Iterator[bytes]:
    """Whole lines of about `PIECE` bytes each; at least one, be it empty."""
    begin = 0
    while True:
        end = data.find(b"\n", begin + PIECE) + 1
        if not end:
            yield data[begin:]
            return
        yield data[begin:end]
        begin = end


def _settled(batch: Batch, rows: Ints, times: Floats, found: _Found) -> Decoded:
    """Settle the records, take out those that cannot be used, and count the fates of all lines."""
    fates, samples = found.fates, found.samples
    verdict = settle(batch, times)
    if verdict.any():
        good = set(rows[verdict == 0].tolist()) | {row for row, _ in samples}
        for row, reason in zip(rows.tolist(), verdict.tolist(), strict=True):
            if reason and row not in good:
                fates[row] = (DROPS[reason], "")
        batch, rows = batch.take(verdict == 0), rows[verdict == 0]
    counted = len({*rows.tolist(), *(row for row, _ in (*samples, *found.notes))})
    outcome = Counter(fate for fate, _ in fates.values()) + found.released
    skipped = outcome.pop(SKIPPED, 0)
    outcome.pop(HELD, 0)
    read = counted + skipped + outcome.total()
    return Decoded(
        batch, rows, samples, read, counted, skipped, outcome, found.reached, found.notes, found.going, fates
    )
