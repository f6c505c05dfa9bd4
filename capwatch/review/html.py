"""The review as one HTML file: no script, nothing from outside, fit for print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from capwatch.review.document import Document
from capwatch.review.section import Figure, Finding, Missing, Section, Table
from capwatch.review.summary import lines
from capwatch.review.text import day

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE: Final = """
:root { color-scheme: light; --ink: #1c1c1c; --soft: #5c5c5c; --rule: #d9d9d9; --wash: #f6f6f4; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: #fff;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-top: .6rem;
  border-top: 1px solid var(--rule); } h3 { font-size: 1.05rem; margin: 0 0 .3rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
nav { margin: 1.2rem 0; font-size: .9rem; } nav a { color: #1f5fa8; margin-right: .9rem; white-space: nowrap; }
.summary { background: var(--wash); border-left: 4px solid #1f5fa8; padding: .7rem 1rem .7rem 2rem; }
.finding { border: 1px solid var(--rule); border-left: 6px solid #8a8a8a; padding: .8rem 1rem; margin: .8rem 0;
  break-inside: avoid; } .critical { border-left-color: #b3261e; } .warning { border-left-color: #c8841c; }
.tag { font-size: .75rem; letter-spacing: .04em; text-transform: uppercase; color: var(--soft); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: .3rem 0 1.2rem; font-size: .86rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: break-word; } td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; break-inside: avoid; } figcaption { font-weight: 600; font-size: .9rem; }
img { width: 100%; height: auto; }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } nav { display: none; }
  h2, h3, caption { break-after: avoid; } tr { break-inside: avoid; } thead { display: table-header-group; }
  .scroll { overflow: visible; } }
@page { margin: 16mm 14mm; }
"""


def html(document: Document, draw: Callable[[Figure], str]) -> str:
    """The whole review; ``draw`` makes a data URI of a figure."""
    return "\n".join(_parts(document, draw)) + "\n"


def _parts(document: Document, draw: Callable[[Figure], str]) -> Iterator[str]:
    week = document.week
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Capacity review {week.week}</title><style>{STYLE}</style></head><body>"
    yield f"<h1>Capacity review, week {week.week}</h1>"
    yield f'<p class="soft">{day(week.week.since)} to {day(week.week.until)} UTC, from {escape(week.source)}</p>'
    shown = [section for section in document.sections if section.text or section.tables or section.figures]
    yield "<nav>" + "\n".join(f'<a href="#{_anchor(one.title)}">{escape(one.title)}</a>' for one in shown) + "</nav>"
    yield '<ul class="summary">' + "".join(f"<li>{escape(line)}</li>" for line in lines(document)) + "</ul>"
    yield "<h2>Findings</h2>"
    yield from (_finding(number, one) for number, one in enumerate(document.findings, start=1))
    if not document.findings:
        yield "<p>Nothing to do.</p>"
    for section in shown:
        yield from _section(section, draw)
    yield from _missing(document.missing)
    yield "</body></html>"


def _anchor(title: str) -> str:
    """An id.

    >>> _anchor("Shape of traffic")
    'shape-of-traffic'
    """
    return "".join(sign if sign.isalnum() else "-" for sign in title.lower()).strip("-")


def _finding(number: int, one: Finding) -> str:
    parts = [f'<section class="finding {one.severity}"><span class="tag">{one.severity} · {one.confidence}</span>']
    parts.append(f"<h3>{number}. {escape(one.title)}</h3><ul>")
    parts += [f"<li>{escape(text)}</li>" for text in one.evidence]
    parts.append("</ul>")
    if one.remedies:
        parts.append('<p class="soft">Remedies, in order of speed, reversibility and cost:</p><ol>')
        parts += [f"<li>{escape(text)}</li>" for text in one.remedies]
        parts.append("</ol>")
    return "".join([*parts, "</section>"])


def _section(section: Section, draw: Callable[[Figure], str]) -> Iterator[str]:
    yield f'<h2 id="{_anchor(section.title)}">{escape(section.title)}</h2>'
    yield from (f"<p>{escape(text)}</p>" for text in section.text)
    for figure in section.figures:
        yield f'<figure><figcaption>{escape(figure.title)}</figcaption><img alt="{escape(figure.title)}" '
        yield f'src="{draw(figure)}"></figure>'
    yield from (_table(table) for table in section.tables)


def _missing(missing: list[Missing]) -> Iterator[str]:
    if missing:
        yield '<h2 id="missing">What is missing</h2>'
        rows = [[one.what, one.why, one.provide] for one in missing]
        yield _table(Table("And what would provide it", ["what", "why", "what would provide it"], rows))


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(f"<tr>{''.join(_cell(text) for text in row)}</tr>" for row in table.rows)
    return (
        f'<div class="scroll"><table><caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    numeric = text[:1].isdigit() or text[:1] in "+-−"
    return f'<td class="n">{escape(text)}</td>' if numeric and len(text) < 40 else f"<td>{escape(text)}</td>"
