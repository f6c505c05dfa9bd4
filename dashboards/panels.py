"""The parts of a board as plain values: a question, the queries that answer it, and how the answer is drawn.

Grafana's JSON is made of them in `grafana.py`. A panel's description is what its author says, how to read the answer,
and below it the help of every metric from the catalogue: nobody writes twice what a number means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dashboards import promql

GREEN, AMBER, RED, GREY = "green", "orange", "red", "text"
Steps = tuple[tuple[float | None, str], ...]
"""Colours of a value: (from which value on, colour), the first from None, which is everything below."""
WHOLE: Final = 24
"""Columns of a board."""


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and how its series are called: a template of labels such as ``{{pool}}``."""

    expression: str
    legend: str = ""
    column: str = ""
    """Of a table: what the column is called."""
    unit: str = ""
    """Of a table: Grafana's id of the unit of the column."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One question and its answer."""

    kind: str
    """Grafana's name of the plugin."""
    title: str
    """The question."""
    says: str
    """How to read the answer."""
    queries: tuple[Query, ...]
    unit: str
    width: int
    height: int
    ignores: tuple[str, ...] = ()
    """Variables of the board that no part of it follows, so that both sides of a ratio are about the same requests."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Grafana's options of the plugin."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Grafana's defaults of its fields, beside the unit."""
    overrides: tuple[Mapping[str, Any], ...] = ()
    transformations: tuple[Mapping[str, Any], ...] = ()

    def description(self, variables: tuple[str, ...]) -> str:
        """How to read it, which of the board's variables it does not follow, and the help of what it reads."""
        read = list(promql.metrics([query.expression for query in self.queries]))
        deaf = [name for name in variables if name in self.ignores or any(name not in one.labels for one in read)]
        note = [f"Not by {', '.join(deaf)}."] if read and deaf else []
        return "\n\n".join([self.says, *note, *(f"`{metric.name}`: {metric.help}" for metric in read)])


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard."""

    name: str
    """File name without its ending; the uid is ``capwatch-`` and this."""
    title: str
    says: str
    variables: tuple[str, ...]
    """Which of `promql.CHOICES` it offers."""
    rows: tuple[Row, ...]


def _steps(steps: Steps) -> dict[str, Any]:
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in steps]}


def lines(
    title: str,
    says: str,
    *queries: Query,
    unit: str = "short",
    stacked: bool = False,
    limits: tuple[float | None, float | None] = (0, None),
    steps: Steps = (),
    axis: str = "",
    dashed: tuple[str, ...] = (),
    band: tuple[str, str] | None = None,
    width: int = 8,
    ignores: tuple[str, ...] = (),
) -> Panel:
    """Values over time. ``dashed``: legends of limits and references; ``band``: fill between these two legends."""
    low, high = limits
    custom: dict[str, Any] = {
        "lineWidth": 1,
        "fillOpacity": 40 if stacked else 5,
        "showPoints": "never",
        "spanNulls": False,
        "axisLabel": axis,
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "line" if steps else "off"},
    }
    defaults: dict[str, Any] = {"custom": custom, "thresholds": _steps(steps or ((None, GREEN),))}
    defaults |= {name: value for name, value in (("min", low), ("max", high)) if value is not None}
    overrides = [_override("byRegexp", name, "custom.lineStyle", {"fill": "dash", "dash": [8, 6]}) for name in dashed]
    if band is not None:
        overrides.append(_override("byName", band[1], "custom.fillBelowTo", band[0]))
        overrides += [_override("byName", name, "custom.lineWidth", 0) for name in band]
    options = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return Panel("timeseries", title, says, queries, unit, width, 8, ignores, options, defaults, tuple(overrides))


def _override(matcher: str, name: str, setting: str, value: object) -> dict[str, Any]:
    return {"matcher": {"id": matcher, "options": name}, "properties": [{"id": setting, "value": value}]}


def number(
    title: str,
    says: str,
    *queries: Query,
    unit: str = "short",
    steps: Steps = ((None, GREY),),
    names: bool = False,
    words: Mapping[str, str] | None = None,
    empty: str = "-",
    width: int = 4,
    height: int = 3,
    ignores: tuple[str, ...] = (),
) -> Panel:
    """The value now, in large. ``names``: the series' name is the answer; ``words`` for values; ``empty`` for none."""
    defaults: dict[str, Any] = {"thresholds": _steps(steps), "noValue": empty, "color": {"mode": "thresholds"}}
    if words:
        said = {value: {"text": text, "index": index} for index, (value, text) in enumerate(words.items())}
        defaults["mappings"] = [{"type": "value", "options": said}]
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showPercentChange": False,
        "textMode": "name" if names else "auto",
        "wideLayout": True,
    }
    return Panel("stat", title, says, queries, unit, width, height, ignores, options, defaults)


def bars(
    title: str,
    says: str,
    *queries: Query,
    unit: str = "short",
    steps: Steps = ((None, GREEN),),
    limits: tuple[float | None, float | None] = (None, None),
    empty: str = "-",
    width: int = 8,
    height: int = 8,
    ignores: tuple[str, ...] = (),
) -> Panel:
    """The values now, beside each other."""
    low, high = limits
    defaults: dict[str, Any] = {"thresholds": _steps(steps), "noValue": empty, "color": {"mode": "thresholds"}}
    defaults |= {name: value for name, value in (("min", low), ("max", high)) if value is not None}
    options = {
        "displayMode": "basic",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
        "maxVizHeight": 300,
        "minVizHeight": 12,
        "minVizWidth": 8,
        "namePlacement": "auto",
        "orientation": "horizontal",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showUnfilled": True,
        "sizing": "auto",
        "valueMode": "color",
    }
    return Panel("bargauge", title, says, queries, unit, width, height, ignores, options, defaults)


def table(
    title: str, says: str, *queries: Query, sort: str, width: int = WHOLE, ignores: tuple[str, ...] = ()
) -> Panel:
    """One row for each set of labels, one column for each query; the dearest first by the column ``sort``."""
    hidden = {"Time": True, "__name__": True, "job": True, "instance": True}
    letters = [chr(ord("A") + number) for number in range(len(queries))]
    columns = {f"Value #{letter}": query.column for letter, query in zip(letters, queries, strict=True)}
    if len(queries) == 1:
        columns = {"Value": queries[0].column}  # the merge of one frame has nothing to tell apart
    overrides = tuple(_override("byName", query.column, "unit", query.unit or "short") for query in queries)
    options = {"cellHeight": "sm", "frameIndex": 0, "showHeader": True, "sortBy": [{"displayName": sort, "desc": True}]}
    organised = {"excludeByName": hidden, "includeByName": {}, "indexByName": {}, "renameByName": columns}
    merged = ({"id": "merge", "options": {}}, {"id": "organize", "options": organised})
    defaults = {"thresholds": _steps(((None, GREEN),)), "custom": {"align": "auto", "filterable": True}}
    return Panel("table", title, says, queries, "short", width, 9, ignores, options, defaults, overrides, merged)


def text(title: str, says: str, markdown: str, *, width: int = 8, height: int = 8) -> Panel:
    """Words."""
    return Panel("text", title, says, (), "", width, height, (), {"content": markdown, "mode": "markdown"})
