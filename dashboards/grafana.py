"""A board as Grafana's JSON: the classic model, schema version 39, which Grafana 10.4 to 13 load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from capwatch.metrics import CATALOGUE, DRIFT_ACTIVE
from dashboards import promql
from dashboards.panels import WHOLE, Board, Panel, Row

SCHEMA_VERSION: Final = 39
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
TAG: Final = "capwatch"
_VALUES: Final = {
    "pool": "capwatch_arrivals_total",
    "tenant": "capwatch_requests_total",
    "route": "capwatch_requests_total",
    "model": "capwatch_requests_total",
}
"""Where the values of a variable are found: the metrics that begin with the first event."""


def document(board: Board) -> dict[str, Any]:
    """The whole dashboard."""
    return {
        "annotations": {"list": list(_annotations(board))},
        "description": board.says,
        "editable": False,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "links": [_links()],
        "panels": list(_panels(board)),
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "tags": [TAG],
        "templating": {"list": list(_variables(board))},
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "timezone": "",
        "title": f"capwatch / {board.title}",
        "uid": f"capwatch-{board.name}",
        "version": 1,
        "weekStart": "",
    }


def _links() -> dict[str, Any]:
    return {
        "asDropdown": False,
        "icon": "external link",
        "includeVars": True,
        "keepTime": True,
        "tags": [TAG],
        "targetBlank": False,
        "title": "capwatch",
        "tooltip": "The other boards, with the time and the choices of this one",
        "type": "dashboards",
        "url": "",
    }


def _annotations(board: Board) -> Iterator[dict[str, Any]]:
    """Alerts, where the rules are loaded, and the drifts that the detector tells, which need no rule."""
    yield {
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    }
    drift = promql.select(f"max by (pool, direction) ({DRIFT_ACTIVE.name}) == 1", board.variables)
    yield _annotation("Alerts", 'ALERTS{alertname=~"Capwatch.*",alertstate="firing"}', "{{alertname}}", "red")
    yield _annotation("Drift", drift, "requests of {{pool}} drift {{direction}}", "purple")


def _annotation(name: str, expression: str, title: str, color: str) -> dict[str, Any]:
    return {
        "datasource": SOURCE,
        "enable": True,
        "expr": expression,
        "hide": False,
        "iconColor": color,
        "name": name,
        "step": "60s",
        "tagKeys": "severity,pool",
        "textFormat": "{{pool}}",
        "titleFormat": title,
    }


def _variables(board: Board) -> Iterator[dict[str, Any]]:
    yield {
        "hide": 0,
        "includeAll": False,
        "label": "Prometheus",
        "multi": False,
        "name": "datasource",
        "options": [],
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
        "type": "datasource",
    }
    chosen = ""
    for name in (*promql.TARGET, *board.variables):
        if name in promql.TARGET:
            series = "capwatch_build_info" + (f"{{{chosen}}}" if chosen else "")
        else:
            held = CATALOGUE[_VALUES[name]].labels
            above = [before for before in board.variables[: board.variables.index(name)] if before in held]
            matchers = ",".join([chosen, *(f'{before}=~"${before}"' for before in above)])
            series = f"{_VALUES[name]}{{{matchers}}}"
        yield _variable(name, f"label_values({series}, {name})")
        if name in promql.TARGET:
            chosen = ",".join(filter(None, [chosen, f'{name}=~"${name}"']))


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "allValue": ".+",
        "current": {"selected": True, "text": "All", "value": "$__all"},
        "datasource": SOURCE,
        "hide": 0,
        "includeAll": True,
        "label": name.capitalize(),
        "multi": True,
        "name": name,
        "options": [],
        "query": {"qryType": 1, "query": query, "refId": f"PrometheusVariableQueryEditor-{name}"},
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
        "type": "query",
    }


def _panels(board: Board) -> Iterator[dict[str, Any]]:
    """Rows one below the other, their panels from left to right."""
    number, down = 1, 0
    for row in board.rows:
        head: dict[str, Any] = {"collapsed": row.collapsed, "gridPos": _place(0, down, WHOLE, 1), "id": number}
        head |= {"title": row.title, "type": "row", "panels": []}
        placed, down = _placed(row, down + 1)
        inside = [
            _panel(panel, place, number + 1 + index, board.variables) for index, (panel, place) in enumerate(placed)
        ]
        number += 1 + len(inside)
        if row.collapsed:
            yield {**head, "panels": inside}
        else:
            yield head
            yield from inside


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"h": height, "w": width, "x": x, "y": y}


def _placed(row: Row, down: int) -> tuple[list[tuple[Panel, dict[str, int]]], int]:
    """Each panel with its place, and where the next row begins."""
    placed: list[tuple[Panel, dict[str, int]]] = []
    right = tallest = 0
    for panel in row.panels:
        if right + panel.width > WHOLE:
            right, down, tallest = 0, down + tallest, 0
        placed.append((panel, _place(right, down, panel.width, panel.height)))
        right, tallest = right + panel.width, max(tallest, panel.height)
    return placed, down + tallest


def _panel(panel: Panel, place: Mapping[str, int], number: int, variables: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": panel.description(variables),
        "gridPos": place,
        "id": number,
        "options": panel.options,
        "title": panel.title,
        "type": panel.kind,
    }
    if not panel.queries:
        return found
    obeyed = tuple(name for name in variables if name not in panel.ignores)
    found["datasource"] = SOURCE
    found["fieldConfig"] = {"defaults": {"unit": panel.unit, **panel.defaults}, "overrides": list(panel.overrides)}
    found["targets"] = [
        {
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": promql.select(query.expression, obeyed),
            "format": "table" if panel.kind == "table" else "time_series",
            "instant": panel.kind != "timeseries",
            "legendFormat": query.legend or "__auto",
            "range": panel.kind == "timeseries",
            "refId": chr(ord("A") + index),
        }
        for index, query in enumerate(panel.queries)
    ]
    if panel.transformations:
        found["transformations"] = list(panel.transformations)
    return found
