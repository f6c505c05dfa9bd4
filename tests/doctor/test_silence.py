"""A server that stops to answer in the middle is no server that refuses expressions."""

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
