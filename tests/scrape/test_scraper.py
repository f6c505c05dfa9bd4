"""The state of scraped engines: news, restarts, silence, frozen values; no server and no clock needed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.config.schema import Engine
from capwatch.record import EngineSample
from capwatch.scrape.fetch import Failure
from capwatch.scrape.scraper import DRAINS, Scraper, Target, Told

from .endpoint import page

TARGET = Target("http://10.0.0.7:8000/metrics", "chat", "e0", interval=5.0, patience=30.0)
DRAINED = Target("http://10.0.0.9:8000/metrics", "chat", "e2", interval=5.0, patience=30.0, drain=True)
OTHER = Target("http://10.0.0.8:8000/metrics", "chat", "e1", interval=10.0, patience=30.0)
GONE = Failure("timeout")
AT = 1.8e9


def states(news: list[Told]) -> list[tuple[str, str]]:
    """Engine and state of each piece of news."""
    return [(one.engine, one.state) for one in news]


def vllm(indices: dict[str, int], tokens: int = 0) -> str:
    """A vLLM page with some engine indices."""
    return "".join(
        f'vllm:num_requests_running{{engine="{index}"}} {running}\n'
        f'vllm:generation_tokens_total{{engine="{index}"}} {tokens}\n'
        for index, running in indices.items()
    )


def test_a_target_comes_from_the_configuration() -> None:
    """Without a name the engine is called by host and port, never by a password in the address."""
    found = Target.of(Engine("http://u:secret@10.0.0.7:8000/metrics", "chat", None, 5.0, 30.0))
    assert (found.engine, found.pool, found.interval, found.patience) == ("10.0.0.7:8000", "chat", 5.0, 30.0)


def test_the_first_page_has_gauges_only() -> None:
    """Counters need two pages before they tell anything."""
    (told,) = Scraper([TARGET]).take(TARGET, page(running=2, tokens=100), AT)
    assert told == Told("chat", "e0", "busy", EngineSample(at=AT, engine="e0", running=2, waiting=0), {})


def test_the_second_page_has_rates() -> None:
    """Growth over the time between two good pages, whatever failed in between."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, page(tokens=100), AT)
    scraper.take(TARGET, GONE, AT + 5)
    (told,) = scraper.take(TARGET, page(tokens=150), AT + 10)
    assert told.sample is not None
    assert (told.sample.output_tokens_per_s, dict(told.grown)) == (5.0, {"output_tokens": 50.0})


def test_a_restart_is_seen_and_nothing_is_negative() -> None:
    """Counters that fell tell of a start; what they have now grew since."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, page(tokens=1000), AT)
    (told,) = scraper.take(TARGET, page(tokens=40), AT + 5)
    assert told.sample is not None
    assert (told.sample.starts, told.sample.output_tokens_per_s, dict(told.grown)) == (1, None, {"output_tokens": 40.0})


def test_over_a_long_silence_there_are_counts_and_no_rate() -> None:
    """A mean over minutes of silence is no rate of now; what was counted is still counted."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, page(tokens=100), AT)
    (told,) = scraper.take(TARGET, page(tokens=150), AT + 600)
    assert told.sample is not None
    assert (told.sample.output_tokens_per_s, dict(told.grown)) == (None, {"output_tokens": 50.0})


@pytest.mark.parametrize("answer", [GONE, "<html>garbage</html>", ""])
def test_values_older_than_the_patience_are_withdrawn_once(answer: str | Failure) -> None:
    """Failures and garbage leave the last values until the patience ends; then the engine is unknown, told once."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, page(), AT)
    news = [scraper.take(TARGET, answer, AT + after) for after in (5, 30, 30.5, 35, 40)]
    assert [states(each) for each in news] == [[], [], [("e0", "unknown")], [], []]
    assert [one.sample for each in news for one in each] == [None]


def test_silence_is_noticed_without_an_answer() -> None:
    """While a fetch hangs, time alone withdraws."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, page(), AT)
    assert [states(scraper.expire(AT + after)) for after in (29, 31, 32)] == [[], [("e0", "unknown")], []]


