"""What is told of a judged line: a JSON object for machines, a few lines of text for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final, cast

import msgspec

from capwatch.dialect import Options
from capwatch.dialect.path import walk
from capwatch.explain.judge import Judged, Record
from capwatch.labels import clean
from capwatch.record import IDS, LABELS, TIMES

NEAREST: Final = 3
"""Keys named beside a path that finds nothing."""
DEEPEST: Final = 5
"""Levels of an object in which keys are looked for; the deepest known path has this many."""


def as_json(judged: Judged) -> str:
    """One JSON object, as the formats' README (section 2) describes it; what looks like a secret is hashed."""
    told: dict[str, object] = {"line": judged.line, "outcome": judged.outcome}
    records = [fields(record) for record in judged.records]
    if len(records) == 1:
        told["record"] = records[0]
    elif records:
        told["records"] = records
    else:
        told["reason"] = judged.reason
        told |= {"detail": judged.detail} if judged.detail else {}
    if judged.reached:
        told["reached"] = {one.phase: round(one.seconds, 6) for one in judged.reached}
    return json.dumps(told, ensure_ascii=False)


def as_text(judged: Judged, options: Options) -> str:
    """The same for a person, on several lines: fields, reasons, and mapped paths that find nothing."""
    head = f"line {judged.line}: {judged.outcome}"
    if judged.reason:
        head += f", {judged.reason}" + (f" ({judged.detail})" if judged.detail else "")
    told = [head]
    told += [f"  {one.phase} of a start, after {one.seconds:.3f} s" for one in judged.reached]
    for record in judged.records:
        shown = {name: _readable(name, value) for name, value in fields(record).items()}
        wide = max(map(len, shown))
        told += [f"  {name:<{wide}}  {value}" for name, value in shown.items()]
    return "\n".join([*told, *(f"  {text}" for text in _hints(judged, options))])


def fields(record: Record) -> dict[str, object]:
    """What a record tells, by field name; its texts fit for a terminal."""
    found = msgspec.structs.asdict(record).items()
    # Microseconds are what floats of epoch times can tell: beyond is noise of the arithmetic.
    told = {name: round(value, 6) if isinstance(value, float) else value for name, value in found if value is not None}
    for name in ("uncapped", "part"):
        if not told.get(name):
            told.pop(name, None)
    for name in (*LABELS, *IDS):
        value = told.get(name)
        if isinstance(value, str):
            told[name] = clean(value, random=name not in IDS)
    return told


def _readable(name: str, value: object) -> str:
    if name in (*TIMES, "at") and isinstance(value, float):
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds")
    return f"{value:.6g}" if isinstance(value, float) and name.endswith("_s") else str(value)


def _hints(judged: Judged, options: Options) -> Iterator[str]:
    """For each mapped path without a value in the record: whether the line has it, and which keys are near."""
    line = _object(judged.inner)
    if line is None or judged.outcome == "skip":
        return
    for name, mapped in options.fields.items():
        if any(getattr(record, name, None) is not None for record in judged.records):
            continue
        there = walk(line, mapped.path)
        if there is not None:
            yield f"{name}: {mapped.path} is there, but its value is not usable as {name}"
            continue
        names = list(_keys(line))
        if mapped.path in names:
            yield f"{name}: {mapped.path} is empty in this line"
            continue
        near = [_shown(key) for key in get_close_matches(mapped.path, names, NEAREST, 0.5)]
        yield f"{name}: no key {mapped.path}; " + (f"nearest: {', '.join(near)}" if near else "no key is near to it")


def _object(inner: bytes | None) -> dict[str, object] | None:
    try:
        found = json.loads(inner or b"")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


def _shown(key: str) -> str:
    """The name of a key, fit to be shown: no part of it that looks like a secret."""
    return ".".join("***" if clean(part) != part else part for part in key.split(".")) if clean(key) == key else "***"


def _keys(value: object, path: str = "", depth: int = DEEPEST) -> Iterator[str]:
    """Paths of all keys in an object, some levels deep, JSON texts on the way decoded."""
    if isinstance(value, str) and value.startswith("{"):
        value = _object(value.encode())
    if isinstance(value, dict) and depth:
        for key, inner in value.items():
            yield path + key
            yield from _keys(inner, f"{path}{key}.", depth - 1)
