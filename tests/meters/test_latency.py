"""Summaries over five minutes of event time, histograms for life, both against what numpy says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from capwatch.config.schema import Config, Match, Pool, Slo
from tests.spine import NOW, Spine, request

POOLS = (Pool("chat", Match(model=("chat-*",))),)
DRAW = np.random.default_rng(7)
TTFT = np.round(DRAW.lognormal(-1, 0.8, 3000), 3)


def quantile(spine: Spine, name: str, q: str = "0.95", **where: str) -> float | None:
    """A quantile of a summary."""
    return spine.value(name, quantile=q, **where)


def buckets(spine: Spine, name: str, **where: str) -> dict[float, float]:
    """The cumulative counts of a histogram by edge."""
    return {float(dict(key)["le"]): value for key, value in spine.values(f"{name}_bucket", **where).items()}


def stream(ttft: float, **told: Any) -> dict[str, Any]:
    """A stream with this TTFT."""
    return request(stream=True, ttft_s=ttft, duration_s=ttft + 100.0, output_tokens=50, **told)


def order_statistic(values: np.ndarray[Any, Any], q: float) -> float:
    """The value of rank ⌈q·n⌉."""
    return float(np.sort(values)[math.ceil(q * len(values)) - 1])


def test_quantiles_are_the_exact_order_statistics_within_the_promise() -> None:
    """0.55 % at most; sum and count are exact."""
    spine = Spine()
    spine.feed(*(stream(ttft) for ttft in TTFT.tolist()))
    for q in ("0.5", "0.95", "0.99"):
        assert quantile(spine, "ttft_seconds", q) == pytest.approx(order_statistic(TTFT, float(q)), rel=0.0055)
    assert spine.value("ttft_seconds_sum") == pytest.approx(TTFT.sum(), rel=1e-12)
    assert spine.value("ttft_seconds_count") == 3000


def test_small_whole_numbers_are_exact() -> None:
    """A percentile of token counts is a token count."""
    spine = Spine()
    spine.feed(*(request(output_tokens=n, prompt_tokens=1) for n in range(1, 101)))
    assert [quantile(spine, "output_tokens", q) for q in ("0.5", "0.95", "0.99")] == [50, 95, 99]


@pytest.mark.parametrize("bounds", [(0.25, 0.3, 0.7071), (1.0, 2.0, 0.5), (0.2999, 0.3, 0.3001)])
def test_histograms_count_every_edge_and_bound_exactly(bounds: tuple[float, ...]) -> None:
    """Cumulative, upper-inclusive, +Inf is the count; a bound that is an edge already is there once."""
    spine = Spine(Config(pools=POOLS, slo=tuple(Slo(Match(route=(f"/{b}",)), ttft=b) for b in bounds)))
    spine.feed(*(stream(ttft) for ttft in [*TTFT.tolist(), *bounds]))
    found = buckets(spine, "route_ttft_seconds", pool="chat")
    values = np.concatenate([TTFT, bounds])
    assert found == {edge: float((values <= edge).sum()) for edge in found}
    assert set(found) == {2.0 ** (k / 4) for k in range(-40, 41)} | {*bounds, math.inf}
    assert [*found] == sorted(found)
    assert found[math.inf] == spine.value("route_ttft_seconds_count", pool="chat") == len(values)
    assert spine.value("route_ttft_seconds_sum", pool="chat") == pytest.approx(values.sum(), rel=1e-12)


def test_measures_may_share_a_bound() -> None:
    """A bound of 2 s on TTFT and on the whole counts each its own values."""
    spine = Spine(Config(pools=POOLS, slo=(Slo(ttft=2.1, e2e=2.1),)))
    spine.feed(*(request(duration_s=d, ttft_s=t, output_tokens=9) for d, t in ((2.1, 0.5), (2.1, 2.09), (2.11, 2.1))))
    counts = [buckets(spine, f"route_{name}_seconds")[2.1] for name in ("ttft", "duration")]
    assert counts == [3, 2]


def test_bounds_are_counted_per_route() -> None:
    """Values of one route are none of another's."""
    spine = Spine(Config(pools=POOLS, slo=(Slo(ttft=0.3),)))
    spine.feed(stream(0.3, route="/a"), stream(0.2999, route="/b"), stream(0.3001, route="/b"))
    assert [buckets(spine, "route_ttft_seconds", route=r)[0.3] for r in ("/a", "/b")] == [1, 1]


