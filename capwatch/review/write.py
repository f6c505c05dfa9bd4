"""Writes the review: the page, and the same as Markdown and JSON beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from capwatch.console.answer import as_json
from capwatch.errors import CapwatchError, UsageError
from capwatch.observed import Given
from capwatch.review import document, extra
from capwatch.review.calendar import IsoWeek
from capwatch.review.compare import compared
from capwatch.review.document import Document
from capwatch.review.gather import opened
from capwatch.review.html import html
from capwatch.review.markdown import markdown
from capwatch.review.plots import drawn


def paths(out: str) -> list[str]:
    """The files that are written for `--out`: the page, Markdown, JSON.

    Raises:
        UsageError: their folder is not there, or one is a folder.

    >>> paths("review.html")
    ['review.html', 'review.md', 'review.json']
    """
    stem, ending = os.path.splitext(out)
    if ending.lower() not in (".html", ".md", ".json"):
        stem = out
    folder = os.path.dirname(out) or "."
    if not os.path.isdir(folder):
        raise UsageError(f"--out: {folder}: no such folder")
    found = [f"{stem}.html", f"{stem}.md", f"{stem}.json"]
    for path in found:
        if os.path.isdir(path):
            raise UsageError(f"--out: {path}: is a folder")
    return found


def review(found: Given, week: IsoWeek, files: Sequence[str], now: float, other: IsoWeek | None = None) -> Document:
    """Review a week as it is known ``now`` (s, epoch), beside another where one is named, and write it.

    Raises:
        CapwatchError: the source cannot be read, or a file cannot be written.
    """
    extra.plotting()  # before the long work
    with opened(found, week, now) as source:
        made = document.of(source.week(week))
        if other is not None:
            made = compared(made, document.of(source.week(other)))
    in_html, in_markdown, in_json = files
    _write(in_html, html(made, drawn))
    _write(in_json, as_json(document.as_plain(made)) + "\n")
    _write(in_markdown, markdown(made))
    return made


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CapwatchError(f"{path}: cannot be written: {error.strerror}") from None
