"""Rules for dashboards: those of Grafana's public linter, and ours. A finding names rule, panel and fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import promql_parser as parser

from dashboards import promql

Json = dict[str, Any]
RATED: Final = ("rate", "irate", "increase")
INTERVAL: Final = "7m13s"
"""Stands for $__rate_interval while an expression is parsed: nobody writes it by hand."""
RANGE: Final = "11m7s"
"""Stands for $__range."""
NO_UNIT: Final = ("text",)
ROWS: Final = 24


@dataclass(frozen=True, order=True)
class Finding:
    """What a rule has against a board."""

    rule: str
    where: str
    """Board and, where it is about one, the panel's title."""
    what: str


Rule = Callable[[Json], Iterator[tuple[str, str]]]
"""From a board to (panel's title or "", what is wrong)."""
RULES: Final[dict[str, Rule]] = {}


def rule(check: Rule) -> Rule:
    """Every rule is known by its function's name."""
    RULES[check.__name__.replace("_", "-")] = check
    return check


def findings(board: Json) -> list[Finding]:
    """All that all rules have against a board, in the order of the rules."""
    return [
        Finding(name, f"{board['uid']}: {title}" if title else board["uid"], what)
        for name, check in RULES.items()
        for title, what in check(board)
    ]


def panels(board: Json) -> Iterator[Json]:
    """The panels of a board, those in collapsed rows as well, without the rows."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def parsed(expression: str) -> parser.Expr:
    """The syntax tree, macros replaced; variables stand in strings, where they harm nothing."""
    return parser.parse(expression.replace("$__rate_interval", INTERVAL).replace("$__range", RANGE))


def nodes(tree: parser.Expr) -> list[Any]:
    """All nodes of a syntax tree."""
    found: list[Any] = []
    parser.walk(tree, pre_visit=found.append)
    return found


def selectors(tree: parser.Expr) -> Iterator[Any]:
    """Every selection of series, that of a range included."""
    return (node for node in nodes(tree) if isinstance(node, parser.VectorSelector))


def targets(board: Json) -> Iterator[tuple[str, parser.Expr]]:
    """Title and syntax tree of every expression that can be parsed."""
    for panel in panels(board):
        for target in panel.get("targets", []):
            try:
                yield panel["title"], parsed(target["expr"])
            except ValueError:
                continue


def variables(board: Json) -> dict[str, Json]:
    """The variables by their names."""
    return {variable["name"]: variable for variable in board["templating"]["list"]}


@rule
def template_datasource(board: Json) -> Iterator[tuple[str, str]]:
    """One variable for the data source, named so, of Prometheus."""
    found = [one["name"] for one in board["templating"]["list"] if one["type"] == "datasource"]
    if found != ["datasource"] or variables(board)["datasource"]["query"] != "prometheus":
        yield "", f"data source variables {found}"


@rule
def template_job_and_instance(board: Json) -> Iterator[tuple[str, str]]:
    """Job and instance can be chosen, several at once and all, from the chosen data source."""
    for name in {*promql.TARGET, *(variables(board).keys() - {"datasource"})}:
        told = variables(board).get(name, {})
        wanted = {"multi": True, "includeAll": True, "allValue": ".+", "refresh": 2, "type": "query"}
        if told.get("datasource", {}).get("uid") != "${datasource}" or {key: told.get(key) for key in wanted} != wanted:
            yield "", f"variable {name}"


@rule
def uneditable(board: Json) -> Iterator[tuple[str, str]]:
    """A board that is provisioned is not edited in place."""
    if board["editable"]:
        yield "", "editable"


@rule
def identity(board: Json) -> Iterator[tuple[str, str]]:
    """A stable uid of at most 40 characters, our tag and name, words about it, links that keep the choices, alerts."""
    if not board["uid"].startswith("capwatch-") or len(board["uid"]) > 40 or "id" in board:
        yield "", "uid"
    if "capwatch" not in board["tags"] or not board["title"].startswith("capwatch / ") or not board["description"]:
        yield "", "tag, title or description"
    if not any(link["keepTime"] and link["includeVars"] and link["tags"] == ["capwatch"] for link in board["links"]):
        yield "", "links"
    if not any('ALERTS{alertname=~"Capwatch.*"' in one.get("expr", "") for one in board["annotations"]["list"]):
        yield "", "no annotation of alerts"


@rule
def panel_datasource(board: Json) -> Iterator[tuple[str, str]]:
    """Panels and their targets ask the chosen data source."""
    for panel in panels(board):
        asked = [panel, *panel["targets"]] if panel.get("targets") else []
        if any(one.get("datasource", {}).get("uid") != "${datasource}" for one in asked):
            yield panel["title"], "another data source"


@rule
def panel_title_and_description(board: Json) -> Iterator[tuple[str, str]]:
    """The title is a question, and no two on a board are the same; the description says how to read the answer."""
    titles = [panel["title"] for panel in panels(board)]
    for panel in panels(board):
        if not panel["title"].endswith("?") or titles.count(panel["title"]) > 1:
            yield panel["title"], "title"
        if len(panel.get("description", "")) < len("It is so."):
            yield panel["title"], "description"


@rule
def panel_targets(board: Json) -> Iterator[tuple[str, str]]:
    """A panel asks something."""
    for panel in panels(board):
        if panel["type"] != "text" and not panel.get("targets"):
            yield panel["title"], "no target"


@rule
def panel_units(board: Json) -> Iterator[tuple[str, str]]:
    """Every panel of numbers names a unit."""
    for panel in panels(board):
        if panel["type"] not in NO_UNIT and not panel.get("fieldConfig", {}).get("defaults", {}).get("unit"):
            yield panel["title"], "no unit"


@rule
def panel_ratio_axis(board: Json) -> Iterator[tuple[str, str]]:
    """A share is drawn from 0, so that a small change looks small."""
    for panel in panels(board):
        defaults = panel.get("fieldConfig", {}).get("defaults", {})
        if panel["type"] == "timeseries" and defaults["unit"] == "percentunit" and defaults.get("min") != 0:
            yield panel["title"], "axis of a ratio without 0"


@rule
def grid(board: Json) -> Iterator[tuple[str, str]]:
    """No panel covers another or sticks out, and every id is there once."""
    taken: set[tuple[int, int]] = set()
    ids: list[int] = []
    for panel in [*board["panels"], *(inner for row in board["panels"] for inner in row.get("panels", []))]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        if cells & taken or place["x"] + place["w"] > ROWS or panel["id"] in ids:
            yield panel["title"], "place or id"
        taken |= cells
        ids.append(panel["id"])


@rule
def target_promql(board: Json) -> Iterator[tuple[str, str]]:
    """Every expression can be parsed."""
    for panel in panels(board):
        for target in panel.get("targets", []):
            try:
                parsed(target["expr"])
            except ValueError as error:
                yield panel["title"], str(error)


@rule
def target_rate_interval(board: Json) -> Iterator[tuple[str, str]]:
    """Rates and increases are over $__rate_interval, which fits the scrape interval and the zoom."""
    wanted = parser.parse_duration(INTERVAL)
    for title, tree in targets(board):
        for call in (node for node in nodes(tree) if isinstance(node, parser.Call) and node.func.name in RATED):
            if any(node.range != wanted for node in nodes(call) if isinstance(node, parser.MatrixSelector)):
                yield title, f"{call.func.name} over a window of its own"


@rule
def target_counter(board: Json) -> Iterator[tuple[str, str]]:
    """A counter stands inside of a rate or an increase only, and only a counter does."""
    for title, tree in targets(board):
        calls = [node for node in nodes(tree) if isinstance(node, parser.Call) and node.func.name in RATED]
        rated = [one.name for call in calls for one in selectors(call)]
        everything = [one.name for one in selectors(tree)]
        for name in dict.fromkeys(everything):
            counts = name.endswith(("_total", "_bucket", "_sum", "_count"))
            if rated.count(name) != (everything.count(name) if counts else 0):
                yield title, f"{name} {'bare' if counts else 'rated'}"


@rule
def target_matchers(board: Json) -> Iterator[tuple[str, str]]:
    """Every selection follows job and instance."""
    for title, tree in targets(board):
        for one in selectors(tree):
            told = {matcher.name: matcher.value for matcher in one.matchers.matchers}
            if any(told.get(name) != f"${name}" for name in promql.TARGET):
                yield title, f"{one.name} not by job and instance"


@rule
def target_labels(board: Json) -> Iterator[tuple[str, str]]:
    """Matchers ask for labels that the catalogue gives the metric, and `by` for labels that some metric in it has."""
    for title, tree in targets(board):
        known = set(promql.TARGET)
        for one in selectors(tree):
            own = {*promql.TARGET, *promql.labels(one.name)}
            known |= own
            if strange := {matcher.name for matcher in one.matchers.matchers} - own:
                yield title, f"{one.name} has no {sorted(strange)}"
        for node in nodes(tree):
            if isinstance(node, parser.AggregateExpr) and node.modifier and set(node.modifier.labels) - known:
                yield title, f"by {sorted(set(node.modifier.labels) - known)}"


@rule
def target_averaged_quantile(board: Json) -> Iterator[tuple[str, str]]:
    """Percentiles are never averaged or added."""
    for title, tree in targets(board):
        for node in (one for one in nodes(tree) if isinstance(one, parser.AggregateExpr)):
            inside = nodes(node.expr)
            named = any(isinstance(one, parser.Call) and one.func.name == "histogram_quantile" for one in inside)
            asked = any(m.name == "quantile" for one in selectors(node.expr) for m in one.matchers.matchers)
            if str(node.op) in ("avg", "sum") and (named or asked):
                yield title, f"{node.op} over a percentile"


@rule
def target_division(board: Json) -> Iterator[tuple[str, str]]:
    """Both sides of a division follow the same variables, so that they are about the same requests."""
    for title, tree in targets(board):
        for node in nodes(tree):
            if isinstance(node, parser.BinaryExpr) and str(node.op) == "/":
                sides = [
                    {
                        frozenset(m.name for m in one.matchers.matchers if m.value == f"${m.name}")
                        for one in selectors(side)
                    }
                    for side in (node.lhs, node.rhs)
                ]
                if all(sides) and len(sides[0] | sides[1]) > 1:
                    yield title, "sides of a division follow different variables"
