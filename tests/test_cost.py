"""Cost in replica-seconds, and the meters that add it up (capacity text, F1 to F7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from capwatch.config.schema import Class, Config, Match, Pool
from capwatch.cost import Cost, of
from capwatch.record import Batch, Request
from tests.spine import NOW, Spine, request

CLASSES = {"policy": (0.85, 1300, 80), "order": (0.14, 3200, 150), "long": (0.01, 9000, 400)}
CONFIG = Config(
    pools=(Pool("chat", Match(model=("chat-*",))),),
    classes=tuple(Class(name, Match(route=(f"/{name}",))) for name in CLASSES),
)


def cost(**told: Any) -> Cost:
    """The cost of one request at 4000 and 160 tokens/s."""
    return of(Batch.of([Request(**told)]), np.array([4000.0]), np.array([160.0]))


def mix(**shares: float) -> list[dict[str, Any]]:
    """A hundred requests of the classes in these shares."""
    return [
        request(route=f"/{name}", prompt_tokens=CLASSES[name][1], output_tokens=CLASSES[name][2])
        for name, share in shares.items()
        for _ in range(round(share * 100))
    ]


@pytest.mark.parametrize(
    ("prompt", "cached", "output", "expected"),
    [
        (1300, None, 80, 0.825),
        (3200, None, 150, 1.7375),
        (9000, None, 400, 4.75),
        (1500, 525, 100, 0.86875),
        (1500, 1500, 100, 0.625),
        (1500, None, None, 0.375),
        (None, None, 100, 0.625),
    ],
)
def test_the_published_costs(prompt: float | None, cached: float | None, output: float | None, expected: float) -> None:
    """Computed prompt tokens at the prefill rate, output tokens at the decode rate; h = 0.35 spares 13.1 %."""
    assert cost(prompt_tokens=prompt, cached_tokens=cached, output_tokens=output).total.tolist() == [expected]


def test_without_any_count_the_cost_is_unknown() -> None:
    """Not 0."""
    assert np.isnan(cost().total).tolist() == [True]


def test_a_response_cache_hit_costs_nothing() -> None:
    """Its tokens were computed by nobody, and its prefix cache saved nothing either."""
    told = cost(prompt_tokens=1300, cached_tokens=100, output_tokens=80, cache_hit=True)
    assert [part.tolist() for part in told] == [[0.0], [0.0], [0.0]]


def test_the_cost_of_the_published_mix() -> None:
    """85/14/1 costs 0.992 a request: 0.41075 prefill and 0.58125 decode; by class as the shares say."""
    spine = Spine(CONFIG)
    spine.feed(*mix(policy=0.85, order=0.14, long=0.01))
    phases = [spine.total("cost_replica_seconds_total", pool="chat", phase=phase) for phase in ("prefill", "decode")]
    assert phases == pytest.approx([41.075, 58.125], rel=1e-12)
    assert sum(phases) / 100 == pytest.approx(0.992, rel=1e-12)
    by_class = {
        name: spine.value("class_cost_replica_seconds_total", pool="chat", **{"class": name}) for name in CLASSES
    }
    assert by_class == pytest.approx({"policy": 70.125, "order": 24.325, "long": 4.75}, rel=1e-12)
    counts = [spine.value("class_requests_total", pool="chat", **{"class": name}) for name in CLASSES]
    assert counts == [85, 14, 1]


def test_a_shift_of_the_mix_costs_a_quarter_more() -> None:
    """80/12/8 costs 1.2485 a request."""
    spine = Spine(CONFIG)
    spine.feed(*mix(policy=0.80, order=0.12, long=0.08))
    assert spine.total("cost_replica_seconds_total") == pytest.approx(124.85, rel=1e-12)


def test_twice_the_rate_of_the_same_mix_costs_the_same_a_request() -> None:
    """Only the number of requests moves."""
    spine = Spine(CONFIG)
    for _ in range(2):
        spine.feed(*mix(policy=0.85, order=0.14, long=0.01))
    totals = [spine.total(name) for name in ("requests_total", "cost_replica_seconds_total")]
    assert totals == pytest.approx([200, 2 * 99.2], rel=1e-12)


def test_one_very_long_prompt_is_its_tenants_alone() -> None:
    """It costs what it computes, and nobody else's cost moves."""
    spine = Spine(CONFIG)
    spine.feed(*mix(policy=0.85, order=0.14, long=0.01))
    before = spine.values("cost_replica_seconds_total")
    spine.feed(request(tenant="rare", prompt_tokens=120_000, output_tokens=16))
    assert spine.total("cost_replica_seconds_total", tenant="rare") == pytest.approx(30 + 0.1, rel=1e-12)
    assert spine.values("cost_replica_seconds_total").items() >= before.items()


def test_more_cached_and_more_prompt_tokens_cancel() -> None:
    """Computed tokens stay flat, so the cost does; the savings say what the cache did."""
    costs, saved = [], []
    for prompt, cached in ((1000, 0), (2000, 1000)):
        spine = Spine(CONFIG)
        spine.feed(request(prompt_tokens=prompt, cached_tokens=cached, output_tokens=80))
        costs.append(spine.total("cost_replica_seconds_total"))
        saved.append(spine.total("prefill_saved_replica_seconds_total"))
    assert (costs, saved) == ([0.75, 0.75], [0.0, 0.25])


def test_tokens_are_disjoint_by_kind() -> None:
    """Computed, cached and output; a request without counts adds to usage unknown."""
    spine = Spine(CONFIG)
    spine.feed(request(prompt_tokens=1500, cached_tokens=525, output_tokens=100), request(), request(outcome="timeout"))
    tokens = {dict(key)["kind"]: value for key, value in spine.values("tokens_total").items()}
    assert tokens == {"prompt_computed": 975, "prompt_cached": 525, "output": 100}
    assert spine.value("usage_unknown_total", source="log") == 1


def test_abandoned_work_is_that_of_aborts_and_timeouts() -> None:
    """As far as their rows carry tokens."""
    spine = Spine(CONFIG)
    outcomes = ("ok", "client_abort", "timeout", "upstream_error")
    spine.feed(*(request(outcome=one, prompt_tokens=4000, output_tokens=160) for one in outcomes))
    spine.feed(request(outcome="timeout"))
    assert spine.value("abandoned_replica_seconds_total", pool="chat") == 4.0


def test_the_dearest_tenants_have_a_rank() -> None:
    """Shares of the pool's cost over the last hour; `other` is nobody, and older cost does not count."""
    spine = Spine(CONFIG)
    spine.feed(request(tenant="old", prompt_tokens=4000, finished_at=NOW - 7200), now=NOW)
    spine.feed(*(request(tenant=t, prompt_tokens=p) for t, p in (("a", 3000), ("b", 1000), ("other", 4000))), now=NOW)
    shares = {dict(key)["rank"]: value for key, value in spine.values("tenant_share_ratio", pool="chat").items()}
    assert shares == {"1": 0.375, "2": 0.125}


def test_an_unmatched_model_belongs_to_the_implicit_pool() -> None:
    """Its requests are counted under `default`, at assumed rates."""
    spine = Spine(CONFIG)
    spine.feed(request(model="new", prompt_tokens=4000))
    assert spine.values("cost_replica_seconds_total", phase="prefill", tenant="acme", route="/chat") == {
        (("pool", "default"),): 1.0
    }
