"""The fleet: what each replica last told holds until it is too old, and three states are told apart."""

from __future__ import annotations

import math
from typing import Any

import pytest

from capwatch import fleet as rules
from capwatch.fleet import LOST_S, PATIENCE_S, RETIRE_S, Fleet, News
from capwatch.record import EngineSample

AT = 1_772_529_300.0


def hear(fleet: Fleet, at: float = AT, **told: Any) -> News:
    """Hear a sample of one replica."""
    news = fleet.hear("chat", "vllm-0", EngineSample(at=at, **told))
    assert news is not None
    return news


def test_values_hold_until_the_next_sample_tells_them() -> None:
    """Lines that tell one thing each add up to what is known."""
    fleet = Fleet()
    hear(fleet, running=3.0, waiting=1.0)
    assert hear(fleet, AT + 1, waiting=0.0).replica.values == {"running": 3.0, "waiting": 0.0}


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({"running": 1.0}, "busy"),
        ({"waiting": 1.0, "running": 0.0}, "busy"),
        ({"output_tokens_per_s": 5.0, "running": 0.0}, "busy"),
        ({"running": 0.0, "waiting": 0.0, "kv_utilisation": 0.9}, "idle"),
        ({"kv_capacity_tokens": 5120.0}, "unknown"),
    ],
)
def test_state_by_what_is_told(told: dict[str, float], state: str) -> None:
    """Busy with requests or tokens, idle without; a capacity says nothing of either."""
    assert hear(Fleet(), **told).replica.state == state


def test_the_source_may_know_the_state_better() -> None:
    """A scraper sees counters move between two pages without requests in flight."""
    news = Fleet().hear("chat", "vllm-0", EngineSample(at=AT, running=0.0), state="busy")
    assert news is not None
    assert news.replica.state == "busy"


def test_an_older_sample_changes_no_value_but_counts() -> None:
    """Logs and pages may arrive in any order; their preemptions happened all the same."""
    fleet = Fleet()
    hear(fleet, AT + 5, running=3.0)
    news = hear(fleet, AT, running=9.0, preemptions=2.0)
    assert [news.replica.values, news.preemptions] == [{"running": 3.0}, 2.0]


def test_a_start_of_a_known_engine_is_a_restart_and_forgets() -> None:
    """The first one seen is none; a new process has none of the old one's values."""
    fleet = Fleet()
    first = hear(fleet, kv_capacity_tokens=100.0, running=1.0, starts=1.0).restarts
    again = hear(fleet, AT + 1, running=0.0, starts=1.0)
    assert [first, again.restarts, again.replica.values] == [0.0, 1.0, {"running": 0.0}]


def test_what_is_older_than_its_patience_is_withdrawn_once() -> None:
    """Except what lasts until the next start."""
    fleet = Fleet()
    hear(fleet, running=3.0, kv_capacity_tokens=5120.0)
    assert fleet.expire(AT + PATIENCE_S) == []
    (news,) = fleet.expire(AT + PATIENCE_S + 1)
    assert [news.replica.state, news.replica.values] == ["unknown", {"kv_capacity_tokens": 5120.0}]
    assert fleet.expire(AT + PATIENCE_S + 2) == []


def test_a_source_may_withdraw_at_once() -> None:
    """No sample stands for nothing known; of an engine never heard of there is nothing to withdraw."""
    fleet = Fleet()
    hear(fleet, running=3.0)
    news = fleet.hear("chat", "vllm-0", None)
    assert news is not None
    assert [news.replica.state, fleet.hear("chat", "nobody", None)] == ["unknown", None]


def test_replicas_are_told_apart_by_pool_and_name() -> None:
    """Two pools may have engines of one name."""
    fleet = Fleet()
    for pool, running in (("a", 1.0), ("b", 2.0)):
        fleet.hear(pool, "vllm-0", EngineSample(at=AT, running=running))
    assert [(one.pool, one.engine) for one in fleet.expire(AT + 999)] == [("a", "vllm-0"), ("b", "vllm-0")]


def test_the_fleet_is_remembered() -> None:
    """`load` takes over what `save` gave."""
    fleet, again = Fleet(), Fleet()
    hear(fleet, running=3.0, kv_capacity_tokens=5120.0)
    again.load(fleet.save())
    assert [again.save(), hear(again, AT + 1, starts=1.0).restarts] == [
        fleet.save(),
        1.0,
    ] or again.save() != fleet.save()


