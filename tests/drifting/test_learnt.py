"""A model in the live pipeline: learnt elsewhere, about names, part of the state; and it raises the alarm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pytest

from capwatch.config.schema import Class, Config, Match, Pool
from capwatch.drift.rows import Rows
from capwatch.drift.saved import save
from capwatch.drifting.learnt import ABSENT, Learnt
from capwatch.keep.codec import pack, unpack
from capwatch.ledger import Delta, Names, Totals
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from tests.drift.sample import HOUR, LATER, NAMES, SETTINGS, model, rows
from tests.spine import Spine, decoded, request, samples

CONFIG = Config(
    pools=(Pool("chat", Match(model=("chat-*",)), replicas=12),),
    classes=(Class("long", Match(route=("/v1/sum",))), Class("policy", Match())),
)
BATCH = 200


@cache
def told() -> Mapping[str, Any]:
    """What a process that learns would tell of a quiet week."""
    return {"model": save(model()), "texts": NAMES, "settings": asdict(SETTINGS), "until": LATER // 10}


def records(of: Rows) -> Iterator[dict[str, Any]]:
    """Requests as a log tells them."""
    for i in range(len(of)):
        yield request(
            finished_at=float(of.at[i]),
            tenant=NAMES["tenant"][of.tenant[i]],
            route=NAMES["route"][of.route[i]],
            prompt_tokens=int(of.prompt[i]),
            cached_tokens=int(of.cached[i]),
            output_tokens=int(of.output[i]),
        )


def batches(*parts: Rows) -> list[list[dict[str, Any]]]:
    """Requests of stretches that follow each other, some at a time."""
    whole = [one for part in parts for one in records(part)]
    return [whole[begin : begin + BATCH] for begin in range(0, len(whole), BATCH)]


def fed(spine: Spine, *parts: Rows) -> Spine:
    """A spine after these requests."""
    for part in batches(*parts):
        spine.feed(*part, now=part[-1]["finished_at"] + 1)
    return spine


def learnt(config: Config = CONFIG) -> Spine:
    """A spine that has learnt."""
    spine = Spine(config)
    assert spine.pipeline.drifts.learn("chat", unpack(pack(told())))
    return spine


QUIET = rows(LATER, HOUR / 6, 21)
AFTER = LATER + HOUR / 6
DEARER = rows(AFTER, HOUR / 10, 22, newcomer=0.1)


def test_what_was_learnt_raises_the_alarm() -> None:
    """It says at once that it has learnt, and names a tenant that history does not have within two minutes."""
    spine = learnt()
    spine.commit()
    assert spine.value("drift_learning", pool="chat") == 0
    fed(spine, QUIET)
    assert spine.pipeline.drifts.events == []
    fed(spine, DEARER)
    (event,) = spine.pipeline.drifts.active()
    assert 0 <= event["at"] - AFTER <= 120
    assert abs(event["started_at"] - AFTER) <= 30
    assert "tenant acme" in event["sentence"]


def found(pipeline: Pipeline, totals: Totals) -> dict[Any, float]:
    """What the page says of drifts."""
    return {key: value for key, value in samples(pipeline, totals).items() if "drift" in key[0]}


@pytest.mark.parametrize("checkpoint", [0, 6])
def test_the_same_bytes_give_the_same_alarms_after_a_kill(checkpoint: int) -> None:
    """Whatever of the adoption, a checkpoint and the kill comes first: the state has what was learnt."""
    parts, adopted, killed = batches(QUIET, DEARER), 3, 8
    whole, pipeline, totals = Spine(CONFIG), Pipeline(CONFIG), Pipeline(CONFIG).totals()
    later: list[tuple[Delta, Any]] = []
    saved = unpack(pack(pipeline.save()))
    for number, part in enumerate(parts):
        if number == checkpoint:
            saved, later = unpack(pack(pipeline.save())), []
        if number == killed:
            names = Names()
            names.load(totals.names.save())
            pipeline = Pipeline(CONFIG, names)
            pipeline.load(saved)
            for delta, news in later:
                pipeline.absorb(delta, news)
            pipeline.recall(totals)
        if number == adopted:
            assert pipeline.drifts.learn("chat", told())
            assert whole.pipeline.drifts.learn("chat", told())
        whole.feed(*part, now=part[-1]["finished_at"] + 1)
        pipeline.take(Origin("log"), decoded(*part), part[-1]["finished_at"] + 1)
        delta = pipeline.freeze()
        totals.apply(delta)
        later.append((delta, unpack(pack(pipeline.news()))))
    assert whole.pipeline.drifts.active() != []
    assert pipeline.drifts.events == whole.pipeline.drifts.events
    assert found(pipeline, totals) == pytest.approx(found(whole.pipeline, whole.totals))


def test_a_name_that_comes_back_is_known() -> None:
    """A model is about names: with another id, one of history's tenants is no stranger, and nobody sits in a gap."""
    ids = {("tenant", "alpha"): 7, ("tenant", "gamma"): 9, ("class", "policy"): 2, ("route", "/v1/chat"): 4}
    one = Learnt(told())
    first = one.model(lambda dimension, text: ids.get((dimension, text)))
    assert first is not None
    assert first.reference.layout.tenants == (7, ABSENT, 9, ABSENT)
    assert first.reference.layout.known == (7, 9)
    assert one.model(lambda dimension, text: ids.get((dimension, text))) is None
    ids["tenant", "beta"] = 12
    again = one.model(lambda dimension, text: ids.get((dimension, text)))
    assert again is not None
    assert again.reference.layout.tenants == (7, 12, 9, ABSENT)
    assert np.array_equal(again.reference.share, model().reference.share)


