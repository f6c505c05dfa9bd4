"""Budgets, quotas and overload: shadows that count and refuse nothing."""

from __future__ import annotations

from typing import Any

import pytest

from capwatch.config.schema import Budget, Config, Match, Pool, Quota
from capwatch.ledger import Names
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from tests.spine import NOW, Spine, decoded, request

POOL = Pool("chat", Match(model=("chat-*",)), replicas=12)
LONG = {"prompt_tokens": 9000, "output_tokens": 400}
"""4.75 replica-seconds."""
G8 = [request(finished_at=NOW + at, **LONG) for at in (0, 0, 2)]


def config(**more: Any) -> Config:
    """Budgets for acme and globex, a quota of a million tokens a minute."""
    budgets = {"acme": Budget(rate=2.0, burst=6.0), "globex": Budget(rate=7.0, burst=20.0)}
    return Config(pools=(POOL,), budgets=budgets, quotas={"chat": Quota(1_000_000)}, **more)


def test_a_budget_would_refuse_the_second_of_three() -> None:
    """G8: a bucket of 6 with 2/s, takes of 4.75 at 0, 0 and 2 s."""
    spine = Spine(config())
    spine.feed(*G8, *(request(finished_at=NOW, tenant="globex", **LONG) for _ in range(4)))
    assert spine.value("budget_would_reject_total", tenant="acme") == 1
    assert spine.value("budget_would_reject_total", tenant="globex") == 0


def test_who_has_no_budget_has_no_series() -> None:
    """Nor has a request without tokens anything to take."""
    spine = Spine(config())
    spine.feed(request(tenant="initech", **LONG), request(tenant="acme"))
    assert spine.values("budget_would_reject_total") == {}


@pytest.mark.parametrize("astray", [10 * 365 * 86400.0, -86400.0])
def test_a_wrong_clock_stops_no_bucket(astray: float) -> None:
    """Requests dated years ahead or long ago take nothing, and later ones find what has flown in since."""
    spine = Spine(config())
    for number in range(20):
        spine.feed(request(finished_at=NOW + 3 * number, **LONG))
        spine.feed(request(finished_at=NOW + astray, **LONG))
    assert spine.value("budget_would_reject_total", tenant="acme") == 0


def test_budgets_per_pool_of_the_request() -> None:
    """A tenant's bucket in one pool is not emptied by another pool."""
    spine = Spine(config())
    spine.feed(request(**LONG), request(**LONG, model="other-7b"))
    assert spine.value("budget_would_reject_total", tenant="acme") == 0


def test_oversubscription_is_the_sum_over_the_replicas() -> None:
    """2 + 7 replica-seconds a second on twelve replicas."""
    spine = Spine(config())
    spine.feed(request(**LONG))
    assert spine.value("budget_oversubscription_ratio", pool="chat") == pytest.approx(9 / 12)


def test_a_quota_is_not_all_there_because_nobody_tells_tokens() -> None:
    """Requests without token counts use it up unseen: there is no headroom to tell, and no rate."""
    spine = Spine(config())
    spine.feed(*(request(finished_at=NOW + at) for at in range(60)))
    assert spine.values("quota_headroom_ratio", pool="chat") == {}
    assert spine.values("tokens_per_minute", pool="chat") == {}


@pytest.mark.parametrize("cut", [1, 2])
def test_a_restart_in_the_middle_changes_nothing(cut: int) -> None:
    """From deltas alone, and from a checkpoint: buckets and overloaded seconds are where they were."""
    burst = [request(started_at=NOW + 2, finished_at=NOW + 2, tenant="initech", **LONG) for _ in range(3)]
    rows = [*G8, *burst]
    whole = Spine(config())
    whole.feed(*rows)
    for by_checkpoint in (True, False):
        first = Pipeline(config())
        totals = first.totals()
        first.take(Origin("log"), decoded(*rows[: cut + 2]), NOW + 3600)
        news, delta = first.news(), first.freeze()
        totals.apply(delta)
        names = Names()
        names.put(delta.names)
        second = Pipeline(config(), names)
        if by_checkpoint:
            second.load(first.save())
        else:
            second.absorb(delta, news)
        second.freeze()
        second.take(Origin("log"), decoded(*rows[cut + 2 :]), NOW + 3600)
        totals.apply(second.freeze())
        spine = Spine(config(), names)
        spine.pipeline, spine.totals = second, totals
        for name in ("budget_would_reject_total", "overload_seconds_total"):
            assert spine.values(name) == whole.values(name), (name, by_checkpoint)


def test_overload_counts_a_second_once() -> None:
    """Twelve replicas do 12 a second: two requests of 4.75 are fine, three are not, a fourth is the same second."""
    spine = Spine(config())
    told = {"started_at": NOW, "tenant": "initech", **LONG}
    for number, expected in ((2, 0), (1, 1), (1, 1)):
        spine.feed(*(request(finished_at=NOW + 5, **told) for _ in range(number)))
        assert spine.value("overload_seconds_total", pool="chat") == expected
    spine.feed(*(request(finished_at=NOW + 6, **{**told, "started_at": NOW + 1}) for _ in range(3)))
    assert spine.value("overload_seconds_total", pool="chat") == 2


def test_quota_headroom_and_the_time_that_is_left() -> None:
    """Tokens a minute that grow by 10,000 a minute from 100,000 on: after an hour 700,000, gone in half an hour."""
    spine = Spine(config())
    begin = NOW - NOW % 300
    rows = []
    for second in range(3600):
        per_minute = 100_000 + 10_000 * second / 60
        rows.append(request(finished_at=begin + second, prompt_tokens=round(per_minute / 60), output_tokens=0))
    spine.feed(*rows)
    now = 100_000 + 10_000 * (3600 - 165) / 60  # the window's middle is as far back
    assert spine.value("quota_headroom_ratio", pool="chat") == pytest.approx(1 - now / 1e6, abs=0.01)
    assert spine.value("quota_exhaustion_seconds", pool="chat") == pytest.approx((1e6 - now) / 10_000 * 60, rel=0.03)


def test_fairness_of_shares() -> None:
    """Jain: two tenants alike are 1; one of four with all the work would be 1/4."""
    spine = Spine(config())
    spine.feed(request(tenant="acme", **LONG), request(tenant="globex", **LONG))
    assert spine.value("tenant_fairness_ratio", pool="chat") == pytest.approx(1.0)
    spine.feed(*(request(tenant="acme", **LONG) for _ in range(8)))
    assert spine.value("tenant_fairness_ratio", pool="chat") == pytest.approx(100 / (2 * 82))
