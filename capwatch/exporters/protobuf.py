"""Protobuf exposition: delimited `io.prometheus.client.MetricFamily` messages, the only form with native histograms.

The wire format is that of Protocol Buffers, written by hand since a page needs five message types and no reading. A
series is encoded once and its bytes kept until its values change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from struct import Struct
from typing import Final

import numpy as np

from capwatch.ledger import Keys, Names
from capwatch.ledger.native import Native
from capwatch.ledger.series import Column, Series
from capwatch.metrics import Kind, Metric
from capwatch.record import Ints

PROTOBUF: Final = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

_TYPES: Final[Mapping[Kind, int]] = {
    Kind.COUNTER: 0,
    Kind.GAUGE: 1,
    Kind.SUMMARY: 2,
    Kind.HISTOGRAM: 4,
    Kind.NATIVE: 4,
}
"""`MetricType`."""
_PLACES: Final[Mapping[Kind, int]] = {
    Kind.GAUGE: 2,
    Kind.COUNTER: 3,
    Kind.SUMMARY: 4,
    Kind.HISTOGRAM: 7,
    Kind.NATIVE: 7,
}
"""The field of `Metric` that holds the value."""
_ZERO_WIDTH: Final = 0.0
"""Up to where a native histogram's values count as 0: the grid keeps exact zeros apart, and only them."""

_VARINT, _FIXED64, _BYTES = 0, 1, 2  # wire types
_DOUBLE = Struct("<d")


def varint(number: int) -> bytes:
    r"""A whole number from 0 on, seven bits a byte, the lowest first.

    >>> varint(1), varint(300)
    (b'\x01', b'\xac\x02')
    """
    if number < 0x80:  # nearly all are
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> int:
    """A signed number as one from 0 on, small where it is near 0: what sint32 and sint64 are on the wire.

    >>> [zigzag(number) for number in (0, -1, 1, -2)]
    [0, 1, 2, 3]
    """
    return number << 1 if number >= 0 else -number * 2 - 1


def family(name: str, text: str, kind: Kind, samples: Iterable[tuple[Mapping[str, str], float]]) -> bytes:
    """A family of counters or gauges that is not in the catalogue: (labels, value) of each sample."""
    place = _PLACES[kind]
    content = (
        _part(4, b"".join(_label(*pair) for pair in labels.items()) + _part(place, _double(1, value)))
        for labels, value in samples
    )
    return _family(name, text, kind, b"".join(content))


@dataclass(slots=True)
class Writer:
    """Writes pages, and encodes again only what has changed since its last page."""

    names: Names
    encoded: int = 0
    """Series encoded so far: what a page costs, beside putting it together."""
    _columns: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    _kept: dict[str, dict[int, tuple[object, bytes]]] = field(default_factory=dict)
    """By metric and key: a sign of the values that were encoded, and as what."""

    def page(self, shown: Iterable[Series], natives: Iterable[Native] = (), extra: bytes = b"") -> bytes:
        """One page.

        Args:
            shown: the series, a metric's only once; order is kept.
            natives: native histograms, a metric's only once; they follow.
            extra: families from elsewhere, see `family`.
        """
        contents = [(one.metric, self._series(one)) for one in shown]
        contents += [(one.metric, self._natives(one)) for one in natives]
        return b"".join(_family(one.name, one.help, one.kind, content) for one, content in contents if content) + extra

    def _series(self, series: Series) -> bytes:
        metric, columns = series.metric, tuple(series.columns)
        if self._columns.get(metric.name) != columns:
            self._columns[metric.name] = columns
            self._kept.pop(metric.name, None)
        write = _points if metric.kind in (Kind.SUMMARY, Kind.HISTOGRAM) else _plain
        values = np.ascontiguousarray(series.values)

        def encode(row: int, labels: bytes) -> bytes:
            return write(metric.kind, columns, values[row].tolist(), labels)

        return self._encoded(metric, series.axes, series.keys, [row.tobytes() for row in values], encode)

    def _natives(self, natives: Native) -> bytes:
        bounds = natives.starts.tolist()
        totals = np.concatenate([[0], np.cumsum(natives.counts)])[natives.starts]
        # Buckets are for life and only ever grow, so equal count and sum mean equal buckets.
        signs = list(zip((np.diff(totals) + natives.zeros).tolist(), natives.sums.tolist(), strict=True))

        def encode(row: int, labels: bytes) -> bytes:
            part = slice(bounds[row], bounds[row + 1])
            buckets = _buckets(natives.buckets[part].tolist(), natives.counts[part].tolist())
            count, total = signs[row]
            head = _whole(1, count) + _double(2, total) + _whole(5, zigzag(int(natives.schemas[row])))
            zeros = _double(6, _ZERO_WIDTH) + _whole(7, int(natives.zeros[row]))
            return _part(4, labels + _part(_PLACES[Kind.NATIVE], head + zeros + buckets))

        return self._encoded(natives.metric, natives.axes, natives.keys, signs, encode)

    def _encoded(
        self, metric: Metric, axes: Keys, keys: Ints, signs: Sequence[object], encode: Callable[[int, bytes], bytes]
    ) -> bytes:
        """The series of a metric one after the other; those whose sign is new by ``encode(row, labels)``."""
        before = self._kept.get(metric.name, {})
        after = self._kept[metric.name] = {}
        changed = []
        for row, (key, sign) in enumerate(zip(keys.tolist(), signs, strict=True)):
            kept = before.get(key)
            if kept is None or kept[0] != sign:
                changed.append(row)
                kept = (sign, b"")
            after[key] = kept
        chosen = keys[changed]
        for row, key, labels in zip(changed, chosen.tolist(), self._labels(axes, chosen), strict=True):
            after[key] = (signs[row], encode(row, labels))
        self.encoded += len(changed)
        return b"".join(content for _, content in after.values())

    def _labels(self, axes: Keys, keys: Ints) -> Iterator[bytes]:
        """The labels of each series."""
        columns = []
        for axis, ids in zip(axes.axes, axes.unpack(keys), strict=True):
            texts = axis.values or self.names.texts(axis.name)
            spelt = {one: _label(axis.name, texts[one]) for one in np.unique(ids).tolist()}
            columns.append([spelt[one] for one in ids.tolist()])
        return map(b"".join, zip(*columns, strict=True)) if columns else iter([b""] * len(keys))


