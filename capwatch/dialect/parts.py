"""Lines that a container runtime wrote in parts: joined per stream, bounded in bytes and in age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf
from typing import Final

import msgspec

from capwatch.dialect.verdict import Drop

LINE_BYTES: Final = 16 * 2**20
"""The default of `limits.line_bytes`."""
LONGEST_OPEN_S: Final = 60.0
"""How long a line may stay open: a writer sends the parts of one line within milliseconds."""


class _Open(msgspec.Struct):
    """A line whose end has not come yet."""

    pieces: list[bytes] = []
    size: int = 0
    parts: int = 0
    since: float | None = None
    """When `expire` first saw it; None before that."""
    too_long: bool = False


class Parts:
    """Joins the parts of lines, one open line a stream.

    Memory is bounded: a line over ``line_bytes`` is let go at once and dropped when it ends, and all open lines
    together hold at most twice that.
    """

    def __init__(self, line_bytes: int) -> None:
        self._line_bytes = line_bytes
        self._open: dict[str, _Open] = {}
        self._released: Counter[str] = Counter()

    def add(self, stream: str, piece: bytes, *, last: bool) -> bytes | Drop | None:
        """The whole line where ``piece`` is its last part; a drop where it grew too long; None while it goes on."""
        if last and stream not in self._open:
            return piece if len(piece) <= self._line_bytes else Drop("too_long")
        line = self._open.setdefault(stream, _Open())
        line.pieces.append(piece)
        line.size += len(piece)
        if line.size > self._line_bytes or sum(one.size for one in self._open.values()) > 2 * self._line_bytes:
            line.pieces, line.size, line.too_long = [], 0, True
        if not last:
            line.parts += 1
            return None
        del self._open[stream]
        self._released["skip"] += line.parts
        return Drop("too_long") if line.too_long else b"".join(line.pieces)

    def released(self) -> Mapping[str, int]:
        """See `capwatch.dialect.Wrapper.released`."""
        released, self._released = self._released, Counter()
        return released

    def expire(self, now: float) -> None:
        """Give up lines that stayed open longer than `LONGEST_OPEN_S` since the first call that saw them.

        The age counts from that call and not from the line's own time, since a backlog is old without being late.
        Infinity gives up all, for the end of a finished file.
        """
        for stream, line in list(self._open.items()):
            line.since = now if line.since is None else line.since
            if now == inf or now - line.since > LONGEST_OPEN_S:
                del self._open[stream]
                self._released["skip"] += line.parts - 1
                self._released["too_long" if line.too_long else "partial"] += 1

    def save(self) -> object:
        """The open lines as plain builtins; bytes are spelled in Latin-1, which has a character for each."""
        return {
            stream: [b"".join(line.pieces).decode("latin-1"), line.parts, line.since, line.too_long]
            for stream, line in self._open.items()
        }

    def load(self, saved: object) -> None:
        """Open again what `save` gave."""
        for stream, (text, parts, since, too_long) in msgspec.convert(saved, _SAVED).items():
            piece = text.encode("latin-1")
            self._open[stream] = _Open([piece], len(piece), parts, since, too_long)


_SAVED: Final = dict[str, tuple[str, int, float | None, bool]]
