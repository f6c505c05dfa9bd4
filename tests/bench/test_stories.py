"""The comparison of reviews with the truth: what is right passes, and each number that is off is seen."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from capwatch.review.calendar import DAY, HOUR, IsoWeek
from tests.bench.stories import CAUSES, REMEDIES, agreeing, checked
from tests.review import stories
from tests.review.stories import Story

SINCE = IsoWeek(2026, 48).since


def told(one: Story) -> dict[str, Any]:
    """A review that says the truth."""
    truth = one.truth
    numbers = {key: truth[key] for key in ("cost_before", "cost_after", "utilisation_before", "utilisation_after")}
    rates = {"rate_before": one.rate, "rate_after": one.rate, "requests": 1e6, "goodput_ratio": 1.0}
    event = {"pool": one.kind, "started_at": one.change, "effects": truth["effects"]}
    finding = {
        "pool": one.kind, "title": f"{one.kind}: a request costs more: {CAUSES[one.kind]}",
        "evidence": [stories.NOTES[one.kind]], "numbers": {"remedies": [{"text": f"{REMEDIES[one.kind]} 1"}]},
    }  # fmt: skip
    pool = numbers | rates | {"replicas_needed": math.ceil(truth["replicas"])}
    return copy.deepcopy({"pools": {one.kind: pool}, "drifts": [event], "findings": [finding]})


@pytest.mark.parametrize("kind", stories.KINDS)
def test_what_is_off_is_seen(kind: str) -> None:
    """The truth is right in every line; a number off by a twentieth, and a wrong cause, each make one line wrong."""
    one = stories.story(kind, 1, 2.0, SINCE + 2 * DAY + 10 * HOUR)
    assert all(line.good for line in checked(one, "history", told(one)))
    for key in ("cost_before", "cost_after", "utilisation_before", "utilisation_after"):
        wrong = told(one)
        wrong["pools"][kind][key] *= 1.05
        assert [line.name for line in checked(one, "history", wrong) if not line.good] == [key]
        assert [line.name for line in agreeing(one, told(one), wrong) if not line.good] == [key]
    wrong = told(one)
    wrong["findings"][0]["title"] = f"{kind}: a request costs more: longer answers"
    wrong["drifts"][0]["started_at"] += 2 * HOUR
    assert [line.name for line in checked(one, "history", wrong) if not line.good] == ["change point", "cause"]


def test_lines_are_in_order_over_days(tmp_path: Path) -> None:
    """Requests that end after midnight stand behind those that end before it; the newcomer comes with the change."""
    one = stories.story("tenant", 1, 0.01, SINCE + 1.5 * DAY)
    lines = stories.write(tmp_path / "x.jsonl", [one], SINCE, SINCE + 3 * DAY)
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert lines == len(rows) == pytest.approx(0.01 * 3 * DAY, rel=0.1)
    assert [row["finished_at"] for row in rows] == sorted(row["finished_at"] for row in rows)
    assert min(row["started_at"] for row in rows if row["tenant"] == "newcomer") >= one.change
