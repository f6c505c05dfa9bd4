r"""The wrapper of Docker's json-file driver: one JSON object a line, the text in `log`.

Program: Docker Engine (`/var/lib/docker/containers/*/*-json.log`). Long lines come as parts (16 KiB): all but the
last have no line feed at the end of `log`.
Example: {"log": "{\"start_time\": …}\n", "stream": "stdout", "time": "2026-03-03T09:15:02.430000190Z"}
Units: the time is RFC 3339 with nanoseconds, of writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC

import msgspec

from capwatch.dialect import Drop, Skip, Unwrapped
from capwatch.dialect.parts import LINE_BYTES, Parts
from capwatch.dialect.value import REFUSED, time


class _Entry(msgspec.Struct):
    log: str
    stream: str = "stdout"
    time: str | None = None


_read = msgspec.json.Decoder(_Entry).decode


class Docker:
    """Takes the text out of `log`; joins the parts of each stream for itself."""

    def __init__(self, line_bytes: int = LINE_BYTES) -> None:
        self._parts = Parts(line_bytes)

    def unwrap(self, line: bytes) -> Unwrapped | Skip | Drop | None:
        """See `capwatch.dialect.Wrapper.unwrap`."""
        if not line.strip():
            return Skip("blank line")
        try:
            entry = _read(line)
        except msgspec.DecodeError:
            return Drop("malformed", "no line of Docker's json-file driver")
        whole = self._parts.add(entry.stream, entry.log.removesuffix("\n").encode(), last=entry.log.endswith("\n"))
        at = time(entry.time, UTC)
        return Unwrapped(whole, None if at == REFUSED else at) if isinstance(whole, bytes) else whole

    @property
    def held(self) -> int:
        """See `Parts.held`."""
        return self._parts.held

    def released(self) -> Mapping[str, int]:
        """See `capwatch.dialect.Wrapper.released`."""
        return self._parts.released()

    def expire(self, now: float) -> None:
        """See `Parts.expire`."""
        self._parts.expire(now)

    def save(self) -> object:
        """The open parts, as plain builtins."""
        return self._parts.save()

    def load(self, saved: object) -> None:
        """Remember again what `save` gave."""
        self._parts.load(saved)


WRAPPER = Docker
