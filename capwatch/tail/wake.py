"""Wake: sleep until a watched directory changes, by inotify where there is one, else until the time is over."""

import ctypes
import os
import select
import struct
from collections.abc import Iterable
from dataclasses import dataclass

_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE = 0x2, 0x40, 0x80, 0x100
_IGNORED, _ONLYDIR = 0x8000, 0x01000000
"""From linux/inotify.h."""

_RENAMES = _MOVED_FROM | _MOVED_TO | _CREATE
_EVENT = struct.Struct("iIII")
"""Watch, mask, cookie, length of the name that follows."""

_READ = 64 << 10
"""Bytes of events a read: some thousand, more than gather between two looks."""


@dataclass(frozen=True)
class Touched:
    """What changed in the watched directories; true if anything did."""

    written: frozenset[str] = frozenset()  # paths that grew or shrank
    renamed: frozenset[str] = frozenset()  # paths that were created or moved to or from

    def __bool__(self) -> bool:
        return bool(self.written or self.renamed)


NOTHING = Touched()


class Wake:
    """One inotify instance for all sources. Where the kernel refuses one, or a watch, polling does without."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        init = getattr(self._libc, "inotify_init1", None)
        self._fd = -1 if init is None else int(init(os.O_NONBLOCK | os.O_CLOEXEC))
        self._poll = select.poll()
        if self._fd >= 0:
            self._poll.register(self._fd, select.POLLIN)
        self._watches: dict[int, str] = {}

    def watch(self, directories: Iterable[str]) -> None:
        """Watch these directories and no others; those that cannot be watched (missing, too many) are left out."""
        wanted = set(directories)
        for number in [number for number, directory in self._watches.items() if directory not in wanted]:
            self._libc.inotify_rm_watch(self._fd, number)
            del self._watches[number]
        for directory in wanted - set(self._watches.values()) if self._fd >= 0 else ():
            number = self._libc.inotify_add_watch(self._fd, os.fsencode(directory), _MODIFY | _RENAMES | _ONLYDIR)
            if number >= 0:
                self._watches[number] = directory

    def wait(self, seconds: float) -> Touched:
        """Sleep until something changes, at most so long; what changed since the last call."""
        if not self._poll.poll(max(0.0, seconds) * 1000):
            return NOTHING
        try:
            events = os.read(self._fd, _READ)
        except BlockingIOError:
            return NOTHING
        return self._understood(events)

    def close(self) -> None:
        """Give the inotify instance back; `wait` only sleeps from now on."""
        if self._fd >= 0:
            self._poll.unregister(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._watches.clear()

    def _understood(self, events: bytes) -> Touched:
        written, renamed, place = set(), set(), 0
        while place < len(events):
            number, mask, _, length = _EVENT.unpack_from(events, place)
            place += _EVENT.size + length
            name = os.fsdecode(events[place - length : place].rstrip(b"\0"))
            # no directory: the queue ran over; the timed looks find what was in it
            path = os.path.join(self._watches.get(number, ""), name)
            if mask & _IGNORED:  # the directory is gone
                self._watches.pop(number, None)
            elif mask & _MODIFY:
                written.add(path)
            elif mask & _RENAMES:
                renamed.add(path)
        return Touched(frozenset(written), frozenset(renamed))
