"""Timestamped OpenMetrics of a whole replay, for `promtool tsdb create-blocks-from openmetrics`.

The format wants all samples of a family together, so each family goes to a file of its own first.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from typing import BinaryIO

from capwatch.exporters.text import Writer
from capwatch.ledger import Totals
from capwatch.ledger.series import Series
from capwatch.metrics import Metric


class OpenMetricsFile:
    """Gathers the samples of many moments and writes them as one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = tempfile.TemporaryDirectory(prefix="capwatch-")
        self._parts: dict[Metric, BinaryIO] = {}
        self._writer: Writer | None = None

    def write(self, shown: Iterable[Series], totals: Totals) -> None:
        """Add the samples of one moment, the event clock of ``totals``; nothing before the first event."""
        if not totals.clock:
            return
        self._writer = self._writer or Writer(totals.names)
        stamp = f" {totals.clock:.3f}\n".encode()
        for metric, lines in self._writer.families(shown):
            if metric not in self._parts:
                place = os.path.join(self._folder.name, metric.name)
                self._parts[metric] = open(place, "w+b")  # noqa: SIM115 - closed at the end
            self._parts[metric].write(lines.replace(b"\n", stamp))

    def close(self) -> None:
        """Put the families together."""
        with open(self._path, "wb") as whole:
            for metric, part in self._parts.items():
                whole.write(Writer.about(metric, openmetrics=True))
                part.seek(0)
                while piece := part.read(1 << 20):
                    whole.write(piece)
                part.close()
            whole.write(b"# EOF\n")
        self._folder.cleanup()
