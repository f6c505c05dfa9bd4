"""Text exposition: Prometheus 0.0.4 and OpenMetrics 1.0, from one set of sample lines.

Both formats write a sample the same way, one canonical spelling of numbers included; they differ in the lines about
families and in the end. A series is written once and its line kept until its value changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from capwatch.ledger import Names
from capwatch.ledger.series import Series
from capwatch.metrics import Kind, Metric
from capwatch.record import Bools, Floats, Ints

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_TYPES: Final[Mapping[Kind, str]] = {
    Kind.COUNTER: "counter",
    Kind.GAUGE: "gauge",
    Kind.SUMMARY: "summary",
    Kind.HISTOGRAM: "histogram",
}
"""Native histograms have no text form that servers read; they go by protobuf only."""


def number(value: float) -> str:
    """The canonical spelling of a sample's value and of a number in a label.

    >>> number(1.0), number(0.1), number(math.inf)
    ('1.0', '0.1', '+Inf')
    """
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def label(value: str) -> str:
    r"""A label value with the escapes of both formats.

    >>> print(label('a"b\nc'))
    a\"b\nc
    """
    return value.translate(_ESCAPES)


@dataclass(slots=True)
class _Family:
    """The lines of one metric as they were last written."""

    keys: Ints
    values: Floats
    columns: tuple[object, ...]
    lines: list[str]
    text: bytes = b""


@dataclass(slots=True)
class Writer:
    """Writes pages, and writes again only what has changed since its last page."""

    names: Names
    rendered: int = 0
    """Series written anew so far: what a page costs, beside putting it together."""
    _families: dict[str, _Family] = field(default_factory=dict)

    def page(self, shown: Iterable[Series], *, openmetrics: bool = False, extra: bytes = b"") -> bytes:
        """One page.

        Args:
            shown: the series, a metric's only once; order is kept.
            openmetrics: OpenMetrics 1.0 instead of Prometheus text 0.0.4.
            extra: families written elsewhere, in the same format and without an end.
        """
        parts = [self.about(metric, openmetrics=openmetrics) + text for metric, text in self.families(shown)]
        return b"".join((*parts, extra, b"# EOF\n" if openmetrics else b""))

    def families(self, shown: Iterable[Series]) -> Iterator[tuple[Metric, bytes]]:
        """The sample lines of each metric that has a text form and samples."""
        for series in shown:
            if series.metric.kind in _TYPES:
                text = self._family(series).text
                if text:
                    yield series.metric, text

    def series(self, shown: Iterable[Series]) -> Iterator[tuple[Metric, Ints, list[str]]]:
        """For each metric that has a text form, its keys and the sample lines of each key in one text."""
        for series in shown:
            if series.metric.kind in _TYPES:
                yield series.metric, series.keys, self._family(series).lines

    @staticmethod
    def about(metric: Metric, *, openmetrics: bool) -> bytes:
        """The lines about a family."""
        name = metric.family if openmetrics else metric.name
        lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {_TYPES[metric.kind]}"]
        if openmetrics and metric.unit and metric.family.endswith(f"_{metric.unit}"):
            lines.append(f"# UNIT {name} {metric.unit}")
        return ("\n".join(lines) + "\n").encode()

    def _family(self, series: Series) -> _Family:
        columns = tuple(series.columns)
        kept = self._families.get(series.metric.name)
        if kept is None or kept.columns != columns or not np.array_equal(kept.keys, series.keys):
            old = (
                {}
                if kept is None or kept.columns != columns
                else dict(zip(kept.keys.tolist(), kept.lines, strict=True))
            )
            changed = self._changed(kept, series) if old else np.ones(len(series.keys), np.bool_)
            lines = [old.get(key, "") for key in series.keys.tolist()]
            kept = _Family(series.keys, series.values, columns, lines)
        else:
            same = (kept.values == series.values) | (np.isnan(kept.values) & np.isnan(series.values))
            changed = ~same.all(axis=1)
            kept.values = series.values
            if not changed.any():
                return kept
        self._write(kept, series, np.flatnonzero(changed))
        self._families[series.metric.name] = kept
        return kept

    @staticmethod
    def _changed(kept: _Family | None, series: Series) -> Bools:
        """Which series are new, or have other values than the line that is kept of them."""
        assert kept is not None  # noqa: S101 - for the type checker
        place = np.searchsorted(kept.keys, series.keys)
        place[place == len(kept.keys)] = 0
        if not len(kept.keys):
            return np.ones(len(series.keys), np.bool_)
        before = kept.values[place]
        same = ((before == series.values) | (np.isnan(before) & np.isnan(series.values))).all(axis=1)
        changed: Bools = ~(same & (kept.keys[place] == series.keys))
        return changed

    def _write(self, family: _Family, series: Series, rows: Ints) -> None:
        """Write the lines of some series again."""
        name, labelled = series.metric.name, bool(series.axes.axes)
        tails = [",".join(f'{one}="{label(text)}"' for one, text in column.labels) for column in series.columns]
        heads = [
            name + column.suffix + ("{" if labelled or tail else "")
            for column, tail in zip(series.columns, tails, strict=True)
        ]
        tails = [f"{',' if labelled and tail else ''}{tail}{'}' if labelled or tail else ''} " for tail in tails]
        for row, labels in zip(rows.tolist(), self._labels(series, rows), strict=True):
            values = series.values[row].tolist()
            family.lines[row] = "".join(
                f"{head}{labels}{tail}{value!r}\n" if value < math.inf else f"{head}{labels}{tail}+Inf\n"
                for head, tail, value in zip(heads, tails, values, strict=True)
                if value == value  # noqa: PLR0124 - NaN is an absent sample
            )
        self.rendered += len(rows)
        family.text = "".join(family.lines).encode()

    def _labels(self, series: Series, rows: Ints) -> list[str]:
        """The labels of some series, without braces."""
        columns = []
        for axis, ids in zip(series.axes.axes, series.axes.unpack(series.keys[rows]), strict=True):
            texts = axis.values or self.names.texts(axis.name)
            spelled = {one: f'{axis.name}="{label(texts[one])}"' for one in np.unique(ids).tolist()}
            columns.append(map(spelled.__getitem__, ids.tolist()))
        return [",".join(parts) for parts in zip(*columns, strict=True)] if columns else [""] * len(rows)
