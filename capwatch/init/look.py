"""What a log is and tells: its dialect, its wrapper, the names in it, and the fields that it has not."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from capwatch import formats, sourcing
from capwatch.config.schema import Limits
from capwatch.dialect import Decoded, Decoder, Options
from capwatch.errors import UsageError
from capwatch.explain import best_fit, explain_page, find_wrapper
from capwatch.labels import clean
from capwatch.replay.files import UNREADABLE, opened

SAMPLE_BYTES: Final = 4 << 20
"""Read of each file: some thousand lines, in which a name that matters occurs."""
MOST_NAMES: Final = 8
"""Models, or routes, that a starter configuration spells out; the most frequent ones."""
WANTED: Final = ("tenant", "route", "model", "prompt_tokens", "cached_tokens", "output_tokens", "duration_s", "ttft_s")
"""Fields of the record without which something is not shown."""
MOST_KEYS: Final = 40
"""Keys of JSON lines that are listed where fields are missing."""

_ROTATED: Final = re.compile(r"(?:\.(?:gz|zst))?$")
_NUMBERED: Final = re.compile(r"(?:\.\d{1,3}|[.-]\d{4}-?\d{2}-?\d{2})$")


@dataclass(slots=True)
class Found:
    """What one or several files of one kind tell."""

    format: str
    """Empty where no dialect makes anything of the lines."""
    wrapper: str
    engine: bool = False
    """Whether it is a log of engines."""
    mappable: bool = False
    """Whether `fields:` may tell where a missing field is."""
    paths: list[str] = field(default_factory=list)
    """Of the live files, whatever their rotated ones are called."""
    rotated: set[str] = field(default_factory=set)
    """What stands between the name of a live file and what rotation adds: `.` or `-`."""
    lines: int = 0
    understood: int = 0
    records: int = 0
    """Lines that became records: requests, or statistics of engines."""
    missing: tuple[str, ...] = ()
    """Fields of `WANTED` that no request has."""
    keys: tuple[str, ...] = ()
    """Keys of its JSON lines, where fields are missing."""
    models: Counter[str] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    clock: bool = True
    """Whether its records tell a time of day, themselves or by their wrapper."""
    zoned: bool = False
    """Whether every time it can print says its zone, so that there is none to choose."""
    phases: bool = False
    """Whether requests tell prefill apart from decode."""
    page: bool = False
    """Whether it is a saved page of an engine's metrics, and no log."""


def look(paths: Sequence[str]) -> list[Found]:
    """Look at files; those of one folder and dialect are one finding, in the order of the first of each.

    Raises:
        UsageError: one cannot be read.
    """
    found: dict[tuple[str, ...], Found] = {}
    for path in paths:
        lines = _lines(path)
        one = _judge(lines, _modified(path))
        live, between = _live(os.path.abspath(path))
        alone = "" if one.format else live
        kept = found.setdefault((os.path.dirname(live), one.format, one.wrapper, alone), one)
        if kept is not one:
            _add(kept, one)
        if live not in kept.paths:
            kept.paths.append(live)
        if between:
            kept.rotated.add(between)
    return list(found.values())


def _add(kept: Found, one: Found) -> None:
    """Add what another file of the same kind tells."""
    kept.lines += one.lines
    kept.understood += one.understood
    kept.records += one.records
    kept.models += one.models
    kept.routes += one.routes
    kept.missing = tuple(name for name in kept.missing if name in one.missing)


def _lines(path: str) -> list[bytes]:
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory; name its log files")
    try:
        with closing(opened(path)) as stream:
            data = stream.read(SAMPLE_BYTES)
    except UNREADABLE as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    if len(data) == SAMPLE_BYTES:
        data = data[: data.rfind(b"\n") + 1] or data
    return data.removesuffix(b"\n").split(b"\n") if data else []


def _modified(path: str) -> float:
    return os.stat(path).st_mtime


def _judge(lines: list[bytes], near: float) -> Found:
    """The dialect that makes most of the lines, and what it finds."""
    wrapper = find_wrapper(lines) or "none"
    best = best_fit(lines, None if wrapper == "none" else wrapper, near)[0] if lines else None
    if best is None or not best.counted:
        page = bool(lines) and explain_page(b"\n".join(lines)).outcome == "record"
        return Found("", wrapper, lines=len(lines), page=page)
    form = formats.shelf()[best.format]
    decoder = Decoder(form, Options(), sourcing.wrapper_of(wrapper, Limits().line_bytes))
    decoded = decoder.decode(b"\n".join([*lines, b""]), near)
    missing = _missing(decoded)
    batch = decoded.batch
    timed = form.clock or wrapper != "none" or bool((batch["finished_at"] != near).any())
    return Found(
        best.format,
        wrapper,
        engine=form.kind == "engine",
        mappable=form.mappable,
        lines=decoded.read,
        understood=decoded.counted + decoded.skipped,
        records=decoded.counted,
        missing=missing,
        keys=_keys(lines) if missing and form.mappable and wrapper == "none" else (),
        models=_shown(_names(decoded, "model")),
        routes=_shown(_names(decoded, "route")),
        clock=timed,
        zoned=not form.clock,
        phases=not np.isnan(batch["prefill_s"]).all(),
    )


def _missing(decoded: Decoded) -> tuple[str, ...]:
    """What no request tells; nothing where there are no requests, as in logs of statistics."""
    batch = decoded.batch
    if not len(batch):
        return ()
    told = {name for name in WANTED if name in batch.labels and _names(decoded, name)}
    told |= {name for name in WANTED if name in batch.numbers and not np.isnan(batch[name]).all()}
    return tuple(name for name in WANTED if name not in told)


def _names(decoded: Decoded, label: str) -> Counter[str]:
    column = decoded.batch.labels[label]
    counts = np.bincount(column.codes, minlength=len(column.names)).tolist() if len(decoded.batch) else []
    return Counter({name: count for name, count in zip(column.names, counts, strict=False) if name and count})


def _shown(names: Counter[str]) -> Counter[str]:
    """The names that may be written down: a key or an address in the place of one is in no configuration."""
    return Counter({name: count for name, count in names.items() if clean(name) == name})


def _keys(lines: Iterable[bytes]) -> tuple[str, ...]:
    """The paths of plain values in the first JSON objects; the values themselves are nobody's business."""
    found: dict[str, None] = {}
    for line in list(lines)[:MOST_KEYS]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for key, value in row.items() if isinstance(row, dict) else ():
            inner = [f"{key}.{one}" for one in value] if isinstance(value, dict) else [key]
            found |= dict.fromkeys(one for one in inner if one.isprintable() and clean(one) == one)
    return tuple(found)[:MOST_KEYS]


def _live(path: str) -> tuple[str, str]:
    """The name of the live file whose rotated one a path may be, and what stands between them.

    >>> _live("/log/access.log.3.gz"), _live("/log/access.log-20261130"), _live("/log/vllm-0.log")
    (('/log/access.log', '.'), ('/log/access.log', '-'), ('/log/vllm-0.log', ''))
    """
    plain = _ROTATED.sub("", path, count=1)
    numbered = _NUMBERED.search(plain)
    if numbered:
        return plain[: numbered.start()], numbered[0][0]
    return plain, "." if plain != path else ""
