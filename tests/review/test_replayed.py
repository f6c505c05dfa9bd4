"""Seeded traffic through the product: the stories' truth comes out, of raw logs as of a state directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.cli import main
from capwatch.review.calendar import DAY, IsoWeek

from . import stories

WEEK = IsoWeek(2026, 48)
BEGIN, END = WEEK.since - int(3.2 * DAY), WEEK.since + int(3.6 * DAY)
CHANGE = WEEK.since + 2 * DAY + 10 * 3600.0
RATE = 0.012


def review(folder: Path, *source: str) -> dict[str, Any]:
    """The document that the command writes."""
    out = folder / "review.html"
    assert main(["review", "--week", str(WEEK), *source, "--out", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The review of the same eight days of three pools, of the logs and of a history that a replay left."""
    folder = tmp_path_factory.mktemp("review")
    log, config, state = folder / "requests.jsonl", folder / "capwatch.yml", folder / "state"
    told = [stories.story(kind, 4, RATE, CHANGE) for kind in stories.KINDS]
    stories.write(log, told, BEGIN, END)
    stories.config(config, log, told)
    logs = review(folder, "--config.file", str(config))
    assert main(["replay", "--config.file", str(config), "--state-dir", str(state)]) == 0
    return {"stories": told, "logs": logs, "state": review(folder, "--state-dir", str(state))}


@pytest.mark.parametrize("source", ["logs", "state"])
@pytest.mark.parametrize("kind", stories.KINDS)
def test_costs_are_the_storys(kind: str, source: str, told: dict[str, Any]) -> None:
    """Before and after, and the effects that lie between, within what some thousand requests leave in doubt."""
    (one,) = (one for one in told["stories"] if one.kind == kind)
    pool, truth = told[source]["pools"][kind], one.truth
    assert pool["cost_before"] == pytest.approx(truth["cost_before"], rel=0.03)
    assert pool["cost_after"] == pytest.approx(truth["cost_after"], rel=0.1 if kind == "tenant" else 0.03)
    (event,) = (event for event in told[source]["drifts"] if event["pool"] == kind)
    for effect, size in truth["effects"].items():
        newcomers = one.extra * (END - CHANGE) if effect == "mix" and size else np.inf
        doubt = 0.03 * truth["cost_before"] + 3 / np.sqrt(newcomers) * abs(size)
        assert event["effects"][effect] == pytest.approx(size, abs=doubt), effect
    assert sum(event["effects"].values()) == pytest.approx(event["cost_after"] - event["cost_before"])
    assert event["started_at"] == pytest.approx(CHANGE, abs=2 * 3600)


@pytest.mark.parametrize("kind", stories.KINDS)
def test_the_cause_is_named(kind: str, told: dict[str, Any]) -> None:
    """Longer prompts; fewer cache hits, with the note of the deploy; the new tenant."""
    (finding,) = (one for one in told["logs"]["findings"] if one["pool"] == kind and "a request costs" in one["title"])
    words = {"depth": "longer prompts", "cliff": "fewer prefix cache hits", "tenant": "tenant newcomer"}[kind]
    assert words in finding["title"]
    if stories.NOTES[kind]:
        assert any(stories.NOTES[kind] in text for text in finding["evidence"])
    assert finding["remedies"]


@pytest.mark.parametrize("kind", stories.KINDS)
def test_logs_and_state_agree(kind: str, told: dict[str, Any]) -> None:
    """To a hundredth: it is the same pipeline, and the history rounds to a millionth."""
    logs, state = (told[source]["pools"][kind] for source in ("logs", "state"))
    for key in ("cost_before", "cost_after", "utilisation_before", "utilisation_after", "requests"):
        assert state[key] == pytest.approx(logs[key], rel=0.01), key
    assert state["bursts"] == logs["bursts"]
    assert state["replicas_needed"] == logs["replicas_needed"]


@pytest.mark.parametrize("kind", stories.KINDS)
def test_utilisation_is_the_storys(kind: str, told: dict[str, Any]) -> None:
    """Two thirds before; after as rate × cost ÷ replicas, within the chance of some thousand arrivals."""
    (one,) = (one for one in told["stories"] if one.kind == kind)
    pool, truth = told["logs"]["pools"][kind], one.truth
    for key in ("utilisation_before", "utilisation_after"):
        assert pool[key] == pytest.approx(truth[key], rel=0.1), key
    assert abs(pool["replicas_needed"] - truth["replicas"]) < 1 + 0.1 * truth["replicas"]
