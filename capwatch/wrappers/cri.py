"""The CRI wrapper of Kubernetes nodes (`/var/log/pods/**`): time, stream, tags, text.

Program: containerd, CRI-O. Long lines come as parts tagged `P` and a last one tagged `F`, cut at bytes (16 KiB).
Example: 2026-03-03T09:15:02.430000190Z stdout F {"start_time": …}
Units: the time is RFC 3339 with nanoseconds, of writing.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import Final

from capwatch.dialect import Drop, Skip, Unwrapped
from capwatch.dialect.parts import Parts
from capwatch.dialect.value import REFUSED, time

_LINE: Final = re.compile(rb"(\d{4}-\S+) (stdout|stderr) ([PF])(?::\S*)?(?: (.*))?", re.DOTALL)


class Cri(Parts):
    """Takes off time, stream and tags; joins the parts of each stream for itself."""

    def unwrap(self, line: bytes) -> Unwrapped | Skip | Drop | None:
        """See `capwatch.dialect.Wrapper.unwrap`."""
        found = _LINE.fullmatch(line)
        if found is None:
            return Drop("malformed", "no CRI line")
        stamp, stream, tag, text = found.groups()
        at = time(stamp.decode(), UTC)
        if at is None or at == REFUSED:
            return Drop("malformed", "no CRI time")
        whole = self.add(stream.decode(), text or b"", last=tag == b"F")
        return Unwrapped(whole, at) if isinstance(whole, bytes) else whole


WRAPPER = Cri
