"""Servers that stop to answer in the middle, or answer in odd ways."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from capwatch.cli import main
from tests.observed.test_prometheus import JSON, Said, speaking

NOTHING = json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}).encode()


@pytest.mark.parametrize("answers", [0, 1, 60])
def test_silence_ends_the_examination(answers: int, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 1, and nothing more is asked: hundreds of questions would each wait a minute."""
    asked = 0

    def say(method: str, headers: Mapping[str, str], query: str) -> Said:
        nonlocal asked
        asked += 1
        return (200 if asked <= answers else 0), JSON, NOTHING

    with speaking(say) as url:
        code = main(["doctor", "--prometheus", url])
    shown = capsys.readouterr()
    assert (code, shown.out, shown.err.count("\n"), asked) == (1, "", 1, answers + 1)
    assert f"{url}: connection failed" in shown.err


ODD: dict[str, object] = {
    "null": None, "list": [], "text": "x", "null inside": {"groups": None, "activeTargets": None},
    "no rules": {"groups": [{"rules": None}], "activeTargets": [{}]},
    "half a rule": {"groups": [{"rules": [{"name": "x"}]}]},
    "no alerts": {"groups": [{"rules": [{"name": "x", "type": "alerting", "query": "up{", "alerts": None}]}]},
    "a wrong type": {"groups": "abc", "activeTargets": "abc", "version": 5},
}  # fmt: skip


@pytest.mark.parametrize("told", ODD)
@pytest.mark.parametrize("labels", [{}, {"__name__": "capwatch_build_info"}])
def test_odd_answers_are_looked_at(told: str, labels: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """What is no list of rules or targets is none told, and a series need not have the labels that ours have."""
    series = {"metric": labels, "value": [1, "5"]}
    vector = {"resultType": "vector", "result": [series]}

    def say(method: str, headers: Mapping[str, str], query: str) -> Said:
        data = vector if "query=" in query else ODD[told]
        return 200, JSON, json.dumps({"status": "success", "data": data}).encode()

    with speaking(say) as url:
        code = main(["doctor", "--prometheus", url])
    shown = capsys.readouterr()
    assert (code, shown.err) == (1, "")
    assert shown.out.startswith(f"{url}\n  panels ")
