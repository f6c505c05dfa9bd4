"""Figures as SVG, each a data URI: no outside assets, sharp on screen and in print."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, Final

import numpy as np

from capwatch.record import Floats
from capwatch.review import extra
from capwatch.review.calendar import DAY, HOUR
from capwatch.review.section import Figure, Line

COLOURS: Final = ("#1f5fa8", "#c8541c", "#3c8d5a", "#7a4fa3", "#8a8a8a", "#b8860b")
"""Told apart by people who do not see red or green, and in grey print by their order of darkness and their styles."""
DASHES: Final = ("-", "--", "-.", ":", "-", "--")
STYLE: Final = {
    "svg.fonttype": "path",  # a reader's fonts are not ours
    "svg.hashsalt": "capwatch",  # the same figure gives the same bytes
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
}
STEPS: Final = (HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, *(days * DAY for days in (1, 2, 7, 14, 28, 91)))
"""Seconds between two marks of a time axis."""
MARKS: Final = 8
WIDE: Final = (7.6, 2.5)
"""Inches: the width of a page, and three figures on it."""


def drawn(figure: Figure) -> str:
    """A data URI of the figure."""
    tools = extra.plotting()
    with tools.rc_context(STYLE):
        sheet = tools.Figure(figsize=WIDE, layout="constrained")
        tools.FigureCanvasSVG(sheet)
        axes = sheet.add_subplot()
        for number, line in enumerate(figure.lines):
            _line(axes, line, number)
        axes.set_ylabel(figure.y)
        if figure.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=min(0.0, *(float(np.nanmin(line.y, initial=0.0)) for line in figure.lines)))
        if figure.x == "time":
            places, labels = moments([line.x for line in figure.lines])
            axes.set_xticks(places, labels)
        else:
            axes.set_xlabel(figure.x)
        if len(figure.lines) > 1:
            axes.legend(
                fontsize=8, frameon=False, ncols=min(4, len(figure.lines)), loc="lower left", bbox_to_anchor=(0, 1)
            )
        buffer = BytesIO()
        sheet.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def moments(columns: Sequence[Floats]) -> tuple[list[float], list[str]]:
    """Where a time axis has its marks (s, epoch), at most nine of them, and what they say.

    >>> moments([np.array([0.0, 3 * 604800.0])])
    ([0.0, 604800.0, 1209600.0, 1814400.0], ['1 Jan', '8 Jan', '15 Jan', '22 Jan'])
    """
    some = [float(value) for column in columns if len(column) for value in (column[0], column[-1])]
    if not some:
        return [], []
    begin, end = min(some), max(some)
    step = next((one for one in STEPS if (end - begin) / one <= MARKS), STEPS[-1])
    places = np.arange(np.ceil(begin / step), np.floor(end / step) + 1) * step
    form = "%-d %b" if step >= DAY else "%-d %b %H:%M"
    return places.tolist(), [f"{datetime.fromtimestamp(at, UTC):{form}}" for at in places.tolist()]


def _line(axes: Any, line: Line, number: int) -> None:
    x = line.x
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    if line.style == "mark":
        for place in x:
            axes.axvline(place, color=colour, linestyle=":", linewidth=1.2, label=line.label if place == x[0] else None)
    elif line.style == "points":
        axes.plot(x, line.y, "o", color=colour, markersize=6, label=line.label)
    elif line.style == "area":
        axes.fill_between(x, line.y, color=colour, alpha=0.35, linewidth=0, label=line.label)
    elif line.style == "step":
        axes.step(x, line.y, where="post", color=colour, linestyle=dash, linewidth=1.2, label=line.label)
    else:
        axes.plot(x, line.y, color=colour, linestyle=dash, linewidth=1.1, label=line.label)
