"""Follower: one source's files, read as blocks of whole lines, with positions for exactly the blocks taken."""

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from math import inf

import msgspec

from capwatch.tail.blocks import Block, Lines, Piece
from capwatch.tail.content import Content
from capwatch.tail.fingerprint import Sample
from capwatch.tail.kin import unchanged
from capwatch.tail.names import age, roots
from capwatch.tail.position import Saved
from capwatch.tail.register import Register
from capwatch.tail.settings import Settings
from capwatch.tail.wake import NOTHING, Touched

_SCAN_GAP = 0.05
"""Seconds between two scans at least: a busy directory must not keep the reader from reading."""


class Status(msgspec.Struct, frozen=True):
    """One source in numbers. Law: bytes ever written = bytes_read + bytes_skipped + lag_bytes + sum(bytes_lost)."""

    bytes_read: int
    bytes_skipped: int
    bytes_lost: dict[str, int]
    lag_bytes: int
    rotations: int
    truncations: int
    up: bool  # something is followed and nothing of it refuses to be read
    caught_up: bool  # the last poll left no whole line unread in anything that can be read
    files: int
    open_files: int
    problems: tuple[str, ...]  # path and reason, for the daemon's own log


class Follower:
    """Follows one source in one thread.

    `poll` hands out blocks; each must come back through `taken`, in the order handed out, when its lines are counted.
    `saved` freezes positions and counters for exactly the blocks taken so far: commit it together with what was
    counted, give it back after a restart, and every byte is read once. What was handed out but not taken is read
    again. Nothing here raises for the sake of a file. `now` is a monotonic clock in seconds.
    """

    def __init__(self, settings: Settings, saved: Saved | None = None) -> None:
        self._settings = settings
        self._register = Register(settings, saved)
        self._lines = Lines(settings.line_bytes, settings.block_bytes)
        self._bytes_read = saved.bytes_read if saved else 0
        self._caught_up = False
        self._scanned = -inf
        self._room = 0  # bytes that this poll may still hand out

    def poll(self, now: float, touched: Touched = NOTHING) -> Iterator[Block]:
        """One look at everything that is due, oldest files first; ends after about `poll_bytes`.

        touched: what `Wake.wait` saw since the last poll. Blocks may be taken, and `saved` and `status` called,
        while it runs; run it to its end before the next one.
        """
        register = self._register
        if self._concerned(touched.renamed) or self._concerned(touched.written.difference(register.names)):
            register.changed = True
        if now >= self._next_scan():
            self._scanned = now
            register.scan(now)
        truncations = register.truncations
        due, news = self._look_around(now, touched)
        if register.truncations > truncations:  # what was truncated has to be read before its successors
            register.scan(now)
            due, news = self._look_around(now, touched)
        self._room = self._settings.poll_bytes
        for content in sorted(news, key=lambda each: age(each.path, each.mtime_ns)):
            if content.bound and self._room > 0:
                yield from self._drain(content, now)
        for content in due:
            if content.bound and self._finished(content, now):
                yield from self._finish(content, now)
        self._caught_up = self._room > 0 and not register.changed

    def taken(self, block: Block) -> None:
        """Everything in the block is counted: its bytes are read, and need never be read again."""
        self._bytes_read += block.end - block.start
        content = self._register.contents.get(block.content)
        if content is not None:
            content.taken = block.at

    def saved(self) -> Saved:
        """Positions and counters for exactly the blocks taken so far; a plain value that later calls do not change."""
        register = self._register
        return Saved(
            positions={number: each.position() for number, each in register.contents.items() if not each.blank},
            next_number=register.next_number,
            bytes_read=self._bytes_read,
            bytes_skipped=register.skipped,
            bytes_lost=dict(register.lost),
            rotations=register.rotations,
            truncations=register.truncations,
        )

    def status(self) -> Status:
        """The source in numbers, for the blocks taken so far."""
        register = self._register
        problems = tuple(each.problem for each in register.files.values() if each.problem is not None)
        return Status(
            bytes_read=self._bytes_read,
            bytes_skipped=register.skipped,
            bytes_lost=dict(register.lost),
            lag_bytes=sum(each.size - each.taken.end for each in register.contents.values()),
            rotations=register.rotations,
            truncations=register.truncations,
            up=bool(register.files) and not problems,
            caught_up=self._caught_up,
            files=len(register.files),
            open_files=len(register.open_files),
            problems=problems,
        )

    def lineages(self) -> set[str]:
        """The lineages of all contents that may still be read, or come back."""
        return {each.family for each in self._register.contents.values()}

    def due(self) -> float:
        """When the next poll has something to do, on the clock of `now`; something touched may call for it earlier."""
        return min([self._next_scan(), *(each.due for each in self._register.files.values())])

    def directories(self) -> set[str]:
        """Where changes to this source's files happen: what `Wake.watch` should be given, anew after every scan."""
        files = self._register.files.values()
        return roots(self._settings.globs) | {
            os.path.dirname(path) for each in files for path in (each.path, each.real)
        }

    def close(self) -> None:
        """Give all descriptors back."""
        self._register.open_files.close_all()

    def _next_scan(self) -> float:
        return self._scanned + (_SCAN_GAP if self._register.changed else self._settings.rescan)

    def _concerned(self, paths: Iterable[str]) -> bool:
        """Whether any of the paths is under the globs."""
        return any(fnmatchcase(path, pattern) for path in paths for pattern in self._settings.globs)

    def _look_around(self, now: float, touched: Touched) -> tuple[list[Content], list[Content]]:
        """What is due, and what of it has something new to read."""
        due = [each for each in self._register.files.values() if each.due <= now or _touches(touched, each)]
        return due, [each for each in due if self._look(each, now)]

    def _look(self, content: Content, now: float) -> bool:
        """Whether there is something new to read; sees to it that the file still holds the content."""
        register = self._register
        if not register.open(content) or content.fd is None:
            return False
        try:
            found = os.fstat(content.fd)
            content.stat, content.mtime_ns = (found.st_size, found.st_mtime_ns), found.st_mtime_ns
            if content.stat == content.seen:
                content.quiet += 1
                self._look_later(content, now)
                return False
            if content.blank and found.st_size and not register.identify(content, found.st_size, now):
                return False
            if not self._intact(content, content.fd, found.st_size):
                register.truncated(content, now)
                return False
            content.size = found.st_size
            if content.pass_to:
                register.pass_over(content, content.fd)
        except OSError as error:
            register.failed(content, error)
            return False
        content.quiet, content.moved = 0, now
        register.open_files.moved(content)
        return True

    def _look_later(self, content: Content, now: float) -> None:
        """Whoever moves is looked at often, whoever is silent ever more seldom."""
        # 16 doublings are enough between any two sensible times, and no overflow
        wait = min(self._settings.slowest, self._settings.fastest * 2 ** min(content.quiet, 16))
        content.due = inf if content.fd is None else now + wait

    def _intact(self, content: Content, fd: int, size: int) -> bool:
        """Whether the file still holds the content; a writer may have taken back a line that was not finished."""
        if not unchanged(content, Sample(fd, size)):
            return False
        if size < content.size:
            self._register.lose(content.size - size, "truncated")
            content.searched = content.at.end
            content.marks = tuple(mark for mark in content.marks if mark.end <= size)
        return True

    def _drain(self, content: Content, now: float) -> Iterator[Block]:
        """Everything there is to read in one file, within this poll's bounds."""
        while self._room > 0:
            if not self._register.open(content) or content.fd is None:
                return
            try:
                piece = self._lines.read(content.fd, content.at, content.searched)
            except OSError as error:
                self._register.failed(content, error)
                return
            if piece is None:
                self._register.truncated(content, now)
                return
            if piece.at != content.at:
                yield self._handed_out(content, piece)
            else:
                self._room -= piece.searched - content.searched  # a long search is work too
                content.searched = piece.searched
                content.grown(piece.marks)
            if not piece.full:
                content.seen = content.stat
                self._look_later(content, now)
                return

    def _handed_out(self, content: Content, piece: Piece, unterminated: bool = False) -> Block:
        start, content.at, content.searched = content.at.end, piece.at, piece.searched
        content.size = max(content.size, piece.at.end)
        content.grown(piece.marks)
        self._room -= piece.at.end - start
        return Block(
            source=self._settings.name,
            path=content.path,
            lineage=content.family,
            content=content.number,
            file=content.id,
            data=piece.data,
            too_long=piece.too_long,
            start=start,
            at=piece.at,
            mtime=content.mtime_ns / 1e9,
            unterminated=unterminated,
        )

    def _finished(self, content: Content, now: float) -> bool:
        """Rotated away or deleted, its end seen twice, and silent for so long that no writer holds it any more."""
        if content.quiet < 2 or now - content.moved < self._settings.grace:
            return False
        newer = content.family != content.path and content.family in self._register.names
        return content.rotated or newer or not content.listed

    def _finish(self, content: Content, now: float) -> Iterator[Block]:
        """Hand out a last line without a newline, then let go of the file."""
        if content.size > content.at.end:
            if not self._register.open(content) or content.fd is None:
                return
            try:
                piece = self._lines.rest(content.fd, content.at, content.size)
            except OSError as error:
                self._register.failed(content, error)
                return
            yield self._handed_out(content, piece, unterminated=not piece.too_long)
        if content.listed:
            self._register.open_files.close(content)
        elif content.bound:
            self._register.release(content, now)


def _touches(touched: Touched, content: Content) -> bool:
    return content.path in touched.written or content.real in touched.written