def _family(name: str, text: str, kind: Kind, content: bytes) -> bytes:
    head = _part(1, name.encode()) + _part(2, text.encode()) + _whole(3, _TYPES[kind])
    return varint(len(head) + len(content)) + head + content


def _plain(kind: Kind, columns: Sequence[Column], values: Sequence[float], labels: bytes) -> bytes:
    """Each column as a metric of its own."""
    parts = []
    for column, value in zip(columns, values, strict=True):
        if not isnan(value):
            own = b"".join(_label(*pair) for pair in column.labels)
            parts.append(_part(4, labels + own + _part(_PLACES[kind], _double(1, value))))
    return b"".join(parts)


def _points(kind: Kind, columns: Sequence[Column], values: Sequence[float], labels: bytes) -> bytes:
    """All columns as one summary or classic histogram: count, sum, and a point for each quantile or bucket."""
    parts = []
    for column, value in zip(columns, values, strict=True):
        if isnan(value):
            continue
        if column.suffix == "_count":
            parts.append(_whole(1, int(value)))
        elif column.suffix == "_sum":
            parts.append(_double(2, value))
        elif kind is Kind.SUMMARY:
            parts.append(_part(3, _double(1, float(column.labels[0][1])) + _double(2, value)))
        else:
            parts.append(_part(3, _whole(1, int(value)) + _double(2, float(column.labels[0][1]))))
    return _part(4, labels + _part(_PLACES[kind], b"".join(parts))) if parts else b""


def _buckets(buckets: Sequence[int], counts: Sequence[int]) -> bytes:
    """Spans of neighbouring buckets, each by the gap before it and its length, and the counts as differences."""
    spans: list[list[int]] = []
    following = 0  # the first span's gap is counted from bucket 0
    for bucket in buckets:
        if not spans or bucket != following:
            spans.append([bucket - following, 0])
        spans[-1][1] += 1
        following = bucket + 1
    deltas = b"".join(varint(zigzag(count - before)) for before, count in zip((0, *counts), counts, strict=False))
    ranges = b"".join(_part(12, _whole(1, zigzag(gap)) + _whole(2, length)) for gap, length in spans)
    return ranges + (_part(13, deltas) if deltas else b"")


def _whole(place: int, number: int) -> bytes:
    return bytes((place << 3 | _VARINT,)) + varint(number)


def _double(place: int, number: float) -> bytes:
    return bytes((place << 3 | _FIXED64,)) + _DOUBLE.pack(number)


def _part(place: int, content: bytes) -> bytes:
    return bytes((place << 3 | _BYTES,)) + varint(len(content)) + content


def _label(name: str, value: str) -> bytes:
    return _part(1, _part(1, name.encode()) + _part(2, value.encode()))