def test_an_engine_comes_back() -> None:
    """A good page after silence is news as any."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, page(), AT)
    scraper.expire(AT + 31)
    assert states(scraper.take(TARGET, page(), AT + 60)) == [("e0", "busy")]


def test_an_engine_never_seen_has_nothing_to_withdraw() -> None:
    """Before the first page there is no engine to be unknown."""
    scraper = Scraper([TARGET])
    assert scraper.take(TARGET, GONE, AT) + scraper.expire(AT + 100) == []


def test_idle_is_a_good_page_without_work() -> None:
    """Idle is known: it is told by a page, and stays told as long as pages come."""
    scraper = Scraper([TARGET])
    news = [scraper.take(TARGET, page(running=0), AT + 5 * n) for n in range(20)]
    assert {state for each in news for _, state in states(each)} == {"idle"}


def test_work_between_two_pages_is_work() -> None:
    """An engine that ran and was done before the page was asked for was busy."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, page(running=0, tokens=100), AT)
    assert states(scraper.take(TARGET, page(running=0, tokens=110), AT + 5)) == [("e0", "busy")]


def test_a_frozen_page_is_withdrawn() -> None:
    """An engine that claims work while nothing moves for longer than its patience is unknown, until it moves."""
    scraper = Scraper([TARGET])
    news = [scraper.take(TARGET, page(running=40), AT + 5 * n) for n in range(10)]
    assert [states(each) for each in news] == [[("e0", "busy")]] * 7 + [[("e0", "unknown")], [], []]
    assert states(scraper.take(TARGET, page(running=40, tokens=101), AT + 50)) == [("e0", "busy")]


def test_an_engine_without_counters_is_not_called_frozen() -> None:
    """Without any counter a steady load looks the same."""
    scraper = Scraper([TARGET])
    news = [scraper.take(TARGET, "tgi_batch_current_size 3\n", AT + 5 * n) for n in range(20)]
    assert {state for each in news for _, state in states(each)} == {"busy"}


def test_replicas_of_one_page_have_names_of_their_own() -> None:
    """The first index has the target's name; one that vanishes from the page is withdrawn alone."""
    scraper = Scraper([TARGET])
    assert states(scraper.take(TARGET, vllm({"0": 3, "1": 0}), AT)) == [("e0", "busy"), ("e0/1", "idle")]
    later = [scraper.take(TARGET, vllm({"0": 3}, tokens=n), AT + 20 * n) for n in (1, 2)]
    assert [states(each) for each in later] == [[("e0", "busy")], [("e0", "busy"), ("e0/1", "unknown")]]


def test_the_last_failure_is_kept_until_a_good_page() -> None:
    """The status page can say why an engine is silent."""
    scraper = Scraper([TARGET])
    scraper.take(TARGET, GONE, AT)
    scraper.take(TARGET, "nothing", AT + 5)
    assert scraper.failures == {TARGET: "no engine metrics on the page"}
    scraper.take(TARGET, page(), AT + 10)
    assert scraper.failures == {}


def test_targets_are_due_at_their_own_interval() -> None:
    """Each at once, then after its interval; one that was not answered is not asked again."""
    scraper = Scraper([TARGET, OTHER])
    assert scraper.due(AT) == [TARGET, OTHER]
    scraper.take(TARGET, page(), AT + 1)
    assert [scraper.due(AT + after) for after in (4.9, 5, 20)] == [[], [TARGET], []]
    scraper.take(OTHER, GONE, AT + 21)
    assert scraper.due(AT + 21) == [OTHER]


def test_a_clock_set_back_stops_nobody() -> None:
    """A target whose time lies more than an interval ahead is due."""
    scraper = Scraper([TARGET])
    scraper.due(AT)
    scraper.take(TARGET, page(), AT)
    assert scraper.due(AT - 3600) == [TARGET]


