"""What changed against another week: the same figures side by side, none without its change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from capwatch.review.document import Document, as_plain
from capwatch.review.section import Section, Table
from capwatch.review.text import number, percent, signed

FIGURES: Final[dict[str, tuple[str, Callable[[Any], str]]]] = {
    "requests": ("requests of the week", number),
    "rate_after": ("requests/s since the last change", number),
    "cost_after": ("replica-seconds of a request", number),
    "utilisation_after": ("utilisation", percent),
    "replicas": ("replicas", number),
    "replicas_needed": ("replicas needed in the busy hour", number),
    "headroom_replicas": ("replicas to spare", number),
    "goodput_ratio": ("goodput", percent),
}


def compared(document: Document, other: Document) -> Document:
    """The document with a section that compares it with another week's."""
    mine, theirs = as_plain(document), as_plain(other)
    tables = [_table(name, pool, theirs["pools"].get(name)) for name, pool in mine["pools"].items()]
    new = [one["title"] for one in mine["findings"] if _kind(one) not in {_kind(old) for old in theirs["findings"]}]
    gone = [one["title"] for one in theirs["findings"] if _kind(one) not in {_kind(old) for old in mine["findings"]}]
    text = [f"New: {title}." for title in new] + [f"No longer: {title}." for title in gone]
    section = Section(f"Against {other.week.week}", text, tables)
    return replace(document, sections=[section, *document.sections])


def _kind(finding: dict[str, Any]) -> tuple[str, str]:
    """What a finding is about, without its numbers."""
    words = [word for word in str(finding["title"]).split() if not any(sign.isdigit() for sign in word)]
    return str(finding["pool"]), " ".join(words[:6])


def _table(name: str, now: dict[str, Any], then: dict[str, Any] | None) -> Table:
    rows = []
    for key, (words, form) in FIGURES.items():
        values = now.get(key), None if then is None else then.get(key)
        change = "not known"
        if values[0] is not None and values[1]:
            change = signed(values[0] / values[1] - 1)
        rows.append([words, form(values[1]), form(values[0]), change])
    return Table(f"{name}: side by side", ["figure", "then", "now", "change"], rows)
