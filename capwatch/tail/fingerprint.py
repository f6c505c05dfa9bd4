"""Fingerprints: which content is this, told by hashes at a few places instead of by names."""

import os

import msgspec
from xxhash import xxh3_64_intdigest

SPAN = 1024
"""Bytes a mark covers at most: two or three log lines, so that times and ids are among them."""

ENDS = tuple(64 * 4**k for k in range(18))
"""Where every content is marked once it is that long: 64 and 256 bytes for the shortest files, 1,024 as *the*
fingerprint of the beginning, then ever wider apart up to a TiB, so that a copy of any length N can be checked
somewhere in its last three quarters for at most 18 hashes a file."""

HEAD = SPAN
"""Equal bytes from which on two files with unrelated names are believed to be copies: below it, programs started
together write the same banner."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """The content before a place: `hash` is xxh3-64 over the last 1,024 bytes (or all there are) before byte `end`."""

    end: int
    hash: int


def mark(before: bytes | memoryview, end: int) -> Mark:
    """The mark at byte `end`, given at least the last 1,024 bytes before it (all of them in a shorter file).

    >>> mark(b"x" * 5000, 5000) == mark(b"x" * 1024, 5000)
    True
    """
    return Mark(end, xxh3_64_intdigest(before[-SPAN:]))


START = mark(b"", 0)
"""The beginning of every file."""


def mark_at(fd: int, end: int) -> Mark:
    """The mark at byte `end` of an open file; a mark that matches nothing where it is shorter. Raises OSError."""
    begin = max(0, end - SPAN)
    before = os.pread(fd, end - begin, begin)
    return mark(before, begin + len(before))


def marks_upto(fd: int, size: int) -> tuple[Mark, ...]:
    """The marks at every fixed place within the first `size` bytes of an open file. Raises OSError."""
    return tuple(mark_at(fd, end) for end in ENDS if end <= size)


class Sample:
    """An open file of known size under comparison: each place is hashed once, however many contents ask."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self.size = size
        self._marks: dict[int, Mark] = {0: START}

    def at(self, end: int) -> Mark:
        """The mark at byte `end`. Raises OSError."""
        if end not in self._marks:
            self._marks[end] = mark_at(self.fd, end)
        return self._marks[end]

    def has(self, sought: Mark) -> bool:
        """Whether the file holds that content at that place. Raises OSError."""
        return sought.end <= self.size and self.at(sought.end) == sought

    def agrees(self, marks: tuple[Mark, ...]) -> bool:
        """Whether every mark that lies within the file holds in it (true where none does). Raises OSError."""
        return all(self.at(sought.end) == sought for sought in marks if sought.end <= self.size)
