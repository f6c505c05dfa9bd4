"""The budget by cases: pairs, series, overflow, retirement."""

from __future__ import annotations

import pytest

from capwatch.config.schema import Config, Limits
from capwatch.labels import own
from tests.spine import NOW, Spine, request

DAY = 86400.0


def tenants(spine: Spine) -> dict[str, float]:
    """Requests by tenant."""
    found: dict[str, float] = {}
    for key, value in spine.values("requests_total").items():
        found[dict(key)["tenant"]] = found.get(dict(key)["tenant"], 0.0) + value
    return found


def test_pairs_beyond_their_limit_are_the_tenants_other_route() -> None:
    """A tenant's further routes are its `route="other"`, and the limit says so."""
    spine = Spine(Config(limits=Limits(tenant_routes=2)))
    spine.feed(*[request(route=f"/r{n}") for n in range(4)], now=NOW)
    routes = {dict(key)["route"]: value for key, value in spine.values("requests_total").items()}
    assert routes == {"/r0": 1, "/r1": 1, "other": 2}
    assert spine.values("label_overflow_total", label="tenant_route") == {(): 2.0}


def test_tenants_with_an_other_route_take_no_place_of_a_pair() -> None:
    """The limit is of pairs with two names."""
    spine = Spine(Config(limits=Limits(tenant_routes=3, routes=1)))
    spine.feed(*[request(tenant=f"t{n}", route=f"/r{n}") for n in range(3)], now=NOW)
    spine.feed(*[request(tenant=f"t{n}", route="/r0") for n in range(3)], now=NOW)
    assert spine.total("requests_total", route="/r0") == 4


def test_what_passes_the_series_limit_is_other() -> None:
    """One pair fits, its route's histograms included; what follows is counted in all as `other`."""
    limit = own(sources=0, pools=1, classes=1, bounds=0) + 41 + 12 + 3 + 491
    spine = Spine(Config(limits=Limits(series=limit)))
    spine.feed(*[request(tenant=f"t{n}", route=f"/r{n}") for n in range(3)], now=NOW)
    assert tenants(spine) == {"t0": 1, "other": 2}
    assert spine.values("label_overflow_total", label="series") == {(): 2.0}


def test_reserved_names_are_told_by_nobody() -> None:
    """A tenant that calls itself other or unknown is just that, and takes no place."""
    spine = Spine(Config(limits=Limits(tenants=1)))
    spine.feed(request(tenant="other"), request(tenant="unknown"), request(tenant=None), request(), now=NOW)
    assert tenants(spine) == {"other": 1, "unknown": 2, "acme": 1}


@pytest.mark.parametrize(("silence", "kept"), [(6.9, 1.0), (7.1, None)])
def test_a_name_is_retired_after_seven_days_of_silence(silence: float, kept: float | None) -> None:
    """Of event time, while others go on; its series disappear and its counts are in the retired totals."""
    spine = Spine()
    spine.feed(request(prompt_tokens=4000, output_tokens=160), now=NOW)
    spine.feed(request(tenant="b", finished_at=NOW + silence * DAY), now=NOW + silence * DAY)
    assert spine.value("requests_total", tenant="acme") == kept
    gone = [spine.value(f"retired_{name}_total") for name in ("requests", "tokens", "cost_replica_seconds")]
    assert gone == ([0.0, 0.0, 0.0] if kept else [1.0, 4160.0, 2.0])


def test_silence_of_all_retires_too() -> None:
    """The clock moves with the wall clock when a log is silent."""
    spine = Spine()
    spine.feed(request(), now=NOW)
    spine.tick(NOW + 8 * DAY)
    assert (tenants(spine), spine.value("retired_requests_total")) == ({}, 1.0)


def test_who_returns_after_a_week_starts_anew() -> None:
    """Even if nobody else was heard of meanwhile."""
    spine = Spine()
    spine.feed(request(), request(), now=NOW)
    spine.feed(request(finished_at=NOW + 8 * DAY), now=NOW + 8 * DAY)
    assert (tenants(spine), spine.value("retired_requests_total")) == ({"acme": 1}, 2.0)


def test_a_pair_that_retires_and_returns_within_a_commit_is_split_at_its_return() -> None:
    """Both of its names live on, so the pair has the same ids before and after."""
    spine = Spine()
    take = spine.pipeline.take
    from capwatch.origin import Origin
    from tests.spine import decoded

    take(Origin("log"), decoded(request(route="/a"), request(route="/b")), NOW)
    for day in range(1, 9):
        at = NOW + day * DAY
        rows = [request(route="/b", finished_at=at), request(tenant="b", route="/a", finished_at=at)]
        take(Origin("log"), decoded(*rows), at)
    take(Origin("log"), decoded(request(route="/a", finished_at=at)), at)
    spine.commit()
    assert spine.total("requests_total", tenant="acme", route="/a") == 1
    assert spine.total("goodput_unclassified_total", tenant="acme", route="/a") == 1
    assert spine.value("prompt_tokens_count", tenant="acme", route="/a") is None
    assert spine.value("retired_requests_total") == 1


def test_a_place_is_free_again_after_retirement() -> None:
    """The next tenant gets the name that nobody uses."""
    spine = Spine(Config(limits=Limits(tenants=1)))
    spine.feed(request(tenant="a"), now=NOW)
    spine.feed(request(tenant="b"), now=NOW)
    at = NOW + 8 * DAY
    spine.feed(request(tenant="c", finished_at=at), now=at)
    assert tenants(spine) == {"c": 1}
    assert spine.value("retired_requests_total") == 2


def test_a_record_of_the_future_alone_is_not_silent_for_ever() -> None:
    """Before the first event the wall clock says when a name was heard of."""
    spine = Spine()
    spine.feed(request(tenant="early", finished_at=NOW + 365 * DAY), now=NOW)
    spine.feed(request(), now=NOW)
    assert tenants(spine) == {"early": 1, "acme": 1}


def test_repeats_are_no_overflow() -> None:
    """A second line about a request of `other` is counted nowhere but as a duplicate."""
    spine = Spine(Config(limits=Limits(tenants=1)))
    rows = [request(tenant="a"), request(tenant="b", request_id="1"), request(tenant="b", request_id="1")]
    spine.feed(*rows, now=NOW)
    assert spine.values("label_overflow_total", label="tenant") == {(): 1.0}
    assert spine.total("duplicates_total") == 1
