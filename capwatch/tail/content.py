"""Content: one run of bytes that is followed, whatever file holds it now."""

import os

from capwatch.tail.fingerprint import HEAD, Mark
from capwatch.tail.names import File, stem
from capwatch.tail.position import FileId, Position


class Content:
    """What is known of one content while the daemon runs; `position()` is what of it survives a restart."""

    def __init__(self, number: int, position: Position, now: float) -> None:
        self.number = number
        self.id = FileId(position.device, position.inode)
        self.path = position.path
        self.real = position.path  # the same with all links followed
        self.was = position.path  # the name before the last change of name
        self.taken = position.at  # committed as far as this
        self.at: Mark = position.at  # handed out as far as this
        self.searched = position.at.end  # no newline between `at` and here
        self.marks = position.marks
        self.size = position.size
        self.rotated = position.rotated
        self.vanished = position.vanished
        self.pass_to = position.pass_to
        self.fd: int | None = None
        self.bound = False  # a file holds it: `id` is in the listing or its descriptor is open
        self.listed = False  # a name under the globs leads to it
        self.cut = False  # its own file holds something else now: a copy may have been made before
        self.loss = "deleted"  # why unread bytes will be lost if no file with this content turns up
        self.problem: str | None = None  # why the file cannot be read
        self.stat = (0, 0)  # size and mtime in ns at the last look
        self.seen = (-1, 0)  # the same at the last look that was followed by reading to the end
        self.mtime_ns = 0
        self.quiet = 0  # looks in a row that found nothing new
        self.moved = now  # when it last grew or lost its name
        self.due = now  # when to look again
        self._position = position

    @property
    def blank(self) -> bool:
        """Nothing of it was ever seen, so nothing but the inode tells what it is."""
        return self.size == 0

    @property
    def family(self) -> str:
        """The live name of the files it belongs to."""
        return stem(self.path)

    @property
    def head(self) -> Mark | None:
        """The mark after the first 1,024 bytes, None for shorter contents."""
        return next((mark for mark in self.marks if mark.end == HEAD), None)

    def position(self) -> Position:
        """What to commit; the same object as the last time where nothing changed."""
        position = Position(
            *self.id, self.path, self.taken, self.marks, self.size, self.rotated, self.vanished, self.pass_to
        )
        if position != self._position:
            self._position = position
        return self._position

    def bind(self, file: File, now: float) -> None:
        """This file holds it from now on."""
        copied = self.id != file.id and not self.cut
        self.id, self.mtime_ns, self.size = file.id, file.mtime_ns, max(file.size, self.at.end)
        self._named(file)
        if copied:  # the file under the old name is the copy, not a newcomer
            self.was = self.path
        self.real = os.path.realpath(self.path)
        self.bound, self.listed, self.vanished = True, True, False
        self.cut, self.loss = False, "deleted"
        self.searched, self.seen, self.quiet = self.at.end, (-1, 0), 0
        self.moved = self.due = now

    def found(self, file: File, now: float) -> None:
        """The globs lead to the file that holds it."""
        self.listed = True
        if self._named(file):
            self.moved = now
        self.stat = file.size, file.mtime_ns
        unfinished = self.fd is None and self.rotated and self.size > self.at.end
        if unfinished or self.stat != self.seen:
            self.due = now

    def grown(self, marks: tuple[Mark, ...]) -> None:
        """Take note of the marks that came into sight, each place once."""
        known = self.marks[-1].end if self.marks else 0
        self.marks += tuple(mark for mark in marks if mark.end > known)

    def _named(self, file: File) -> bool:
        """Follow its name; whether its live name was taken from it just now."""
        if self.path in file.paths:
            return False
        self.was, self.path = self.path, file.paths[0]
        self.real = os.path.realpath(self.path)
        if self.blank:  # nothing tells that it is the same file: the inode may have been used again
            self.was = self.path
            return False
        newly, self.rotated = not self.rotated, True
        return newly
