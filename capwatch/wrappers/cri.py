"""The CRI wrapper of Kubernetes nodes (`/var/log/pods/**`): time, stream, tags, text.

Program: containerd, CRI-O. Long lines come as parts tagged `P` and a last one tagged `F`, cut at bytes (16 KiB).
Example: 2026-03-03T09:15:02.430000190Z stdout F {"start_time": …}
Units: the time is RFC 3339 with nanoseconds, of writing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from typing import Final

from capwatch.dialect import Drop, Skip, Unwrapped
from capwatch.dialect.parts import LINE_BYTES, Parts
from capwatch.dialect.value import REFUSED, time

_LINE: Final = re.compile(rb"(\d{4}-\S+) (stdout|stderr) ([PF])(?::\S*)?(?: (.*))?", re.DOTALL)


class Cri:
    """Takes off time, stream and tags; joins the parts of each stream for itself."""

    def __init__(self, line_bytes: int = LINE_BYTES) -> None:
        self._parts = Parts(line_bytes)

    def unwrap(self, line: bytes) -> Unwrapped | Skip | Drop | None:
        """See `capwatch.dialect.Wrapper.unwrap`."""
        found = _LINE.fullmatch(line)
        if found is None:
            return Drop("malformed", "no CRI line")
        stamp, stream, tag, text = found.groups()
        at = time(stamp.decode(), UTC)
        if at is None or at == REFUSED:
            return Drop("malformed", "no CRI time")
        whole = self._parts.add(stream.decode(), text or b"", last=tag == b"F")
        return Unwrapped(whole, at) if isinstance(whole, bytes) else whole

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


WRAPPER = Cri
