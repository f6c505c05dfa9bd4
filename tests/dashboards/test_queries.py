"""Every expression of every board on a real Prometheus: no errors, no warnings, and something to see."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capwatch.capacity import queueing
from capwatch.demo.workload import REPLICAS
from dashboards import build, promql
from tests.dashboards import drawing, traffic
from tests.dashboards.linter import Json, panels
from tests.end_to_end.prometheus import Prometheus
from tests.gpus.stub import Stub, compiled

HERE = Path(__file__).parent
EMPTY: dict[str, str] = yaml.safe_load((HERE / "empty.yml").read_text()) or {}
"""Reasons why a panel has nothing to show on this traffic."""
MACROS: Final = {"$__rate_interval": "4m", "$__range": "30m"}
TO: Final = traffic.END - 5
FROM: Final = traffic.SHOWN + 300
"""What is looked at: what is shown, but for its beginning, in which no rate is known."""
BOARDS: Final[dict[str, Json]] = {name: json.loads(content) for name, content in build.documents().items()}
OUTPUT: Final = HERE.parent / "output" / "dashboards"
"""Where the pictures are kept; not in git."""
ANY: Final = re.compile(r'=~"\$\w+"')

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")), reason="prometheus is not installed"
)


@dataclass(frozen=True)
class Answer:
    """What one expression of a panel gave, as the API tells it."""

    where: str
    panel: Json
    target: Json
    faults: tuple[str, ...]
    replayed: tuple[Json, ...]
    present: tuple[Json, ...]

    @property
    def series(self) -> tuple[Json, ...]:
        """The series that have a number: of the replay, or where it has none, of the daemon."""
        return numbers(self.replayed) or numbers(self.present)

    @property
    def legend(self) -> str:
        """The template of names."""
        return str(self.target["legendFormat"])


def numbers(series: tuple[Json, ...]) -> tuple[Json, ...]:
    """Those with a value."""
    return tuple(one for one in series if any(value != "NaN" for _, value in one["values"]))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Answer]]:
    """All expressions, asked of the replayed half hour and of the present moment."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    folder = tmp_path_factory.mktemp("traffic")
    library = compiled(folder)
    stub = Stub(folder / "nvml.txt")
    for index in range(2):
        stub.card(index)
        stub.xid(index, 31)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "NVML_STUB": str(stub.path)}
    with traffic.filled(traffic.write(folder), environment) as server:
        yield [
            answer(server, f"{board['uid']}: {panel['title']}", panel, target)
            for board in BOARDS.values()
            for panel in panels(board)
            for target in panel.get("targets", [])
        ]


def answer(server: Prometheus, where: str, panel: Json, target: Json) -> Answer:
    """Ask as Grafana does with everything chosen: a range for lines, the last moment for the rest."""
    expression = ANY.sub('=~".+"', target["expr"])
    for macro, value in MACROS.items():
        expression = expression.replace(macro, value)
    lines = panel["type"] == "timeseries"
    fault, replayed = server.answer(expression, FROM if lines else TO, TO, traffic.STEP / 2)
    now = time.time()
    another, present = server.answer(expression, now - 3 if lines else now, now, 1)
    faults = tuple(dict.fromkeys(filter(None, (fault, another))))
    return Answer(where, panel, target, faults, tuple(replayed), tuple(present))


def read(expression: str) -> set[Any]:
    """The catalogue's metrics in an expression."""
    return set(promql.metrics([expression]))


@needs_prometheus
def test_no_expression_fails(answers: list[Answer]) -> None:
    """Prometheus refuses none and warns of none."""
    assert [(one.where, one.target["expr"], one.faults) for one in answers if one.faults] == []


@needs_prometheus
def test_panels_have_something_to_show(answers: list[Answer]) -> None:
    """A panel of which no expression finds a number has its reason written down."""
    shown = {one.where for one in answers if one.series}
    assert sorted({one.where for one in answers} - shown - EMPTY.keys()) == []


@needs_prometheus
def test_reasons_are_needed_and_few(answers: list[Answer]) -> None:
    """A panel that has something to show needs no reason, and at most a tenth have one."""
    shown, every = {one.where for one in answers if one.series}, {one.where for one in answers}
    assert sorted(EMPTY.keys() & shown) == []
    assert sorted(EMPTY.keys() - every) == []
    assert len(EMPTY) <= len(every) / 10


@needs_prometheus
def test_legends_name_labels_that_are_there(answers: list[Answer]) -> None:
    """Every label in the name of a series is in the series."""
    missing = [
        (one.where, one.legend, label)
        for one in answers
        for label in re.findall(r"\{\{(\w+)\}\}", one.legend)
        if one.series and not any(label in found["metric"] for found in one.series)
    ]
    assert missing == []


@needs_prometheus
def test_the_knee_is_the_queue_formula_s(answers: list[Answer]) -> None:
    """From 80 % on the bars grow as the mean wait of Erlang C does, within a tenth; rate and variability cancel out."""
    bars = {
        one.legend: float(one.series[0]["values"][0][1])
        for one in answers
        if one.where.endswith("Where on the knee are we?") and one.series  # no bar for now where it is overloaded
    }
    first = bars["{{pool}} at 80 %"]
    for percent in (85, 90, 95):
        waits = [queueing.mean_wait(REPLICAS, used * REPLICAS, 1.0) for used in (percent / 100, 0.8)]
        assert bars[f"{{{{pool}}}} at {percent} %"] / first == pytest.approx(waits[0] / waits[1], rel=0.1)


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's script; skips without npm's packages or a browser."""
    if not shutil.which("chromium"):
        pytest.skip("chromium is not installed")
    if not drawing.ESBUILD.exists():
        pytest.skip("node_modules is not filled: bash tests/prepare npm")
    folder = tmp_path_factory.mktemp("page")
    drawing.bundle(folder)
    return folder


@needs_prometheus
@pytest.mark.parametrize("name", sorted(BOARDS))
def test_grafana_s_components_draw_it(answers: list[Answer], bundled: Path, name: str) -> None:
    """Every panel with an answer is drawn by @grafana/ui: lines on a canvas, the rest as words; the picture is kept."""
    board, given = BOARDS[name], dict[int, list[Json]]()
    for one in answers:
        if one.where.startswith(f"{board['uid']}: "):
            given.setdefault(one.panel["id"], []).extend(drawing.series(one.series, one.target))
    stem = Path(name).stem
    drawn = drawing.draw(bundled, stem, board, given, (FROM, TO))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    shutil.copy(bundled / f"{stem}.png", OUTPUT)
    assert {title: one["failed"] for title, one in drawn.items() if one["failed"]} == {}
    for panel in panels(board):
        one = drawn[panel["title"]]
        assert (one["state"] == "data") == (panel["type"] == "text" or bool(given[panel["id"]])), panel["title"]
        if one["state"] == "data" and panel["type"] == "timeseries":
            assert one["canvases"] > 0, panel["title"]
            named = given[panel["id"]][0]["name"]
            assert named in one["text"], panel["title"]
        elif one["state"] == "data":
            assert len(one["text"]) > len(panel["title"]), panel["title"]
