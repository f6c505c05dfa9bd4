"""The review as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from capwatch.review.document import Document
from capwatch.review.section import Finding, Table
from capwatch.review.summary import lines
from capwatch.review.text import day


def markdown(document: Document) -> str:
    """The whole review."""
    return "\n".join(_parts(document)) + "\n"


def _parts(document: Document) -> Iterator[str]:
    week = document.week
    yield f"# Capacity review, week {week.week}"
    yield ""
    yield f"Monday {day(week.week.since)} to {day(week.week.until)} UTC, from {week.source}."
    yield ""
    yield "## Summary"
    yield ""
    yield from (f"- {safe(line)}" for line in lines(document))
    yield ""
    yield "## Findings"
    yield ""
    if not document.findings:
        yield "Nothing to do."
        yield ""
    for number, one in enumerate(document.findings, start=1):
        yield from _finding(number, one)
    for section in document.sections:
        if not (section.text or section.tables):
            continue
        yield f"## {section.title}"
        yield ""
        for text in section.text:
            yield safe(text)
            yield ""
        for table in section.tables:
            yield from _table(table)
    if document.missing:
        yield from _table(
            Table(
                "What is missing, and what would provide it",
                ["what", "why", "provide"],
                [[one.what, one.why, one.provide] for one in document.missing],
            )
        )


def _finding(number: int, one: Finding) -> Iterator[str]:
    yield f"### {number}. {safe(one.title)}"
    yield ""
    yield f"Severity {one.severity}, {one.confidence}."
    yield ""
    yield from (f"- {safe(text)}" for text in one.evidence)
    yield ""
    if one.remedies:
        yield "Remedies, in order of speed, reversibility and cost:"
        yield ""
        yield from (f"{place}. {safe(text)}" for place, text in enumerate(one.remedies, start=1))
        yield ""


def _table(table: Table) -> Iterator[str]:
    yield f"**{safe(table.title)}**"
    yield ""
    yield f"| {' | '.join(map(safe, table.columns))} |"
    yield f"|{'---|' * len(table.columns)}"
    yield from (f"| {' | '.join(map(safe, row))} |" for row in table.rows)
    yield ""


def safe(text: str) -> str:
    r"""Names come from logs: what Markdown would take for its own is escaped.

    >>> safe("a|b <c> `d`")
    'a\\|b &lt;c&gt; \\`d\\`'
    """
    for sign in "\\`|*_[]":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
