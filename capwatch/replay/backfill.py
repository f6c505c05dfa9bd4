"""Timestamped OpenMetrics of a whole replay, for `promtool tsdb create-blocks-from openmetrics`.

The format wants all samples of a family together, and in a family all samples of a series; they come moment by moment.
So each family goes to a file of its own first, with an index of where its series are.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import BinaryIO

from capwatch.exporters.text import Writer
from capwatch.ledger import Totals
from capwatch.ledger.series import Series
from capwatch.metrics import Kind, Metric


class OpenMetricsFile:
    """Gathers the samples of many moments and writes them as one file."""

    def __init__(self, path: str) -> None:
        """Begin; raises OSError where the file cannot be written."""
        self._whole = open(path, "wb")  # noqa: SIM115 - closed at the end
        self._folder = tempfile.TemporaryDirectory(prefix="capwatch-")
        self._families: dict[Metric, _Family] = {}
        self._writer: Writer | None = None

    def write(self, shown: Iterable[Series], totals: Totals) -> None:
        """Add the samples of one moment, the event clock of ``totals``; nothing before the first event."""
        if not totals.clock:
            return
        self._writer = self._writer or Writer(totals.names)
        stamp = f" {totals.clock:.3f}\n"
        for metric, keys, lines in self._writer.series(shown):
            if metric not in self._families:
                self._families[metric] = _Family(os.path.join(self._folder.name, metric.name))
            family = self._families[metric]
            for key, text in zip(keys.tolist(), lines, strict=True):
                for series, samples in _apart(metric, key, text):
                    family.add(series, samples.replace("\n", stamp).encode())

    def __enter__(self) -> OpenMetricsFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the families together, unless something went wrong."""
        with self._folder, self._whole as whole:
            for metric, family in self._families.items():
                with family.file:
                    if kind is None:
                        whole.write(Writer.about(metric, openmetrics=True))
                        whole.writelines(family)
            if kind is None:
                whole.write(b"# EOF\n")


def _apart(metric: Metric, key: int, text: str) -> Iterator[tuple[int | str, str]]:
    """The samples of one key by series: those of a summary or histogram are one, all others differ in their labels."""
    if metric.kind in (Kind.SUMMARY, Kind.HISTOGRAM):
        if text:
            yield key, text
        return
    for line in text.split("\n")[:-1]:
        yield line.rpartition(" ")[0], f"{line}\n"


class _Family:
    """The samples of one metric: written as they come, read series by series."""

    def __init__(self, path: str) -> None:
        self.file: BinaryIO = open(path, "w+b")  # noqa: SIM115 - closed with the whole
        self._size = 0
        self._places: defaultdict[int | str, array[int]] = defaultdict(lambda: array("q"))
        """Series → offset and length of each of its pieces, in turn."""

    def add(self, series: int | str, piece: bytes) -> None:
        """Append samples of one series."""
        self.file.write(piece)
        self._places[series].extend((self._size, len(piece)))
        self._size += len(piece)

    def __iter__(self) -> Iterator[bytes]:
        for places in self._places.values():
            for offset, length in zip(places[::2], places[1::2], strict=True):
                self.file.seek(offset)
                yield self.file.read(length)
