"""Lines that a container runtime wrote in parts: joined per stream, bounded in bytes and in age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

import msgspec
from xxhash import xxh3_64_hexdigest

from capwatch.dialect.verdict import Drop

LINE_BYTES: Final = 16 * 2**20
"""The default of `limits.line_bytes`."""
LONGEST_OPEN_S: Final = 60.0
"""How long a line may stay open: a writer sends the parts of one line within milliseconds."""


LONGEST_NAME: Final = 64
"""Characters of a stream's name as it is; a longer one goes by its hash."""
MOST_OPEN: Final = 1000
"""Streams with an open line at most, the oldest is given up: more than services that cut lines at one moment."""


@dataclass(slots=True)
class _Open:
    """A line whose end has not come yet."""

    data: bytearray = field(default_factory=bytearray)
    parts: int = 0
    since: float | None = None
    """When `expire` first saw it; None before that."""
    too_long: bool = False


class Parts:
    """Joins the parts of lines, one open line a stream.

    Memory is bounded, whatever the parts are: a line over ``line_bytes`` is let go at once and dropped when it ends,
    all open lines together hold at most twice that, and there are at most `MOST_OPEN` of them.
    """

    def __init__(self, line_bytes: int = LINE_BYTES) -> None:
        self.held = 0
        """Bytes of all open lines."""
        self._line_bytes = line_bytes
        self._open: dict[str, _Open] = {}
        self._released: Counter[str] = Counter()

    def add(self, stream: str, piece: bytes, *, last: bool) -> bytes | Drop | None:
        """The whole line where ``piece`` is its last part; a drop where it grew too long; None while it goes on."""
        stream = stream if len(stream) <= LONGEST_NAME else xxh3_64_hexdigest(stream.encode("utf-8", "replace"))
        line = self._open.get(stream)
        if line is None:
            if last:
                return piece if len(piece) <= self._line_bytes else Drop("too_long")
            if len(self._open) >= MOST_OPEN:
                self._give_up(next(iter(self._open)))
            line = self._open[stream] = _Open()
        line.data += piece
        self.held += len(piece)
        if len(line.data) > self._line_bytes or self.held > 2 * self._line_bytes:
            self.held -= len(line.data)
            line.data, line.too_long = bytearray(), True
        if not last:
            line.parts += 1
            return None
        del self._open[stream]
        self.held -= len(line.data)
        self._released["skip"] += line.parts
        return Drop("too_long") if line.too_long else bytes(line.data)

    def released(self) -> Mapping[str, int]:
        """See `capwatch.dialect.Wrapper.released`."""
        released, self._released = self._released, Counter()
        return released

    def expire(self, now: float) -> None:
        """Give up lines that stayed open longer than `LONGEST_OPEN_S` since the first call that saw them.

        The age counts from that call and not from the line's own time, since a backlog is old without being late. A
        clock that has begun anew, as with the machine, begins it anew.
        Infinity gives up all, for the end of a finished file.
        """
        for stream, line in list(self._open.items()):
            line.since = now if line.since is None else min(line.since, now)
            if now == inf or now - line.since > LONGEST_OPEN_S:
                self._give_up(stream)

    def _give_up(self, stream: str) -> None:
        line = self._open.pop(stream)
        self.held -= len(line.data)
        self._released["skip"] += line.parts - 1
        self._released["too_long" if line.too_long else "partial"] += 1

    def save(self) -> object:
        """The open lines as plain builtins; bytes are spelled in Latin-1, which has a character for each."""
        return {
            stream: [line.data.decode("latin-1"), line.parts, line.since, line.too_long]
            for stream, line in self._open.items()
        }

    def load(self, saved: object) -> None:
        """Open again what `save` gave."""
        for stream, (text, parts, since, too_long) in msgspec.convert(saved, _SAVED).items():
            self._open[stream] = _Open(bytearray(text, "latin-1"), parts, since, too_long)
            self.held += len(text)


_SAVED: Final = dict[str, tuple[str, int, float | None, bool]]
