"""A follower under test: with a clock of its own, everything it handed out, and the byte law checked at every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from capwatch.tail.blocks import Block
from capwatch.tail.follow import Follower, Status
from capwatch.tail.position import Saved
from capwatch.tail.settings import Settings


def line(number: int, size: int = 120) -> bytes:
    """A log line that is like no other, of exactly the given size."""
    return b'{"seq": %08d, "message": "%s"}\n' % (number, b"x" * (size - 33))


def lines(first: int, last: int, size: int = 120) -> bytes:
    """The lines first … last − 1."""
    return b"".join(line(number, size) for number in range(first, last))


def append(path: Path, data: bytes) -> None:
    """Write to the end of a file, creating it where there is none."""
    with path.open("ab") as file:
        file.write(data)


class Reader:
    """Follows `log` and its rotated names in one folder unless told otherwise."""

    def __init__(self, folder: Path, globs: tuple[str, ...] = ("log", "log.*"), **options: Any) -> None:
        options.setdefault("start", "beginning")
        self.settings = Settings("test", tuple(str(folder / each) for each in globs), **options)
        self.follower = Follower(self.settings)
        self.now = 1000.0
        self.blocks: list[Block] = []

    def read(self, seconds: float = 1.0, steps: int = 3) -> bytes:
        """What some polls hand out, a second apart so that every one of them looks at the names."""
        data = b""
        for _ in range(steps):
            self.now += seconds
            for block in self.follower.poll(self.now):
                self.follower.taken(block)
                self.blocks.append(block)
                data += block.data
        return data

    def restart(self, saved: Saved | None = None) -> None:
        """Stop and start again from what was saved (as bytes, as the state keeps it)."""
        kept = msgspec.msgpack.encode(self.follower.saved() if saved is None else saved)
        self.follower.close()
        self.follower = Follower(self.settings, msgspec.msgpack.decode(kept, type=Saved))

    def stop(self) -> None:
        """Stop without a trace but the saved positions, to be restarted later."""
        self.kept = self.follower.saved()
        self.follower.close()

    @property
    def status(self) -> Status:
        """The follower's own numbers."""
        return self.follower.status()

    @property
    def accounted(self) -> int:
        """The right side of the byte law."""
        status = self.status
        return status.bytes_read + status.bytes_skipped + status.lag_bytes + sum(status.bytes_lost.values())
