"""The pool as the page shows it is the pool as `/metrics` shows it."""

from __future__ import annotations

from typing import Final

import pytest

from capwatch.config.schema import Config, Match, Pool
from capwatch.daemon.now import pools
from capwatch.web.now import PoolNow
from tests.spine import NOW, Spine, request

CONFIG: Final = Config(
    pools=(
        Pool("chat", match=Match(model=("chat-70b",)), replicas=3, slots=8, kv_pool_tokens=30_000, zones=3),
        Pool("idle", match=Match(model=("other",)), replicas=2),
    )
)


@pytest.fixture(scope="module")
def spine() -> Spine:
    """Five minutes of one request a second."""
    one = Spine(CONFIG)
    told = {"duration_s": 6.0, "ttft_s": 1.0, "prompt_tokens": 4000, "cached_tokens": 0, "output_tokens": 160}
    one.feed(*[request(finished_at=NOW - 300 + second, **told) for second in range(300)])
    return one


@pytest.fixture(scope="module")
def pool(spine: Spine) -> PoolNow:
    """The one pool that has had requests."""
    (found,) = pools(CONFIG, spine.totals)
    return found


@pytest.mark.parametrize(
    ("metric", "key"),
    [
        ("utilisation_ratio", "utilisation"),
        ("replicas", "replicas"),
        ("expected_wait_seconds", "expected_wait_s"),
        ("kv_demand_ratio", "kv_demand_ratio"),
    ],
)
def test_a_figure_is_that_of_the_metrics(spine: Spine, pool: PoolNow, metric: str, key: str) -> None:
    """One truth: utilisation, replicas, wait and KV memory."""
    assert (pool.name, getattr(pool, key)) == ("chat", spine.value(metric, pool="chat"))


@pytest.mark.parametrize(
    ("metric", "label", "key"),
    [
        ("replicas_needed", "promise", "needed"),
        ("headroom_replicas", "failure", "headroom"),
        ("inflight_littles_law", "phase", "in_flight"),
    ],
)
def test_figures_by_a_label_are_those_of_the_metrics(
    spine: Spine, pool: PoolNow, metric: str, label: str, key: str
) -> None:
    """One truth: promises, failures and phases, none missing."""
    shown = {dict(labels)[label]: value for labels, value in spine.values(metric, pool="chat").items()}
    assert {name: value for name, value in getattr(pool, key).items() if value is not None} == shown
    assert shown


def test_rate_and_cost_are_those_of_the_requests(pool: PoolNow) -> None:
    """One request a second, each a second of prefill and one of decode; nothing was told of engines or drift."""
    assert (pool.rate, pool.cost) == pytest.approx((1.0, 2.0), rel=0.11)
    assert (pool.cost_reference, pool.engines) == (None, [])
