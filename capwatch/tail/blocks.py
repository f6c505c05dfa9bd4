"""Blocks: bytes from a place in an open file, cut into whole lines, in bounded memory."""

import os
from typing import NamedTuple

import msgspec

from capwatch.tail.fingerprint import ENDS, SPAN, START, Mark, mark, mark_at
from capwatch.tail.position import FileId

BOM = b"\xef\xbb\xbf"
_SEARCH = 64 << 20
"""Bytes searched for a newline in one call: a line without end must not hold up its neighbours for long."""
_BACKWARDS = 64 << 10
"""Bytes a step when the last newline before a place is sought: more than nearly every line."""


class Block(msgspec.Struct, frozen=True):
    """Whole lines of one file, in order; to be given back with `Follower.taken` once everything in it is counted."""

    source: str
    path: str  # the file's name now
    lineage: str  # the live name of its family: lines of one lineage follow each other over rotation
    content: int  # number of the content within the source; it stays over renames, a truncated file gets a new one
    file: FileId
    data: bytes  # lines with their newlines; the last one without where `unterminated`
    too_long: int  # lines over the limit that end in this block; their bytes are not in `data`
    start: int  # first byte in the file
    at: Mark  # where the block ends, and the content before that
    mtime: float  # of the file, seconds since the epoch
    unterminated: bool = False  # the rest of a finished file: one line that never got its newline

    @property
    def end(self) -> int:
        """First byte behind the block."""
        return self.at.end


class Piece(NamedTuple):
    """What one look behind a place found."""

    data: bytes  # whole lines, perhaps none
    at: Mark  # where the next look begins
    too_long: int  # 1 where a line over the limit was passed over
    searched: int  # no newline between `at` and here
    marks: tuple[Mark, ...]  # at the fixed places that came into sight
    full: bool  # there may be more right now


class Lines:
    """Reads whole lines through one reused buffer; memory is the buffer, the block and at most one line of the limit.

    line_bytes: longest line, without its newline. block_bytes: size of the buffer.
    """

    def __init__(self, line_bytes: int, block_bytes: int) -> None:
        self._line_bytes = line_bytes
        # never larger than the longest line and its newline: so a line that fits is not too long
        self._room = min(block_bytes, line_bytes + 1)
        self._buffer = bytearray(SPAN + self._room)
        self._view = memoryview(self._buffer)

    def read(self, fd: int, at: Mark, searched: int) -> Piece | None:
        """The lines behind `at`; None when the content before `at` is no longer the one that was marked.

        searched: bytes between `at` and here are known to hold no newline. Raises OSError.
        """
        if searched > at.end:
            piece = self._search(fd, at, searched)
            if piece is not None:
                return piece
        begin = max(0, at.end - SPAN)
        before = at.end - begin
        count = os.preadv(fd, [self._view[: before + self._room]], begin)
        if count < before or mark(self._view[:before], at.end) != at:
            return None
        marks = tuple(self._mark(end - begin, begin) for end in ENDS if at.end < end <= begin + count)
        cut = self._buffer.rfind(b"\n", before, count) + 1
        full = count == before + self._room
        if not cut:
            return Piece(b"", at, 0, begin + count, marks, full)
        data = bytes(self._view[before:cut])
        end = self._mark(cut, begin)
        return Piece(_without_bom(data, at), end, 0, end.end, marks, full)

    def rest(self, fd: int, at: Mark, size: int) -> Piece:
        """What lies between `at` and `size` as one line without a newline. Raises OSError."""
        too_long = size - at.end > self._line_bytes
        data = b"" if too_long else os.pread(fd, size - at.end, at.end)
        return Piece(_without_bom(data, at), mark_at(fd, size), int(too_long), size, (), full=False)

    def _search(self, fd: int, at: Mark, searched: int) -> Piece | None:
        """A line that was longer than what had been there: its end, or how far it was sought. None: read as usual."""
        stop = searched + _SEARCH
        while count := os.preadv(fd, [self._view[: self._room]], searched):
            found = self._buffer.find(b"\n", 0, count)
            if found >= 0:
                end = searched + found + 1
                if end - at.end <= self._room:
                    return None
                too_long = end - 1 - at.end > self._line_bytes
                data = b"" if too_long else os.pread(fd, end - at.end, at.end)
                if mark_at(fd, at.end) != at or not (too_long or data.endswith(b"\n")):
                    return None  # truncated meanwhile
                marks = tuple(mark_at(fd, place) for place in ENDS if at.end < place <= end)
                return Piece(_without_bom(data, at), mark_at(fd, end), int(too_long), end, marks, full=True)
            searched += count
            if searched >= stop:
                return Piece(b"", at, 0, searched, (), full=True)
        return Piece(b"", at, 0, searched, (), full=False)

    def _mark(self, place: int, begin: int) -> Mark:
        """The mark at `place` in the buffer, whose first byte is byte `begin` of the file."""
        return mark(self._view[max(0, place - SPAN) : place], begin + place)


def last_line_end(fd: int, end: int) -> int:
    """The byte behind the last newline before `end`, 0 where there is none: a half-written line stays whole."""
    while end > 0:
        begin = max(0, end - _BACKWARDS)
        found = os.pread(fd, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _without_bom(data: bytes, at: Mark) -> bytes:
    """A byte order mark at the beginning of a file is not part of its first line."""
    return data[len(BOM) :] if at == START and data.startswith(BOM) else data
