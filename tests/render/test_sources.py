"""A log, the history of a state directory and a Prometheus that scraped capwatch give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from capwatch.cli import main
from capwatch.config import parse
from capwatch.keep.history import History
from tests.observed.scraped import needs_prometheus, scraped
from tests.spine import Spine

from .traffic import CONFIG, SECONDS, START, rows, written


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log, its configuration, and a state directory that knows the same."""
    found = tmp_path_factory.mktemp("sources")
    config = parse(
        written(found).read_text(), "capwatch.yml", {"HOME": "/"}, formats=frozenset({"jsonl"}), is_root=False
    )
    spine = Spine(config)
    spine.feed(*rows(), now=START + SECONDS)
    spine.tick(START + 3 * 3600)
    (found / "state").mkdir()
    with closing(History(str(found / "state"), 1 << 30)) as history:
        history.keep(spine.totals.closed, spine.totals.names, spine.totals.clock)
        history.note_settings(START, {one.name: msgspec.to_builtins(one) for one in config.pools})
    return found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that has scraped a capwatch with this configuration."""
    with scraped(tmp_path_factory.mktemp("scraped"), CONFIG, rows(), "60s") as found:
        yield found


def rendered(capsys: pytest.CaptureFixture[str], name: str, *source: str) -> dict[str, Any]:
    """A document."""
    assert main(["render", name, *source]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found: dict[str, Any] = yaml.safe_load(shown.out)
    return found


def logs(folder: Path) -> tuple[str, ...]:
    """The log as a source."""
    return ("--config.file", str(folder / "capwatch.yml"), str(folder / "x.jsonl"))


def test_a_history_tells_what_the_log_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The autoscaler in every line; limits but for the bucket, which takes single requests."""
    state = ("--state-dir", str(folder / "state"))
    assert rendered(capsys, "hpa", *state) == rendered(capsys, "hpa", *logs(folder))
    mine, other = rendered(capsys, "limits", *state), rendered(capsys, "limits", *logs(folder))
    assert {name: one["rate"] for name, one in mine["budgets"].items()} == {
        name: one["rate"] for name, one in other["budgets"].items()
    }
    assert mine["budgets"]["bolt"]["burst"] == pytest.approx(300 * mine["budgets"]["bolt"]["rate"], rel=0.01)
    assert {key: mine[key] for key in mine if key not in ("budgets", "max_output_tokens")} == {
        key: other[key] for key in other if key not in ("budgets", "max_output_tokens")
    }
    for route, most in other["max_output_tokens"].items():
        assert mine["max_output_tokens"][route] == pytest.approx(most, rel=0.0055, abs=1)
    load, same = (rendered(capsys, "loadtest", *source)["load"] for source in (state, logs(folder)))
    assert load == same


@needs_prometheus
def test_a_server_tells_it_too(folder: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bounds and rates up to what lies between two looks; settings from the configuration, or marked defaults."""
    window = ("--since", str(int(START)), "--until", str(int(START) + SECONDS))
    source = ("--prometheus", url, *window)
    mine = rendered(capsys, "hpa", *source, "--config.file", str(folder / "capwatch.yml"))["spec"]
    other = rendered(capsys, "hpa", *logs(folder))["spec"]
    assert abs(mine["minReplicas"] - other["minReplicas"]) <= 1
    assert abs(mine["maxReplicas"] - other["maxReplicas"]) <= 3  # a zone's worth
    assert (mine["metrics"], mine["behavior"]) == (other["metrics"], other["behavior"])
    limits, same = rendered(capsys, "limits", *source), rendered(capsys, "limits", *logs(folder))
    for name, budget in same["budgets"].items():
        assert limits["budgets"][name]["rate"] == pytest.approx(budget["rate"], rel=0.05)
    assert "max_in_flight_per_replica" not in limits
    for route, most in same["max_output_tokens"].items():
        assert most <= limits["max_output_tokens"][route] <= most * 2 ** (1 / 4) + 1
    keda = rendered(capsys, "keda", *source)["spec"]
    assert keda["triggers"][0]["metadata"]["serverAddress"] == url
    assert keda["fallback"]["replicas"] == 6
