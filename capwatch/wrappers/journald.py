r"""The wrapper of `journalctl -o json`: one journal entry a line, the text in `MESSAGE`.

Program: systemd's journal, exported with `journalctl -o json --all` (without `--all` large messages are null).
`MESSAGE` is a text, a list of byte values (not UTF-8 or with control characters), null, or a list of several values.
Lines of stdout over LineMax (48 KiB) come as parts marked `_LINE_BREAK: line-max`.
Example: {"__REALTIME_TIMESTAMP": "1772529302430000", "_SYSTEMD_UNIT": "envoy.service", "MESSAGE": "{\"duration\": …}"}
Units: times are microseconds since the epoch as texts; the sender's own, where there is one, is nearer to the line.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from capwatch.dialect import Drop, Skip, Unwrapped
from capwatch.dialect.parts import Parts
from capwatch.dialect.value import REFUSED, number

_COLOUR: Final = re.compile(rb"\x1b\[[0-9;]*m")
"""What a program prints for a terminal's sake; it makes journald keep the message as bytes."""


class Journald(Parts):
    """Takes the text out of `MESSAGE`; joins lines that the journal had cut, per stream."""

    def unwrap(self, line: bytes) -> Unwrapped | Skip | Drop | None:
        """See `capwatch.dialect.Wrapper.unwrap`."""
        if not line.strip() or line.startswith(b"-- "):
            return Skip("no entry")
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return Drop("malformed", "no journal entry")
        if not isinstance(entry, dict):
            return Drop("malformed", "no journal entry")
        if "MESSAGE" not in entry:
            return Skip("entry without a message")
        message = _bytes(entry["MESSAGE"])
        if message is None:
            return Drop("too_long", "MESSAGE is null: export with journalctl --all")
        stream = str(entry.get("_STREAM_ID", ""))
        whole = self.add(stream, message, last=entry.get("_LINE_BREAK") != "line-max")
        return Unwrapped(whole, _written(entry)) if isinstance(whole, bytes) else whole


def _bytes(message: object) -> bytes | None:
    """The message as it was written: the first of several; None where the journal left it out."""
    if isinstance(message, list) and message and not isinstance(message[0], int):
        message = message[0]
    if isinstance(message, str):
        return message.encode()
    if message is None:
        return None
    if not isinstance(message, list):
        raise TypeError("MESSAGE is neither text nor bytes")
    return _COLOUR.sub(b"", bytes(message))


def _written(entry: dict[str, object]) -> float | None:
    for name in ("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"):
        at = number(entry.get(name))
        if at is not None and at != REFUSED:
            return at / 1e6
    return None


WRAPPER = Journald
