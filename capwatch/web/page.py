"""The page at `/`: the answer for whoever is on call, and the frame that its script fills and keeps fresh.

Made anew for each request; everything in it is escaped. Without scripts it still says what is the matter, what to do
first, and how each source fares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from string import Template
from typing import Final

from capwatch.web import files
from capwatch.web.answer import NOTHING_ELSE, Answer
from capwatch.web.findings import span
from capwatch.web.now import Finding, Now
from capwatch.web.status import PoolStatus, SourceStatus, Status

HTML: Final = "text/html; charset=utf-8"
POLICY: Final = f"{NOTHING_ELSE}; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
"""The page's own files and the API, nothing inline, nothing from elsewhere."""
_FRAME: Final = Template((files.FOLDER / "page.html").read_text())
_CODE, _AS_CODE = re.compile(r"`([^`]*)`"), r"<code>\1</code>"
_PLOTS: Final = (
    f'<link rel="stylesheet" href="{files.BASE}uPlot.min.css">\n'
    f'<script defer src="{files.BASE}uPlot.iife.min.js"></script>\n'
)

_SOURCES: Final = (
    "source",
    "up",
    "lines read",
    "counted",
    "skipped",
    "dropped",
    "lag",
    "lost",
    "last event",
    "problems",
)
_POOLS: Final = ("pool", "prefill", "decode", "replicas")
# Numbers stand to the right; names and sentences of any length break anywhere.
_CLASSES: Final = {
    **dict.fromkeys(("lines read", "counted", "skipped", "lag", "prefill", "decode", "replicas"), "n"),
    **dict.fromkeys(("source", "problems", "pool"), "w"),
}


def answer(status: Status, now: Now, telemetry_path: str) -> Answer:
    """The answer of `/`."""
    return Answer(200, html(status, now, telemetry_path).encode(errors="replace"), HTML, POLICY)


def html(status: Status, now: Now, telemetry_path: str) -> str:
    """The page as text."""
    first, *others = now.findings or (Finding(kind="quiet", severity="note", text="Nothing is known yet."),)
    links = (telemetry_path, "/api/v1/status", "/api/v1/drift", "/api/v1/now", "/-/healthy", "/-/ready")
    return _FRAME.substitute(
        base=files.BASE,
        library=_PLOTS if files.COMPLETE else "",
        version=escape(status.version),
        age=_moment(status.commit.timestamp, status.at),
        severity=first.severity,
        sentence=escape(first.text),
        why=escape(first.why),
        todo=_todo(first),
        others="".join(f'<li class="{one.severity}">{escape(one.text)}</li>' for one in others),
        state="\n".join(_state(status)),
        sources=_table(_SOURCES, (_source(source, status.at) for source in status.sources)),
        pools=_table(_POOLS, map(_pool, status.pools)),
        links=" · ".join(f'<a href="{escape(link)}">{escape(link)}</a>' for link in links),
    )


def _todo(finding: Finding) -> str:
    steps = "".join(f"<li>{_CODE.sub(_AS_CODE, escape(step))}</li>" for step in finding.todo)
    return f"<h2>What to do first, and how soon it helps</h2><ol>{steps}</ol>" if steps else ""


def _state(status: Status) -> Iterable[str]:
    commit = status.commit
    if not status.ready:
        yield '<p class="bad">Still reading what lay on disk at the start: totals are growing towards the present.</p>'
    yield f"<p>Running since {_moment(status.started_at, status.at)}.</p>"
    yield f"<p>Newest event: {_moment(status.clock, status.at)}.</p>"
    took = "" if commit.duration_s is None else f"; it took {commit.duration_s * 1000:,.0f} ms"
    yield f"<p>Everything here was committed {_moment(commit.timestamp, status.at)}{took}.</p>"
    if commit.errors:
        yield f'<p class="bad">{commit.errors:,} commits have failed since the start.</p>'


def _source(source: SourceStatus, now: float) -> Iterable[str]:
    lines, lost = source.lines, source.bytes.lost
    yield f'<b>{escape(source.name)}</b> <span class="dim">{escape(source.format)}, {escape(source.role)}</span>'
    yield f"yes, files: {source.files:,}" if source.up else '<span class="bad">no</span>'
    yield f"{lines.read:,}"
    yield f"{lines.counted:,}"
    yield f"{lines.skipped:,}"
    yield _by_reason(lines.dropped)
    yield _size(source.lag_bytes)
    yield _by_reason(lost)
    yield _moment(source.last_event, now)
    yield "<br>".join(f'<span class="bad">{escape(problem)}</span>' for problem in source.problems) or "none"


def _pool(pool: PoolStatus) -> Iterable[str]:
    yield f"<b>{escape(pool.name)}</b>" + (' <span class="bad">rates assumed</span>' if pool.assumed else "")
    yield f"{pool.prefill_tokens_per_second:,g} tokens/s"
    yield f"{pool.decode_tokens_per_second:,g} tokens/s"
    yield "unknown" if pool.replicas is None else f"{pool.replicas:,g}"


def _table(headings: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already."""
    kinds = [f' class="{_CLASSES[heading]}"' if heading in _CLASSES else "" for heading in headings]
    head = "".join(f"<th{kind}>{heading}</th>" for kind, heading in zip(kinds, headings, strict=True))
    body = [
        "<tr>"
        + "".join(
            f'<td{kind} data-is="{heading}"><span>{cell}</span></td>'
            for kind, heading, cell in zip(kinds, headings, row, strict=True)
        )
        + "</tr>"
        for row in rows
    ]
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{''.join(body)}</tbody></table>" if body else "<p>None.</p>"


def _by_reason(counts: Mapping[str, int]) -> str:
    """Numbers by reason, without those that are 0."""
    return "<br>".join(f"{escape(reason)} {count:,}" for reason, count in sorted(counts.items()) if count) or "none"


def _size(count: int) -> str:
    """A number of bytes for a reader.

    >>> _size(0), _size(1536), _size(3 << 30)
    ('0 B', '1.5 KiB', '3.0 GiB')
    """
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:,.1f} {unit}" if unit != "B" else f"{count} B"


def _moment(at: float | None, now: float) -> str:
    """A time as a date, and how long ago that is.

    >>> _moment(1_764_500_000.0, 1_764_500_090.0)
    '2025-11-30 10:53:20 UTC (2 min ago)'
    """
    if at is None:
        return "unknown"
    try:
        date = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # a log may say any number
        return "at no date"
    return f"{date} ({span(abs(now - at))} {'ago' if now >= at else 'ahead'})"
