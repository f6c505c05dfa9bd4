"""Positions: what has to survive a restart of one source, as plain values."""

from typing import NamedTuple

import msgspec

from capwatch.tail.fingerprint import START, Mark


class FileId(NamedTuple):
    """A file as the kernel knows it, whatever its names."""

    device: int
    inode: int


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far one content has been taken, and how to know it again.

    Bytes before `at` are whole lines that were counted, skipped, dropped or passed over; nothing behind it was.
    """

    device: int
    inode: int
    path: str  # the name it was last seen under
    at: Mark = START
    marks: tuple[Mark, ...] = ()  # at the fixed places, as far as the content was looked at
    size: int = (
        0  # bytes known to have been written; what lies behind `at` is lag, or lost if the file never comes back
    )
    rotated: bool = False  # its live name has gone to another file
    vanished: bool = False  # no file holds it any more; remembered so that a copy is not read again
    pass_to: int = 0  # `start: end` for a file not opened yet: pass over the lines that end before this byte


class Saved(msgspec.Struct, frozen=True):
    """Everything a follower must be given back after a restart. Counters are bytes or events since the first start."""

    positions: dict[int, Position]  # by content number; a value that did not change is the same object as before
    next_number: int
    bytes_read: int
    bytes_skipped: int
    bytes_lost: dict[str, int]  # by reason: `deleted`, `truncated`
    rotations: int
    truncations: int
