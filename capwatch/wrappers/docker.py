r"""The wrapper of Docker's json-file driver: one JSON object a line, the text in `log`.

Program: Docker Engine (`/var/lib/docker/containers/*/*-json.log`). Long lines come as parts (16 KiB): all but the
last have no line feed at the end of `log`.
Example: {"log": "{\"start_time\": …}\n", "stream": "stdout", "time": "2026-03-03T09:15:02.430000190Z"}
Units: the time is RFC 3339 with nanoseconds, of writing.
"""

from __future__ import annotations

from datetime import UTC

import msgspec

from capwatch.dialect import Drop, Skip, Unwrapped
from capwatch.dialect.parts import Parts
from capwatch.dialect.value import REFUSED, time


class _Entry(msgspec.Struct):
    log: str
    stream: str = "stdout"
    time: str | None = None


_read = msgspec.json.Decoder(_Entry).decode


class Docker(Parts):
    """Takes the text out of `log`; joins the parts of each stream for itself."""

    def unwrap(self, line: bytes) -> Unwrapped | Skip | Drop | None:
        """See `capwatch.dialect.Wrapper.unwrap`."""
        if not line.strip():
            return Skip("blank line")
        try:
            entry = _read(line)
        except msgspec.DecodeError:
            return Drop("malformed", "no line of Docker's json-file driver")
        whole = self.add(entry.stream, entry.log.removesuffix("\n").encode(), last=entry.log.endswith("\n"))
        at = time(entry.time, UTC)
        return Unwrapped(whole, None if at == REFUSED else at) if isinstance(whole, bytes) else whole


WRAPPER = Docker