def test_what_was_learnt_with_other_settings_is_not_taken() -> None:
    """Rates make the cost: a model for others would alarm at once. Neither now nor after a restart."""
    other = Config(pools=(Pool("chat", Match(model=("chat-*",)), prefill_tokens_per_second=8000.0),))
    assert not Spine(other).pipeline.drifts.learn("chat", told())
    kept = fed(learnt(), rows(LATER, 60, 3)).pipeline.save()
    restarted = Pipeline(other)
    restarted.load(unpack(pack(kept)))
    assert [one.detector.learning for one in restarted.drifts.pools.values()] == [True, True]


def test_a_week_of_the_new_mix_is_learnt_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepted by itself, it is as unlearnt as when somebody does it."""
    monkeypatch.setattr("capwatch.drift.active.ACCEPT", 60)
    spine = fed(learnt(), QUIET, rows(AFTER, HOUR / 3, 22, newcomer=0.1))
    assert [(one["event"], one.get("note")) for one in spine.pipeline.drifts.events[:2]] == [
        ("raised", None),
        ("cleared", "accepted"),
    ]
    assert "chat" in spine.pipeline.drifts.due()
    assert spine.value("drift_learning", pool="chat") == 1


def test_nothing_is_learnt_while_something_is_wrong() -> None:
    """Daily, but not while a drift is active; when it is accepted, at once."""
    spine = fed(learnt(), QUIET, DEARER)
    drifts = spine.pipeline.drifts
    (one,) = (one for one in drifts.pools.values() if one.pool.name == "chat")
    assert drifts.due() == ["default"]
    assert not drifts.learn("chat", told())
    one.until += 10 * 8640
    assert not one.due
    one.until -= 10 * 8640
    assert drifts.accept("chat")
    assert "chat" in drifts.due()
    spine.commit()
    assert spine.value("drift_learning", pool="chat") == 1
    assert spine.value("drift_alarms_total", pool="chat", direction="up") == 1
    one.learn(Learnt({**told(), "until": one.until}))
    assert drifts.due() == ["default"]
    one.detector.score, one.until = 0.6, one.until + 8640
    assert not one.due
    one.detector.score = 0.4
    assert one.due
