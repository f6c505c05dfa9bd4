"""Who gets one of the limited names: first comers, then those that are dearer than `other`."""

from __future__ import annotations

from capwatch.config.schema import Config, Limits
from capwatch.labels.places import DEARER, Places
from capwatch.ledger import TENANT
from tests.spine import NOW, Spine, request

DAY = 86400.0


def crowd(names: range, cost: float = 1.0) -> dict[str, float]:
    """Names that all cost the same."""
    return {f"t{number}": cost for number in names}


def full(limit: int) -> Places:
    """Places of which those for first comers are taken."""
    places = Places(TENANT, limit)
    while places.open:
        number = len(places.seen) + 2
        places.take(number, f"first{number}", 1.0, 0.0)
    return places


def named(spine: Spine) -> set[str]:
    """Tenants with series of their own."""
    return {dict(key)["tenant"] for key in spine.values("requests_total")} - {"other", "unknown"}


def test_three_quarters_go_to_first_comers() -> None:
    """Of 200 names, 150."""
    assert len(full(200).seen) == 150


def test_a_late_dear_name_earns_a_place() -> None:
    """Several times the mean of what waits."""
    places = full(200)
    places.weigh(crowd(range(100)) | {"dear": DEARER + 0.1})
    assert places.deserving([*places.waiting]) == ["dear"]


def test_a_crowd_of_equals_earns_none() -> None:
    """However many they are and however often they come."""
    places = full(200)
    for start in range(0, 5000, 10):
        places.weigh(crowd(range(start, start + 10)))
        assert places.deserving(crowd(range(start, start + 10))) == []


def test_the_fuller_the_reserve_the_dearer_a_place() -> None:
    """Names somewhat dearer than a place costs take a part of the reserve and leave the rest to dearer ones."""
    places = full(200)
    places.weigh(crowd(range(700)) | crowd(range(1000, 1050), 8.0))
    chosen = places.deserving([*places.waiting])
    assert 0 < len(chosen) < 25
    for number, name in enumerate(chosen):
        places.take(1000 + number, name, 8.0, 0.0)
    places.weigh({"dearest": 1000.0})
    assert places.deserving(["dearest"]) == ["dearest"]


def test_inherited_weight_earns_nothing() -> None:
    """Who takes a place in the full table of waiting names is heavier there, but not dearer."""
    places = full(8)
    places.weigh(crowd(range(32)))
    places.weigh({"next": 1.0})
    assert places.waiting["next"] == (2.0, 1.0)
    assert places.deserving(["next"]) == []


def test_the_table_of_waiting_names_is_bounded() -> None:
    """Four times the limit, and whoever holds more than its share of the weight is in it."""
    places = full(8)
    for start in range(0, 5000, 5):
        places.weigh(crowd(range(start, start + 5)) | {"steady": 1.0})
    assert len(places.waiting) == 32
    weight, inherited = places.waiting["steady"]
    assert weight - inherited <= 1000 <= weight


def test_weights_fade() -> None:
    """A name that is dear today is not measured against months of `other`."""
    places = full(8)
    places.weigh(crowd(range(5), 1000.0))
    places.fade(0.001)
    places.weigh({"dear": 10.0})
    assert places.deserving(["dear"]) == ["dear"]


def test_with_next_to_nothing_in_other_a_late_name_must_beat_the_named_ones() -> None:
    """The median of those that have names stands in for a mean."""
    places = full(8)
    places.weigh({"cheap": 0.5})
    assert places.deserving(["cheap"]) == []
    places.weigh({"dear": 1.5})
    assert places.deserving(["dear"]) == ["dear"]


def test_a_late_dear_tenant_gets_a_name_among_thousands() -> None:
    """Seen from outside: 3,000 tenants came before, one request each, and the dear one still is named."""
    spine = Spine(Config(limits=Limits(tenants=20)))
    for start in range(0, 3000, 100):
        rows = [
            request(tenant=f"t{n}", prompt_tokens=1300 if n % 7 else 9000, output_tokens=80)
            for n in range(start, start + 100)
        ]
        spine.feed(*rows, now=NOW)
    before = named(spine)
    spine.feed(*[request(tenant="dear", prompt_tokens=9000, output_tokens=400) for _ in range(200)], now=NOW)
    assert (len(before) <= 19, named(spine) - before) == (True, {"dear"})


def test_counts_made_before_a_name_was_earned_stay_in_other() -> None:
    """Naming never moves counts, so nothing leaps."""
    spine = Spine(Config(limits=Limits(tenants=4)))
    spine.feed(*[request(tenant=f"t{n}", prompt_tokens=100) for n in range(12)], now=NOW)
    spine.feed(request(tenant="dear", prompt_tokens=100), now=NOW)
    spine.feed(*[request(tenant="dear", prompt_tokens=90_000) for _ in range(3)], now=NOW)
    assert (spine.total("requests_total", tenant="dear"), spine.total("requests_total", tenant="other")) == (3, 10)
