"""The detectors at work: what goes in as lines comes out as ticks, gauges and events, over restarts as well."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from capwatch.config.schema import Class, Config, Match, Pool
from capwatch.drift.rows import Rows
from capwatch.drift.ticks import Ticks
from capwatch.drifting.detecting import bounded
from capwatch.keep.codec import pack, unpack
from capwatch.ledger import Names, Totals
from capwatch.meters.drift import TICKS
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.record import Note
from tests.spine import Spine, decoded, request, samples

BEGIN = 1_767_571_200.0
CHANGE = BEGIN + 3 * 3600
CONFIG = Config(
    pools=(Pool("chat", Match(model=("chat-*",)), replicas=12),),
    classes=(Class("long", Match(route=("/v1/summaries",))), Class("policy", Match())),
)


def lines(hours: float, *, dearer: bool, seed: int = 5) -> Iterator[dict[str, Any]]:
    """2 requests/s; three hours in, a tenant whose requests cost six times as much comes with a tenth of them."""
    draw, at = random.Random(seed), BEGIN
    while (at := at + draw.expovariate(2.0)) < BEGIN + hours * 3600:
        comes = dearer and at >= CHANGE and draw.random() < 0.1
        prompt = draw.lognormvariate(9.2, 0.4) if comes else draw.lognormvariate(7.0, 0.5)
        yield request(
            finished_at=at,
            tenant="initech" if comes else draw.choice(["acme", "globex"]),
            route="/v1/summaries" if comes else "/v1/chat",
            prompt_tokens=round(prompt),
            output_tokens=400 if comes else 80,
        )


def fed(rows: list[dict[str, Any]], spine: Spine, size: int = 500) -> Spine:
    """A spine after these rows, in batches."""
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        spine.feed(*part, now=part[-1]["finished_at"] + 1)
    return spine


@pytest.fixture(scope="module")
def drifted() -> Spine:
    """Four and a half hours with the change."""
    return fed([*lines(3.6, dearer=True)], Spine(CONFIG))


def test_ticks_hold_every_request_that_is_over(drifted: Spine) -> None:
    """The last two hours' ticks sum to the requests of that time, and to their cost."""
    last = drifted.totals.clock - 5
    rows = [row for row in lines(3.6, dearer=True) if row["finished_at"] // 10 < last // 10]
    slots = drifted.totals.slots(TICKS)
    mine = [row for row in rows if row["finished_at"] // 10 in slots]
    assert sum(sums.values[:, TICKS.column("n")].sum() for sums in slots.values()) == len(mine)
    cost = sum(row["prompt_tokens"] / 4000 + row["output_tokens"] / 160 for row in mine)
    assert sum(sums.values[:, TICKS.column("cost")].sum() for sums in slots.values()) == pytest.approx(cost)


def test_a_new_tenant_is_named_while_the_history_is_short(drifted: Spine) -> None:
    """Under three days only the wide rule holds; it says so, and names who came."""
    assert drifted.value("drift_learning", pool="chat") == 1
    assert drifted.value("drift_active", pool="chat", direction="up") == 1
    assert drifted.value("drift_alarms_total", pool="chat", direction="up") == 1
    (event,) = drifted.pipeline.drifts.active()
    assert CHANGE < event["at"] < CHANGE + 1500
    assert "tenant initech" in event["sentence"]
    named = drifted.values("drift_contribution_replica_seconds", pool="chat", dimension="tenant")
    assert "initech" in {dict(labels)["value"] for labels in named}


def test_a_note_before_the_change_is_told(drifted: Spine) -> None:
    """In the event, in what is active, and in its sentence; whenever the note comes."""
    (before,) = drifted.pipeline.drifts.active()
    assert "deploy" not in before
    started = before["started_at"]
    drifted.pipeline.drifts.marks.recall([Note(started - 240, "chat", "retrieval 4 → 8"), Note(started - 60, "b", "?")])
    (event,) = drifted.pipeline.drifts.active()
    assert event["deploy"] == {"at": started - 240, "pool": "chat", "text": "retrieval 4 → 8"}
    assert 'It began 4 min after the deploy note "retrieval 4 → 8".' in event["sentence"]


def test_the_rate_beside_it_is_flat(drifted: Spine) -> None:
    """2 requests/s before and after: the short history knows no hour of the day, so its mean is what was usual."""
    assert drifted.value("drift_request_rate_change_ratio", pool="chat") == pytest.approx(0.0, abs=0.15)


def test_effects_add_up_on_the_page(drifted: Spine) -> None:
    """Law 6: the effects are the change of the cost per request, at every scrape."""
    costs = {
        dict(key)["window"]: value
        for key, value in drifted.values("cost_per_request_replica_seconds", pool="chat").items()
    }
    effects = drifted.total("drift_effect_replica_seconds", pool="chat")
    assert effects == pytest.approx(costs["current"] - costs["reference"], rel=1e-9)
    ratio = drifted.value("drift_cost_change_ratio", pool="chat")
    assert ratio == pytest.approx(costs["current"] / costs["reference"] - 1)


def test_without_a_change_nothing_is_said() -> None:
    """Neither an alarm, nor a contribution, nor a reference that is not known."""
    spine = fed([*lines(3.6, dearer=False)], Spine(CONFIG))
    assert spine.total("drift_alarms_total") == 0
    assert spine.values("drift_contribution_replica_seconds") == {}
    assert spine.values("cost_per_request_replica_seconds", window="reference") == {}
    assert spine.value("cost_per_request_replica_seconds", pool="chat", window="current") == pytest.approx(
        0.81, rel=0.1
    )


def test_what_is_accepted_goes() -> None:
    """The drift ends with that word, its contributions leave the page, and nothing is raised anew."""
    spine = fed([*lines(3.6, dearer=True)], Spine(CONFIG))
    assert spine.pipeline.drifts.accept("chat")
    assert not spine.pipeline.drifts.accept("chat")
    spine.commit()
    assert spine.value("drift_active", pool="chat", direction="up") == 0
    assert spine.values("drift_contribution_replica_seconds") == {}
    assert spine.pipeline.drifts.events[-1]["note"] == "accepted"
    fed([row for row in lines(4.2, dearer=True) if row["finished_at"] > spine.totals.clock], spine)
    assert spine.value("drift_alarms_total", pool="chat", direction="up") == 1


@pytest.mark.parametrize("by_checkpoint", [True, False])
def test_a_restart_changes_nothing(by_checkpoint: bool) -> None:
    """Whenever it comes, and whether it comes from a checkpoint alone or from deltas after one."""
    rows = [*lines(3.5, dearer=True)]
    whole = fed(rows, Spine(CONFIG))
    totals, pipeline = Pipeline(CONFIG).totals(), Pipeline(CONFIG)
    for number, begin in enumerate(range(0, len(rows), 500)):
        if number % 7 == 3:
            saved = unpack(pack(pipeline.save()))
            pipeline, later = _again(totals, saved), []
            if not by_checkpoint:
                continue_from = saved
        part = rows[begin : begin + 500]
        pipeline.take(Origin("log"), decoded(*part), part[-1]["finished_at"] + 1)
        delta = pipeline.freeze()
        news = unpack(pack(pipeline.news()))
        totals.apply(delta)
        if not by_checkpoint and number % 7 == 3:
            names = Names()
            names.load(pipeline.names.save())
            pipeline = Pipeline(CONFIG, names)
            pipeline.load(continue_from)
            later.append((delta, news))
            for one in later:
                pipeline.absorb(*one)
            pipeline.recall(totals)
            pipeline.freeze()
    same = samples(pipeline, totals)
    expected = samples(whole.pipeline, whole.totals)
    assert {key: value for key, value in same.items() if "drift" in key[0]} == pytest.approx(
        {key: value for key, value in expected.items() if "drift" in key[0]}
    )


def _again(totals: Totals, saved: Any) -> Pipeline:
    names = Names()
    names.load(totals.names.save())
    pipeline = Pipeline(CONFIG, names)
    pipeline.load(saved)
    pipeline.recall(totals)
    pipeline.freeze()
    return pipeline


def test_a_crowded_tick_is_bounded_and_loses_nothing() -> None:
    """A thousand cells become the hundred dearest, and one of `other` for each class; the sums stay."""
    n = 1000
    rows = Rows(
        at=np.full(n, 20.0),
        tenant=np.arange(n),
        route=np.arange(n),
        klass=np.arange(n) % 2,
        model=np.full(n, -1),
        group=np.full(n, -1),
        prompt=np.arange(n, dtype=np.float64) + 1.0,
        cached=np.zeros(n),
        output=np.ones(n),
        failed=np.zeros(n, np.bool_),
        wait=np.full(n, np.nan),
    )
    ticks = Ticks.of(rows, 4000, 160)
    few = bounded(ticks, 100)
    assert len(few) == 102
    assert few.sums.sum(axis=0) == pytest.approx(ticks.sums.sum(axis=0))
    assert few["cost"].max() > ticks["cost"].max()
