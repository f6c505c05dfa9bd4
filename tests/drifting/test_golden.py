"""The golden scenarios of drift, by lines through the live pipeline of a pool that has learnt."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from capwatch.drift.model import fit
from capwatch.drift.rows import Rows
from capwatch.drift.saved import save
from capwatch.drift.ticks import Ticks
from tests.drift.sample import DAY, HOUR, MONDAY, NAMES, SETTINGS, rows, ticks
from tests.spine import Spine

from .test_learnt import AFTER, CONFIG, QUIET, fed, learnt

NINE = 9 * HOUR


def joined(*parts: Rows) -> Rows:
    """Requests of several sources, in order of time."""
    names = Rows.__dataclass_fields__
    whole = Rows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
    return whole.take(np.argsort(whole.at, kind="stable"))


def told(spine: Spine) -> list[dict[str, Any]]:
    """Every event that was raised."""
    return [one for one in spine.pipeline.drifts.events if one["event"] == "raised"]


def test_g2_a_dear_class_grows_at_flat_rate() -> None:
    """G2: the class is named, the rate is called flat, effects add up, and what it means for the pool is said."""
    spine = fed(learnt(), QUIET, rows(AFTER, HOUR / 12, 41, long=0.12))
    (event,) = told(spine)
    assert event["at"] - AFTER <= 180
    assert "class long" in event["sentence"]
    assert "flat" in event["sentence"]
    assert "replicas needed at 70 %, 12 there" in event["sentence"]
    assert sum(event["effects"].values()) == pytest.approx(event["cost_after"] - event["cost_before"])
    assert event["effects"]["mix"] == max(event["effects"].values())


def test_g11_the_rate_doubles_and_the_mix_stays() -> None:
    """G11: no drift, only the rate moves."""
    spine = fed(learnt(), QUIET, rows(AFTER, HOUR / 4, 42, rate=6.0))
    assert told(spine) == []
    assert spine.value("drift_request_rate_change_ratio", pool="chat") == pytest.approx(1.0, abs=0.2)
    assert spine.value("drift_cost_change_ratio", pool="chat") == pytest.approx(0.0, abs=0.1)


def test_g12_longer_prompts_that_are_cached_cost_nothing() -> None:
    """G12: cached tokens come on top, computed ones stay: no drift; prompt and cache effects cancel."""
    spine = fed(learnt(), QUIET, rows(AFTER, HOUR / 4, 43, cached=600.0))
    assert told(spine) == []
    effects = {
        dict(key)["effect"]: value for key, value in spine.values("drift_effect_replica_seconds", pool="chat").items()
    }
    assert effects["prompt"] > 0.1
    assert effects["prompt"] + effects["cache"] == pytest.approx(0.0, abs=0.05)


def test_g13_a_small_tenant_sends_one_very_long_prompt() -> None:
    """G13: one of a tenant's twenty requests an hour costs a hundred times as much, and nothing is raised."""
    whole = rows(AFTER, HOUR / 4, 44)
    small = whole.take(np.arange(200, 1000, 120))
    small = replace(small, at=small.at + 0.5, tenant=np.full(len(small), 3))
    prompt = small.prompt.copy()
    prompt[len(prompt) // 2] = 120_000
    assert told(fed(learnt(), QUIET, joined(whole, replace(small, prompt=prompt)))) == []


def busy(day: int, seed: int, seconds: float) -> Rows:
    """What comes at nine in the morning of a day: many dear requests."""
    return rows(MONDAY + day * DAY + NINE, seconds, seed, rate=1.5, long=0.6)


def test_g14_a_mix_that_recurs_every_monday_is_usual() -> None:
    """G14: nine o'clock on Monday raises nothing after a week that has it, and something after one that has not."""
    history = Ticks.merge([ticks(rows(MONDAY, 7 * DAY, 45)), ticks(busy(0, 46, HOUR))])
    begin = MONDAY + 7 * DAY + NINE
    requests = joined(rows(begin, HOUR / 6, 49), busy(7, 50, HOUR / 6))
    knows = Spine(CONFIG)
    model = {"model": save(fit(history, SETTINGS)), "texts": NAMES, "settings": asdict(SETTINGS)}
    assert knows.pipeline.drifts.learn("chat", model | {"until": int(begin // 10)})
    assert told(fed(knows, requests)) == []
    assert len(told(fed(learnt(), requests))) == 1
