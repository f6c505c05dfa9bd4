"""`capwatch simulate`: rows for machines and for people."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.plans.calls import told

MIX = "simulate --mix policy=0.85:0.825 --mix order=0.14:1.7375 --mix long=0.01:4.75 --replicas 12"


def rows(words: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What --json prints."""
    code, out, err = told(shlex.split(f"{MIX} {words} --json"), capsys)
    assert (code, err) == (0, "")
    found: list[dict[str, Any]] = json.loads(out)
    return found


def test_a_row_for_each_load(capsys: pytest.CaptureFixture[str]) -> None:
    """All --open in order, then all --closed, with the agreed keys; 60,000 requests and seed 7."""
    found = rows("--closed 12 --open 12.5 --open 8", capsys)
    assert [row["offered"] for row in found] == [12.5, 8, 12]
    assert [round(row["completion_rate"], 4) for row in found] == [12.1165, 8.0494, 12.1207]
    assert [row["arrival_rate"] and round(row["arrival_rate"], 4) for row in found] == [12.5789, 8.0505, None]
    assert [round(found[1][key], 5) for key in ("p50", "p95", "p99", "mean_wait")] == [0.825, 1.7375, 2.31086, 0.02425]
    assert [list(row["per_class"]) for row in found] == [["policy", "order", "long"]] * 3
    assert all({"p50", "p95", "p99", "mean_wait"} <= set(one) for row in found for one in row["per_class"].values())


def test_the_same_arguments_give_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """A row does not depend on its neighbours either; another seed is another row."""
    words = "--open 8 --requests 500"
    assert rows(words, capsys) == rows(words, capsys) == rows(f"--open 11 {words} --closed 3", capsys)[1:2]
    assert rows(words, capsys) != rows(f"{words} --seed 8", capsys)


def test_a_class_that_never_came_has_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """Null, not 0."""
    assert rows("--open 8 --requests 1", capsys)[0]["per_class"]["long"] is None


def test_people_see_each_class_and_the_knee(capsys: pytest.CaptureFixture[str]) -> None:
    """Inputs, both tables and a bar for each load."""
    _, text, _ = told(shlex.split(f"{MIX} --open 8 --open 12.5 --closed 12"), capsys)
    assert "--mix       policy=0.85:0.825" in text
    assert "12 replicas are all busy at replicas/work = 12.0968 requests/s" in text
    assert "12.5789" in text
    assert text.count("policy") == 4
    bars = [line for line in text.splitlines() if "|" in line]
    assert [line.split("|")[0].strip() for line in bars] == ["open 8/s", "open 12.5/s", "closed 12"]
    assert bars[0].count("#") < bars[1].count("#") == 40
