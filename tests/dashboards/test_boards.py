"""The boards are built, committed, and as the rules want them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from capwatch.metrics import CATALOGUE
from dashboards import build, promql
from dashboards.panels import Query, lines
from tests.dashboards.linter import RULES, findings, panels

HERE = Path(__file__).parent
BUILT = build.documents()
BOARDS: dict[str, dict[str, Any]] = {name: json.loads(content) for name, content in BUILT.items()}
EXCEPTIONS: dict[str, dict[str, str]] = yaml.safe_load((HERE / "exceptions.yml").read_text())
"""Reasons by rule and by panel."""


@pytest.mark.parametrize("name", sorted(BUILT))
def test_a_board_is_fresh(name: str) -> None:
    """Each board is committed as it is built; `python dashboards/build.py` mends it."""
    assert (build.HERE / name).read_text() == BUILT[name]


def test_no_board_is_left_over() -> None:
    """Every JSON file of the folder is built."""
    assert sorted(path.name for path in build.HERE.glob("*.json")) == sorted(BUILT)


def test_uids_and_titles_are_unique() -> None:
    """Two boards never replace each other."""
    assert (
        len({board["uid"] for board in BOARDS.values()})
        == len({one["title"] for one in BOARDS.values()})
        == len(BOARDS)
    )


@pytest.mark.parametrize("name", sorted(BUILT))
def test_a_board_keeps_the_rules(name: str) -> None:
    """No rule has anything against it that is not excepted, with a reason."""
    found = [one for one in findings(BOARDS[name]) if one.where not in EXCEPTIONS.get(one.rule, {})]
    assert found == []


def test_exceptions_are_needed() -> None:
    """An exception whose finding is gone goes as well."""
    found = {(one.rule, one.where) for board in BOARDS.values() for one in findings(board)}
    assert [(rule, where) for rule, named in EXCEPTIONS.items() for where in named if (rule, where) not in found] == []


def test_a_description_says_what_the_metric_is() -> None:
    """The help of the catalogue stands below how to read the answer, and which variables the panel does not follow."""
    panel = lines("Why?", "So.", Query("sum(rate(capwatch_overload_seconds_total[$__rate_interval]))"))
    told = CATALOGUE["capwatch_overload_seconds_total"].help
    assert (
        panel.description(("pool", "tenant")) == f"So.\n\nNot by tenant.\n\n`capwatch_overload_seconds_total`: {told}"
    )


def test_an_unknown_metric_is_refused() -> None:
    """A renamed metric stops the build."""
    with pytest.raises(ValueError, match="capwatch_nothing is no series of the catalogue"):
        promql.select("sum(capwatch_nothing)", ())


def test_a_word_inside_of_quotes_is_no_metric() -> None:
    """Label values are left alone."""
    found = promql.select('sum(capwatch_drift_active{direction="up"}) or sum(up)', ())
    assert found.count('job=~"$job"') == 2
    assert 'direction="up"' in found


Break = Callable[[dict[str, Any]], object]


def expression(text: str) -> Break:
    """Put an expression into the first target of the first panel that has one."""

    def put(board: dict[str, Any]) -> None:
        next(panel for panel in panels(board) if panel.get("targets"))["targets"][0]["expr"] = text

    return put


def first(change: Break) -> Break:
    """Change the first panel that has targets."""
    return lambda board: change(next(panel for panel in panels(board) if panel.get("targets")))


FOLLOWS = 'job=~"$job",instance=~"$instance"'
BROKEN: dict[str, list[Break]] = {
    "template-datasource": [lambda board: board["templating"]["list"].pop(0)],
    "template-job-and-instance": [
        lambda board: board["templating"]["list"].pop(1),
        lambda board: board["templating"]["list"][2].update(allValue=".*"),
        lambda board: board["templating"]["list"][1].update(refresh=1),
    ],
    "uneditable": [lambda board: board.update(editable=True)],
    "identity": [
        lambda board: board.update(uid="overview"),
        lambda board: board.update(tags=[]),
        lambda board: board["links"][0].update(keepTime=False),
        lambda board: board["annotations"].update(list=[]),
    ],
    "panel-datasource": [first(lambda panel: panel["targets"][0].update(datasource={"uid": "prom"}))],
    "panel-title-and-description": [
        first(lambda panel: panel.update(title="Rate")),
        first(lambda panel: panel.update(description="")),
    ],
    "panel-targets": [first(lambda panel: panel.update(targets=[]))],
    "panel-units": [first(lambda panel: panel["fieldConfig"]["defaults"].update(unit=""))],
    "panel-ratio-axis": [
        first(
            lambda panel: panel.update(type="timeseries", fieldConfig={"defaults": {"unit": "percentunit", "min": 0.5}})
        )
    ],
    "grid": [first(lambda panel: panel["gridPos"].update(w=25)), first(lambda panel: panel.update(id=1))],
    "target-promql": [expression("sum(")],
    "target-rate-interval": [expression(f"sum(rate(capwatch_arrivals_total{{{FOLLOWS}}}[5m]))")],
    "target-counter": [
        expression(f"sum(capwatch_arrivals_total{{{FOLLOWS}}})"),
        expression(f"sum(rate(capwatch_replicas{{{FOLLOWS}}}[$__rate_interval]))"),
    ],
    "target-matchers": [expression('sum(capwatch_replicas{job=~"$job"})')],
    "target-labels": [
        expression(f'sum(capwatch_replicas{{{FOLLOWS},tenant="a"}})'),
        expression(f"sum by (tenant) (capwatch_replicas{{{FOLLOWS}}})"),
    ],
    "target-averaged-quantile": [expression(f'avg(capwatch_ttft_seconds{{{FOLLOWS},quantile="0.95"}})')],
    "target-division": [
        expression(f'sum(capwatch_utilisation_ratio{{{FOLLOWS},pool=~"$pool"}}) / sum(capwatch_replicas{{{FOLLOWS}}})')
    ],
}
"""What each rule must see."""


def test_every_rule_is_tried() -> None:
    """No rule without a board that breaks it."""
    assert sorted(BROKEN) == sorted(RULES)


@pytest.mark.parametrize(("rule", "change"), [(rule, change) for rule, changes in BROKEN.items() for change in changes])
def test_a_rule_sees_what_it_is_for(rule: str, change: Break) -> None:
    """A board with this mistake has a finding of this rule that it did not have."""
    board = copy.deepcopy(BOARDS["on-call.json"])
    before = [one for one in findings(board) if one.rule == rule]
    change(board)
    assert [one for one in findings(board) if one.rule == rule and one not in before] != []
