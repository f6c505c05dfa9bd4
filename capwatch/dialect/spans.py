"""OTLP JSON taken apart: spans and log records with plain attributes, and who called whom within one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from capwatch.dialect.value import REFUSED, number, text

Attributes = Mapping[str, object]
Json = Mapping[str, object]

DEEPEST: Final = 64
"""Ancestors looked at; a longer chain, or a circle, is an error of the exporter."""
_HEX: Final = re.compile(r"[0-9A-Fa-f]+")
SCALARS: Final = ("stringValue", "intValue", "doubleValue", "boolValue")
SCOPES: Final = {
    "resourceSpans": (("scopeSpans", "instrumentationLibrarySpans"), "spans"),
    "resourceLogs": (("scopeLogs", "instrumentationLibraryLogs"), "logRecords"),
}
"""Where the items are, in OTLP 1 and in versions before 0.15."""


@dataclass(eq=False, slots=True)
class Item:
    """A span or a log record."""

    raw: Json
    attributes: dict[str, object]
    """Of the resource, and over them its own. Structured values are left out: nothing of capwatch's is in them."""
    trace: str | None = None
    span: str | None = None
    parent: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    ancestors: list[Item] = field(default_factory=list)
    """Those in the same line, the nearest first."""

    @property
    def seconds(self) -> float:
        """How long it took; 0 where that is not told, or the clock went back."""
        told = (self.started_at, self.ended_at)
        if None in told or REFUSED in told:
            return 0.0
        return max(cast("float", self.ended_at) - cast("float", self.started_at), 0.0)


def items(line: Json, signal: str) -> list[Item]:
    """The spans or log records of one line, in order; raises the errors of bad data where it has another shape."""
    scopes, leaves = SCOPES[signal]
    found = []
    for resource in _objects(line[signal]):
        told = attributes(cast("Json", resource.get("resource") or {}))
        for scope in (one for name in scopes for one in _objects(resource.get(name))):
            found += [_item(raw, told) for raw in _objects(scope.get(leaves))]
    spans: dict[tuple[str | None, str | None], Item] = {(one.trace, one.span): one for one in found if one.span}
    for one in found:
        one.ancestors = list(_ancestors(one, spans))
    return found


def attributes(of: Json) -> dict[str, object]:
    """The attributes of an object, each value out of its wrapper; lists of plain values stay lists."""
    return {str(one["key"]): _plain(one.get("value")) for one in _objects(of.get("attributes")) if "key" in one}


def _item(raw: Json, resource: Attributes) -> Item:
    start, end = (number(raw.get(name), 1e-9) or None for name in ("startTimeUnixNano", "endTimeUnixNano"))
    trace, span, parent = (_identity(text(raw.get(name))) for name in ("traceId", "spanId", "parentSpanId"))
    return Item(raw, {**resource, **attributes(raw)}, trace, span, parent, start, end)


def _identity(told: str | None) -> str | None:
    """An id in one spelling: hexadecimal in either case is the same one, anything else is what it is."""
    return told.lower() if told and _HEX.fullmatch(told) else told or None


def _plain(value: object) -> object:
    if not isinstance(value, dict):
        return None
    if "arrayValue" in value:
        return [_plain(one) for one in _objects((value["arrayValue"] or {}).get("values"))]
    return next((value[kind] for kind in SCALARS if kind in value), None)


def _objects(value: object) -> list[Json]:
    """The objects of a list; one that is something else costs itself, unless there is nothing but such."""
    if value is None:
        return []
    found: list[Json] = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    if not found and value != []:
        raise TypeError("no list of objects")
    return found


def _ancestors(one: Item, spans: Mapping[tuple[str | None, str | None], Item]) -> Iterator[Item]:
    above = spans.get((one.trace, one.parent)) if one.parent else None
    for _ in range(DEEPEST):
        if above is None or above is one:
            return
        yield above
        above = spans.get((above.trace, above.parent)) if above.parent else None