def poll(*iterations: int, running: int = 4) -> str:
    """An answer of TensorRT-LLM's JSON endpoint."""
    return json.dumps(
        [
            {
                "iter": n,
                "timestamp": "04-20-2026 05:11:00.250000",
                "numActiveRequests": running,
                "numQueuedRequests": 7,
                "kvCacheStats": {
                    "usedNumBlocks": 25,
                    "maxNumBlocks": 100,
                    "tokensPerBlock": 32,
                    "reusedBlocks": 3 * n,
                    "missedBlocks": n,
                },
            }
            for n in iterations
        ]
    )


@pytest.mark.parametrize("answer", [poll(1, 2), "[]", " [1]\n"])
def test_an_endpoint_that_drains_is_asked_once_and_never_again(answer: str) -> None:
    """What it tells is gone for whoever was to read it, and only its first answer shows that it is of this kind."""
    scraper = Scraper([TARGET, OTHER])
    assert scraper.due(AT) == [TARGET, OTHER]
    assert scraper.take(TARGET, answer, AT) == []
    assert scraper.failures == {TARGET: DRAINS}
    assert [scraper.due(AT + after) for after in (5, 3600, 10**6)] == [[]] * 3
    assert scraper.pause(AT) == 1


def test_a_drained_endpoint_tells_its_newest_iteration() -> None:
    """Where the configuration wants it: gauges of the last one, prefix hits by the growth of both counts."""
    scraper = Scraper([DRAINED])
    scraper.take(DRAINED, poll(1, 2), AT)
    (told,) = scraper.take(DRAINED, poll(3, 4, running=5), AT + 5)
    assert told.sample == EngineSample(
        at=AT + 5,
        engine="e2",
        running=5,
        waiting=7,
        kv_utilisation=0.25,
        kv_capacity_tokens=3200,
        prefix_hit_ratio=0.75,
    )
    assert told.state == "busy"


def test_an_empty_answer_is_idle_of_an_engine_that_has_told_something() -> None:
    """Before that it may be that nobody switched its statistics on: unknown, not idle."""
    scraper = Scraper([DRAINED])
    assert scraper.take(DRAINED, "[]", AT) == []
    scraper.take(DRAINED, poll(1), AT + 5)
    (told,) = scraper.take(DRAINED, "[]", AT + 10)
    assert (told.state, told.sample) == ("idle", EngineSample(at=AT + 10, engine="e2", running=0, waiting=0))
    assert [states(scraper.take(DRAINED, GONE, AT + after)) for after in (35, 41)] == [[], [("e2", "unknown")]]


def test_iterations_that_begin_anew_are_a_restart() -> None:
    """As counters that fell."""
    scraper = Scraper([DRAINED])
    scraper.take(DRAINED, poll(900), AT)
    (told,) = scraper.take(DRAINED, poll(2), AT + 5)
    assert told.sample is not None
    assert told.sample.starts == 1


def test_the_pause_ends_when_something_is_due() -> None:
    """Until the next fetch, and not longer than values may be late to be withdrawn."""
    scraper = Scraper([TARGET])
    assert scraper.pause(AT) == 0
    scraper.due(AT)
    assert scraper.pause(AT) == 1
    scraper.take(TARGET, page(), AT)
    assert [scraper.pause(AT + after) for after in (1, 4.5, 6)] == [1, 0.5, 0]


@given(
    st.lists(st.tuples(st.sampled_from(["page", "fail", "wait"]), st.integers(0, 60), st.integers(0, 500)), max_size=30)
)
def test_shown_values_are_never_older_than_the_patience(steps: list[tuple[str, int, int]]) -> None:
    """Whatever comes when: after each call, an engine not withdrawn was heard of within its patience."""
    scraper, now, heard, shown = Scraper([TARGET]), AT, float("-inf"), False
    for what, after, tokens in steps:
        now += after
        if what == "wait":
            news = scraper.expire(now)
        else:
            news = scraper.take(TARGET, page(tokens=tokens) if what == "page" else GONE, now)
        heard = now if what == "page" else heard
        for one in news:
            shown = one.state != "unknown"
        assert not shown or now - heard <= TARGET.patience
        assert all(value >= 0 for one in news for value in one.grown.values())
