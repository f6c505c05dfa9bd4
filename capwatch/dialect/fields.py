"""Record fields by kind, and the operator's own paths to them (`fields:` of the configuration)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Final

from capwatch.dialect.path import walk
from capwatch.dialect.route import route
from capwatch.dialect.scan import Kind
from capwatch.dialect.value import REFUSED, UNITS, flag, number, text, time
from capwatch.dialect.verdict import Field
from capwatch.record import DURATIONS, IDS, LABELS, NUMBERS, TIMES, Request

KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys((*IDS, *LABELS, "usage", "outcome", "rate_limited_by"), "text"),
    **dict.fromkeys((*NUMBERS, "status"), "number"),
    **dict.fromkeys(TIMES, "time"),
    **dict.fromkeys(("stream", "cache_hit"), "flag"),
}
"""What each record field that a log can tell holds."""

_MODEL: Final = re.compile(r"[\w.:/@+,=()\[\]*-]{1,128}")
"""Names of models as engines, gateways and clouds spell them (ARNs included); prose has blanks."""


class Mapped:
    """Fills a record from the paths that the operator named, over what the dialect itself found."""

    def __init__(self, fields: Mapping[str, Field], zone: tzinfo, unit: str = "s") -> None:
        """Take the paths; ``unit`` is that of the dialect's durations, for paths that name none."""
        self._paths = [
            (name, field.path, reading(name, zone, field.unit or (unit if name in DURATIONS else "s")))
            for name, field in fields.items()
            if name in KINDS
        ]

    def fill(self, request: Request, found: object) -> None:
        """Set every mapped field of ``request`` to what the line has at its path, None included."""
        for name, path, read in self._paths:
            setattr(request, name, read(walk(found, path)))


def reading(name: str, zone: tzinfo, unit: str) -> Callable[[object], object]:
    """How a record field is read from what a line has for it; ``unit`` is that of the value, where it has one."""
    kind, factor = KINDS[name], UNITS[unit]
    special: dict[str, Callable[[object], object]] = {
        "status": status,
        "cache_hit": lambda value: flag(value) or False,
        "route": lambda value: route(text(value)),
        "model": model,
    }
    if name in special:
        return special[name]
    if kind == "number":
        return lambda value: number(value, factor)
    if kind == "time":
        return lambda value: time(value, zone, factor)
    return flag if kind == "flag" else text


def model(value: object) -> str | None:
    """Read a model's name; None where a client sent something that is none, since it may be anything it wrote.

    >>> model("meta-llama/Llama-3.1-70B:free"), model("tell me a story"), model("x" * 200)
    ('meta-llama/Llama-3.1-70B:free', None, None)
    """
    name = text(value)
    return name if name and _MODEL.fullmatch(name) else None


def output(prompt: float | None, told: float | None, total: float | None) -> float | None:
    """Output tokens, with the reasoning that a provider hides: then its total is more than prompt and output.

    >>> output(10.0, 5.0, 22.0), output(10.0, 5.0, 15.0), output(10.0, 5.0, None), output(None, 0.0, 0.0)
    (12.0, 5.0, 5.0, 0.0)
    """
    if not prompt or told is None or total is None or REFUSED in (prompt, told, total):
        return told
    return max(told, total - prompt)


def status(value: object) -> int | None:
    """Read an HTTP status, also as text; None where none is told or it is none.

    >>> status("429"), status(0), status("-"), status(-1), status("oops")
    (429, 0, None, None, None)
    """
    read = number(value)
    return int(read) if read is not None and read != REFUSED and 0 <= read < 1000 else None
