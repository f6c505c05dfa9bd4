"""Reads pages of delimited Prometheus protobuf, written from the format's description and not from the writer."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

Fields = dict[int, list[int | bytes]]
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Histogram:
    """A native histogram: how many values are in each bucket of its schema, zeros apart."""

    count: int
    sum: float
    schema: int
    zero_threshold: float
    zeros: int
    buckets: dict[int, int]


@dataclass
class Page:
    """What a page says."""

    types: dict[str, int] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)
    """As the text format would have them: a histogram's buckets with `le`, a summary's quantiles with `quantile`."""
    natives: dict[tuple[str, Labels], Histogram] = field(default_factory=dict)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def fields(data: bytes) -> Fields:
    """The fields of a message."""
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value: int | bytes
        match key & 7:
            case 0:
                value, at = varint(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                size, at = varint(data, at)
                value, at = data[at : at + size], at + size
                assert len(value) == size
            case other:
                raise AssertionError(f"no wire type here: {other}")
        found.setdefault(key >> 3, []).append(value)
    return found


def read(page: bytes) -> Page:
    """A whole page."""
    found = Page()
    at = 0
    while at < len(page):
        size, at = varint(page, at)
        family = fields(page[at : at + size])
        at += size
        name = _bytes(family, 1).decode()
        assert name not in found.types
        found.types[name], found.helps[name] = _int(family, 3), _bytes(family, 2).decode()
        for metric in family[4]:
            _metric(found, name, fields(_as_bytes(metric)))
    return found


def _metric(found: Page, name: str, metric: Fields) -> None:
    pairs = [fields(_as_bytes(pair)) for pair in metric.get(1, [])]
    labels = tuple((_bytes(pair, 1).decode(), _bytes(pair, 2).decode()) for pair in pairs)
    match found.types[name]:
        case 0:
            found.samples[name, _sorted(labels)] = _double(fields(_bytes(metric, 3)), 1)
        case 1:
            found.samples[name, _sorted(labels)] = _double(fields(_bytes(metric, 2)), 1)
        case 2:
            _points(found, name, labels, fields(_bytes(metric, 4)), "quantile")
        case 4:
            inside = fields(_bytes(metric, 7))
            if 5 in inside:
                found.natives[name, _sorted(labels)] = _native(inside)
            else:
                _points(found, name, labels, inside, "le")
        case other:
            raise AssertionError(f"no type here: {other}")


def _points(found: Page, name: str, labels: Labels, inside: Fields, label: str) -> None:
    found.samples[f"{name}_count", _sorted(labels)] = float(_int(inside, 1))
    found.samples[f"{name}_sum", _sorted(labels)] = _double(inside, 2)
    for raw in inside.get(3, []):
        point = fields(_as_bytes(raw))
        if label == "le":
            at, value, own = _double(point, 2), float(_int(point, 1)), f"{name}_bucket"
        else:
            at, value, own = _double(point, 1), _double(point, 2), name
        spelt = "+Inf" if at == float("inf") else repr(at)
        found.samples[own, _sorted((*labels, (label, spelt)))] = value


def _native(inside: Fields) -> Histogram:
    deltas = [_signed(number) for packed in inside.get(13, []) for number in _numbers(_as_bytes(packed))]
    buckets: dict[int, int] = {}
    at = count = 0
    for raw in inside.get(12, []):
        span = fields(_as_bytes(raw))
        at += _signed(_int(span, 1))
        for _ in range(_int(span, 2)):
            count += deltas.pop(0)
            buckets[at] = count
            at += 1
    assert deltas == []
    return Histogram(
        _int(inside, 1), _double(inside, 2), _signed(_int(inside, 5)), _double(inside, 6), _int(inside, 7), buckets
    )


def _numbers(packed: bytes) -> Iterator[int]:
    at = 0
    while at < len(packed):
        number, at = varint(packed, at)
        yield number


def _signed(number: int) -> int:
    return number >> 1 if number % 2 == 0 else -(number >> 1) - 1


def _sorted(labels: Labels) -> Labels:
    return tuple(sorted(labels))


def _as_bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def _bytes(message: Fields, place: int) -> bytes:
    (value,) = message[place]
    return _as_bytes(value)


def _int(message: Fields, place: int) -> int:
    (value,) = message[place]
    assert isinstance(value, int)
    return value


def _double(message: Fields, place: int) -> float:
    return float(struct.unpack("<d", _bytes(message, place))[0])
