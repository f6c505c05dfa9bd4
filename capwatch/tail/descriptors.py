"""Descriptors: the open files of one source, never more than allowed."""

import errno
import os
from math import inf

from capwatch.tail.content import Content
from capwatch.tail.position import FileId

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
"""Not to be held up by a pipe or a terminal that took the place of a file since it was listed."""


def open_file(path: str, expected: FileId) -> int:
    """A descriptor on that very file. Raises OSError, with ENOENT also where the name leads to another file now."""
    fd = os.open(path, _FLAGS)
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != expected:
        os.close(fd)
        raise FileNotFoundError(errno.ENOENT, "another file has that name now", path)
    return fd


def own_descriptor(content: Content) -> int:
    """A second descriptor on the content's file, to be closed by the caller. Raises OSError."""
    return open_file(content.path, content.id) if content.fd is None else os.dup(content.fd)


class Descriptors:
    """Contents with an open file. Over the limit the longest silent one is closed: its name leads to it again."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[int, Content] = {}  # by number; the one that moved last at the end

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, content: Content, fd: int) -> None:
        """This is the content's open file from now on."""
        content.fd, content.problem = fd, None
        self._held[content.number] = content
        if len(self._held) > self._limit:
            # without a name it could not be opened again; there are few of these, and not for long
            silent = next((each for each in self._held.values() if each.listed and each is not content), None)
            if silent is not None:
                self.close(silent)

    def moved(self, content: Content) -> None:
        """It is to be closed last."""
        if content.number in self._held:
            self._held[content.number] = self._held.pop(content.number)

    def close(self, content: Content) -> None:
        """Give its descriptor back; a file that still has a name is looked at when the globs show it changed."""
        if content.fd is not None:
            os.close(content.fd)
            content.fd = None
            del self._held[content.number]
            if content.seen == content.stat:
                content.due = inf

    def close_all(self) -> None:
        """Give everything back."""
        for content in list(self._held.values()):
            self.close(content)
