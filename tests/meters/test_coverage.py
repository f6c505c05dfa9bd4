"""Coverage and joins of a pool: what the logs tell beside what its engines count, over the last hour."""

from __future__ import annotations

from typing import Any

import pytest

from capwatch.config.schema import Config, Match, Pool
from capwatch.origin import Origin
from capwatch.record import EngineSample

from ..spine import NOW, Spine, decoded, request

CONFIG = Config(pools=(Pool("chat", match=Match(model=("chat-*",))), Pool("other", match=Match(model=("other",)))))


def engine(spine: Spine, *records: dict[str, Any], pool: str | None = "chat") -> None:
    """What the log of an engine tells, which does not count."""
    spine.pipeline.take(Origin("engine", pool, "vllm-0", counts=False), decoded(*records), NOW + 3600)
    spine.commit()


def counter(spine: Spine, requests: float, at: float = NOW) -> None:
    """By how much an engine's counter of requests grew."""
    spine.pipeline.engines.hear("chat", "vllm-0", EngineSample(at=at, running=1.0), grown={"requests": requests})
    spine.commit()


def row(one: str, **told: Any) -> dict[str, Any]:
    """A gateway's row."""
    return request(request_id=one, duration_s=2.0, **told)


def test_join_ratio_is_the_share_of_counted_requests() -> None:
    """Two of four rows have a record of the engine."""
    spine = Spine(CONFIG)
    engine(spine, row("a"), row("b"), row("nobody"))
    spine.feed(*map(row, "abcd"))
    assert spine.values("join_ratio") == {(("pool", "chat"),): 0.5}


def test_without_request_records_there_is_no_join_ratio() -> None:
    """An engine that only counts joins nothing, which is no fault."""
    spine = Spine(CONFIG)
    spine.feed(row("a"))
    counter(spine, 1)
    assert spine.values("join_ratio") == {}


def test_coverage_compares_with_the_engines_counters() -> None:
    """Three rows where the engine counted four: a quarter of its work is in no log."""
    spine = Spine(CONFIG)
    spine.feed(*map(row, "abc"))
    counter(spine, 3)
    counter(spine, 1, NOW + 5)
    assert spine.values("coverage_ratio") == {(("pool", "chat"),): 0.75}


def test_coverage_compares_with_records_where_no_page_is_scraped() -> None:
    """One of two requests of the engine's log went past the gateway."""
    spine = Spine(CONFIG)
    engine(spine, row("a"), row("b"))
    spine.feed(row("a"))
    assert spine.value("coverage_ratio") == 0.5


def test_an_engine_that_tells_in_both_ways_counts_once() -> None:
    """The way that tells more is taken."""
    spine = Spine(CONFIG)
    engine(spine, row("a"), row("b"))
    counter(spine, 4)
    spine.feed(row("a"), row("b"))
    assert spine.value("coverage_ratio") == 0.5


@pytest.mark.parametrize(
    ("told", "served"),
    [
        ({"outcome": "ok"}, True),
        ({"outcome": "client_abort"}, True),
        ({"outcome": "timeout"}, True),
        ({"outcome": "rate_limited"}, False),
        ({"outcome": "client_error"}, False),
        ({"outcome": "upstream_error"}, False),
        ({"outcome": "ok", "cache_hit": True}, False),
    ],
)
def test_only_what_an_engine_finished_covers_its_count(told: dict[str, Any], served: bool) -> None:
    """Refusals and answers from the gateway's cache never reached it."""
    spine = Spine(CONFIG)
    spine.feed(row("a", **told))
    counter(spine, 1)
    assert spine.value("coverage_ratio") == float(served)


def test_an_hour_later_it_is_over() -> None:
    """Both ratios are of the last hour; a pool of which nothing was heard in it has none."""
    spine = Spine(CONFIG)
    engine(spine, row("a"))
    spine.feed(row("a"))
    spine.feed(request(finished_at=NOW + 3700, model="other"), now=NOW + 3700)
    assert [spine.values("coverage_ratio"), spine.values("join_ratio")] == [{}, {}]


def test_engine_records_find_their_pool_by_model() -> None:
    """Where their source names none."""
    spine = Spine(CONFIG)
    engine(spine, row("a", model="other"), pool=None)
    spine.feed(row("a", model="other"))
    assert spine.values("coverage_ratio") == {(("pool", "other"),): 1.0}


def test_engine_records_make_no_requests_of_their_own() -> None:
    """They have their line counters and nothing else."""
    spine = Spine(CONFIG)
    engine(spine, row("a"), row("b"))
    assert [spine.total("requests_total"), spine.value("lines_counted_total", source="engine")] == [0.0, 2.0]


def test_repeated_rows_are_joined_once() -> None:
    """A repeat is no request, so it takes no record either."""
    spine = Spine(CONFIG)
    spine.feed(row("a"))
    engine(spine, row("a"))
    spine.feed(row("a"), row("b"))
    assert spine.value("join_ratio") == 0.0


def test_times_of_the_future_are_not_held() -> None:
    """A clock that is an hour ahead must not fill the memory for an hour."""
    spine = Spine(CONFIG)
    engine(spine, row("a", finished_at=NOW + 9000))
    assert spine.pipeline.save()["told"] == []
