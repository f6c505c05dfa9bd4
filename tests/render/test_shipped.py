"""Rules and dashboards as they come out of the package: complete, with a runbook of one's own, as an object."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from capwatch.cli import main

ROOT = Path(__file__).resolve().parents[2]
OBJECT = ROOT / "deploy" / "kubernetes" / "prometheusrule.yml"
RUNBOOK = "https://wiki.example.org/runbook"


def out(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints."""
    assert main(["render", *words]) == 0
    return capsys.readouterr().out


def groups(text: str) -> list[dict[str, Any]]:
    """The groups of a file, or of an object."""
    document = yaml.safe_load(text)
    found: list[dict[str, Any]] = document.get("spec", document)["groups"]
    return found


def shipped() -> list[dict[str, Any]]:
    """The groups of the three files."""
    return [
        group
        for name in ("thresholds", "recording", "alerts")
        for group in groups((ROOT / f"rules/{name}.yml").read_text())
    ]


def test_the_files_are_those_of_the_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Byte by byte; their names are printed."""
    told = out(capsys, "rules", "--out", str(tmp_path / "rules")).split()
    assert [Path(one).read_text() for one in told] == [(ROOT / "rules" / Path(one).name).read_text() for one in told]
    boards = out(capsys, "dashboards", "--out", str(tmp_path / "boards")).split()
    assert {Path(one).name: Path(one).read_text() for one in boards} == {
        path.name: path.read_text() for path in (ROOT / "dashboards").glob("*.json")
    }


def test_every_alert_leads_to_one_s_own_runbook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else is changed; promtool takes the files."""
    out(capsys, "rules", "--runbook", RUNBOOK, "--out", str(tmp_path))
    links = [
        rule["annotations"]["runbook_url"]
        for group in groups((tmp_path / "alerts.yml").read_text())
        for rule in group["rules"]
    ]
    assert all(link.startswith(f"{RUNBOOK}#capwatch") for link in links)
    assert len(links) == 21
    back = (tmp_path / "alerts.yml").read_text().replace(RUNBOOK, "rules/README.md")
    assert back == (ROOT / "rules" / "alerts.yml").read_text()
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "rules", *tmp_path.glob("*.yml")], capture_output=True, check=False)
        assert done.returncode == 0


def test_the_object_of_the_operator_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    """The committed one is what is rendered, with all groups in the order in which they are evaluated."""
    told = out(capsys, "rules", "--operator", "--namespace", "capwatch")
    assert OBJECT.read_text() == told
    document = yaml.safe_load(told)
    assert (document["kind"], document["metadata"]["namespace"]) == ("PrometheusRule", "capwatch")
    assert groups(told) == shipped()


def test_labels_by_which_it_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as are given; one that is none is refused."""
    document = yaml.safe_load(out(capsys, "rules", "--operator", "--label", "release=kube-prometheus-stack"))
    assert document["metadata"]["labels"]["release"] == "kube-prometheus-stack"
    assert main(["render", "rules", "--operator", "--label", "release"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and the place."""
    (tmp_path / "file").touch()
    for name in ("rules", "dashboards"):
        assert main(["render", name, "--out", str(tmp_path / "file")]) == 2
        assert capsys.readouterr().err.startswith("--out: ")
    assert main(["render", "dashboards"]) == 2