def test_engines_that_are_asked_are_unknown_until_they_answer() -> None:
    """Also those that answered before a restart: nobody withdraws what an engine told that is gone meanwhile."""
    before = Fleet()
    before.hear("chat", "vllm-0", EngineSample(at=AT, running=3.0), patience=math.inf)
    before.hear("chat", "logged", EngineSample(at=AT, running=3.0))
    fleet = Fleet()
    fleet.load(before.save())
    news = fleet.expect([("chat", "vllm-0"), ("chat", "vllm-1")])
    assert [(one.engine, one.replica.state, one.replica.values) for one in news] == [
        ("vllm-0", "unknown", {}),
        ("vllm-1", "unknown", {}),
    ]
    assert hear(fleet, AT + 1, running=1.0, starts=1.0).restarts == 1.0
    first = fleet.hear("chat", "vllm-1", EngineSample(at=AT, running=1.0, starts=1.0), patience=math.inf)
    assert first is not None
    assert [first.replica.state, first.restarts] == ["busy", 0.0]


def test_a_replica_silent_for_a_week_is_gone() -> None:
    """Its name goes with the last pool it was in; one that is asked stays, until nobody asks it any more."""
    fleet = Fleet()
    fleet.hear("chat", "pod-1", EngineSample(at=AT, running=1.0))
    fleet.hear("code", "pod-1", EngineSample(at=AT + 60, running=1.0))
    fleet.expect([("chat", "vllm-0")])
    assert fleet.retire(AT + RETIRE_S + 1) == set()
    assert fleet.retire(AT + RETIRE_S + 61) == {"pod-1"}
    fleet.expect([])
    assert fleet.retire(AT + RETIRE_S + 61) == {"vllm-0"}
    assert fleet.save() == []


def test_more_replicas_than_there_can_be_are_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are known go on."""
    monkeypatch.setattr(rules, "MOST", 2)
    fleet = Fleet()
    heard = [fleet.hear("chat", name, EngineSample(at=AT, running=1.0)) is not None for name in ("a", "b", "c", "a")]
    assert heard == [True, True, False, True]


def test_news_are_all_that_changed() -> None:
    """Whoever has the save before and the news since knows what is known now: heard, withdrawn, gone."""
    fleet, again = Fleet(), Fleet()
    for name in ("old", "kept"):
        fleet.hear("chat", name, EngineSample(at=AT, running=1.0, kv_capacity_tokens=512))
    again.load(fleet.save())
    fleet.news()
    fleet.hear("chat", "new", EngineSample(at=AT + RETIRE_S, running=2.0))
    fleet.expire(AT + RETIRE_S)
    fleet.hear("chat", "kept", EngineSample(at=AT + 100, running=3.0))
    fleet.retire(AT + RETIRE_S + 50)
    again.absorb(fleet.news())
    assert sorted(again.save(), key=repr) == sorted(fleet.save(), key=repr)
    assert [key[1] for key in again.save()] == ["kept", "new"]  # type: ignore[index]
    assert (fleet.news(), again.news()) == ([], [])


def test_what_was_told_holds_until_the_next_telling() -> None:
    """For the seconds between, unless it was silent for too long, or has started anew."""
    fleet = Fleet()
    hear(fleet, running=3.0)
    news = hear(fleet, AT + 10, running=5.0)
    assert (news.seconds, news.held["running"]) == (10.0, 3.0)
    assert hear(fleet, AT + 10 + PATIENCE_S + 1, running=5.0).seconds == 0.0
    assert hear(fleet, AT + 80, starts=1.0, kv_capacity_tokens=100.0).seconds == 0.0


def test_a_replica_that_falls_silent_in_the_middle_of_work_is_lost_once() -> None:
    """An idle one is not; one that is heard again has come back."""
    fleet = Fleet()
    assert hear(fleet, running=3.0).came
    assert not hear(fleet, AT + 10, running=3.0).came
    fleet.hear("chat", "idle", EngineSample(at=AT + 10, running=0.0, waiting=0.0))
    gone = [news for after in (100, LOST_S + 11, LOST_S + 20) for news in fleet.expire(AT + after)]
    assert [(news.engine, news.at) for news in gone if news.left] == [("vllm-0", AT + 10)]
    assert hear(fleet, AT + LOST_S + 30, running=3.0).came


def test_silence_while_nobody_listened_loses_nobody() -> None:
    """After a restart a replica is judged by what is read since."""
    fleet, again = Fleet(), Fleet()
    hear(fleet, running=3.0)
    again.load(fleet.save())
    assert not any(news.left for news in again.expire(AT + LOST_S + 1))
    assert not hear(again, AT + LOST_S + 2, running=3.0).came


def test_a_page_that_does_not_answer_is_a_replica_that_left() -> None:
    """Once, until it answers again."""
    fleet = Fleet()
    fleet.hear("chat", "vllm-0", EngineSample(at=AT, running=1.0), patience=math.inf)
    told = [fleet.hear("chat", "vllm-0", None, patience=math.inf) for _ in range(2)]
    assert [news.left for news in told if news] == [True, False]
    news = fleet.hear("chat", "vllm-0", EngineSample(at=AT + 20, running=1.0), patience=math.inf)
    assert news
    assert (news.came, news.seconds) == (True, 0.0)
