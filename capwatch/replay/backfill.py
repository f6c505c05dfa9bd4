"""Timestamped OpenMetrics of a whole replay, for `promtool tsdb create-blocks-from openmetrics`.

The format wants all samples of a family together, and in a family all samples of a series; they come moment by moment.
So each family goes to a file of its own first, in long pieces of one series, with an index of where those are.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, ClassVar

from capwatch.exporters.text import Writer
from capwatch.ledger import Totals
from capwatch.metrics import Kind, Metric
from capwatch.pipeline import Pipeline
from capwatch.seen import Meter
from capwatch.view import showing, view


class OpenMetricsFile:
    """Gathers the samples of many moments and writes them as one file."""

    HELD: ClassVar = 32 << 20
    """Bytes of samples in memory until they go to the files of their families: memory does not grow with the weeks."""

    def __init__(self, path: str, families: frozenset[str] | None, disabled: frozenset[str]) -> None:
        """Begin; raises OSError where the file cannot be written.

        Args:
            path: of the file.
            families, disabled: what to show, see `capwatch.view.view`.
        """
        self._whole = open(path, "wb")  # noqa: SIM115 - closed at the end
        self._folder = tempfile.TemporaryDirectory(prefix="capwatch-")
        self._chosen, self._disabled = families, disabled
        self._families: dict[Metric, _Family] = {}
        self._meters: list[Meter] | None = None
        self._writer: Writer | None = None
        self._held = 0

    def write(self, pipeline: Pipeline, totals: Totals) -> None:
        """Add the samples of one moment, the event clock of ``totals``; nothing before the first event."""
        if not totals.clock:
            return
        if self._meters is None:
            self._meters = showing(pipeline.meters, pipeline.totals(), self._chosen)
        self._writer = self._writer or Writer(totals.names)
        stamp = f" {totals.clock:.3f}\n"
        shown = view(self._meters, totals, families=self._chosen, disabled=self._disabled)
        for metric, keys, lines in self._writer.series(shown):
            if metric not in self._families:
                self._families[metric] = _Family(os.path.join(self._folder.name, metric.name))
            family = self._families[metric]
            for key, text in zip(keys.tolist(), lines, strict=True):
                for series, samples in _apart(metric, key, text):
                    self._held += family.add(series, samples.replace("\n", stamp).encode())
        if self._held > self.HELD:
            self._held = 0
            for family in self._families.values():
                family.spill()

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
    """The samples of one metric: written as they come, read series by series in the order of their first samples."""

    def __init__(self, path: str) -> None:
        self.file: BinaryIO = open(path, "w+b")  # noqa: SIM115 - closed with the whole
        self._size = 0
        self._held: defaultdict[int | str, bytearray] = defaultdict(bytearray)
        self._places: defaultdict[int | str, list[tuple[int, int]]] = defaultdict(list)
        """Series → offset and length of each of its pieces in the file."""

    def add(self, series: int | str, piece: bytes) -> int:
        """Append samples of one series; their length."""
        self._held[series] += piece
        return len(piece)

    def spill(self) -> None:
        """Write what is held."""
        for series, held in self._held.items():
            self._places[series].append((self._size, len(held)))
            self._size += self.file.write(held)
        self._held.clear()

    def __iter__(self) -> Iterator[bytes]:
        self.spill()
        for places in self._places.values():
            for offset, length in places:
                self.file.seek(offset)
                yield self.file.read(length)