def test_cache_hits_have_no_first_token() -> None:
    """They count in lengths and durations only."""
    spine = Spine()
    spine.feed(stream(0.1, cache_hit=True, prompt_tokens=10))
    told = [spine.value(f"{n}_count") for n in ("prompt_tokens", "duration_seconds", "ttft_seconds", "tpot_seconds")]
    assert told == [1, 1, None, None]


def test_the_window_is_the_current_slice_and_ten_before() -> None:
    """At 329 s a value of second 0 is in, one slice later it is out."""
    spine = Spine()
    spine.feed(stream(0.1, finished_at=NOW), stream(0.2, finished_at=NOW + 329))
    assert quantile(spine, "ttft_seconds", "0.5") == pytest.approx(0.1, rel=0.0055)
    spine.feed(stream(0.2, finished_at=NOW + 330))
    assert quantile(spine, "ttft_seconds", "0.5") == pytest.approx(0.2, rel=0.0055)


def test_an_empty_window_has_no_quantiles() -> None:
    """Silence moves the clock with the wall clock; sum and count stay."""
    spine = Spine()
    spine.feed(stream(0.1), now=NOW)
    spine.tick(NOW + 299)
    assert quantile(spine, "ttft_seconds") is not None
    spine.tick(NOW + 331)
    assert (quantile(spine, "ttft_seconds"), spine.value("ttft_seconds_count")) == (None, 1)


def test_a_late_record_counts_for_life_only() -> None:
    """Older than the window: in totals and histograms, in `late_records`, not in the quantiles."""
    spine = Spine()
    spine.feed(stream(0.1), stream(5.0, finished_at=NOW - 600))
    assert quantile(spine, "ttft_seconds", "0.99") == pytest.approx(0.1, rel=0.0055)
    assert (spine.value("ttft_seconds_count"), spine.value("late_records_total", source="log")) == (2, 1)
    assert buckets(spine, "route_ttft_seconds")[math.inf] == 2


def test_a_record_a_year_ahead_moves_no_clock() -> None:
    """It counts in totals only, and what comes after it is not late."""
    spine = Spine()
    spine.feed(stream(5.0, finished_at=NOW + 365 * 86400), stream(0.1), now=NOW)
    assert quantile(spine, "ttft_seconds", "0.99") == pytest.approx(0.1, rel=0.0055)
    assert (spine.total("requests_total"), spine.value("late_records_total", source="log")) == (2, 0)
    assert spine.pipeline.clock == NOW


@pytest.mark.parametrize(("ahead", "clock"), [(30, 30), (60, 60), (200, 60), (300, 60), (301, 0)])
def test_the_clock_is_at_most_a_minute_ahead_of_the_wall(ahead: float, clock: float) -> None:
    """A record some minutes ahead waits for its slice; one more than five minutes ahead is no clock at all."""
    spine = Spine()
    spine.feed(stream(0.1), stream(0.2, finished_at=NOW + ahead), now=NOW)
    assert spine.pipeline.clock == NOW + clock


def test_a_record_ahead_of_the_clock_comes_in_when_the_clock_reaches_it() -> None:
    """Its slice waits."""
    spine = Spine()
    spine.feed(stream(0.1), stream(7.0, finished_at=NOW + 200), now=NOW)
    before = quantile(spine, "ttft_seconds", "0.99")
    spine.feed(stream(0.1, finished_at=NOW + 201), now=NOW + 201)
    assert [before, quantile(spine, "ttft_seconds", "0.99")] == pytest.approx([0.1, 7.0], rel=0.0055)


def test_the_clock_never_goes_back() -> None:
    """Neither with an older record nor with a wall clock that was set back."""
    spine = Spine()
    spine.feed(stream(0.1), now=NOW)
    spine.feed(stream(0.1, finished_at=NOW - 20), now=NOW - 3600)
    spine.tick(NOW - 7200)
    assert spine.pipeline.clock == NOW


def test_classes_have_summaries_of_their_own() -> None:
    """Durations and queues by pool and class."""
    spine = Spine(Config(pools=POOLS))
    spine.feed(request(duration_s=2.0, queue_s=0.5), request(duration_s=4.0))
    assert quantile(spine, "class_duration_seconds", "0.99", pool="chat") == pytest.approx(4.0, rel=0.0055)
    assert quantile(spine, "queue_seconds", "0.5", pool="chat") == pytest.approx(0.5, rel=0.0055)
    assert [spine.value("class_duration_seconds_sum"), spine.value("queue_seconds_count")] == [6.0, 1.0]
