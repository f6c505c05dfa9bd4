"""The sentence says how much, since when, beside which rate, who, through what, and what it means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capwatch.drift.event import Contribution, Event
from capwatch.drift.sentence import Pool, sentence

MIX = {"mix": 0.2565, "prompt": 0.0, "output": 0.0, "cache": 0.0}
EVENT = Event(
    event="raised",
    direction="up",
    at=1767606120.0,
    started_at=1767606060.0,
    cost_before=0.992,
    cost_after=1.2485,
    interval=(0.2, 0.3),
    effects=MIX,
    contributions=(
        Contribution("class", "long", "mix", 0.26, 0.01, 0.08),
        Contribution("tenant", "acme", "mix", 0.25, 0.0, 0.14),
        Contribution("route", "/v1/summaries", "mix", 0.24, 0.01, 0.08),
        Contribution("class", "policy", "mix", 0.01, 0.85, 0.80),
    ),
    verdict=None,
    rate_before=8.0,
    rate_after=8.0,
)


def test_a_new_tenant() -> None:
    """Tenant, route and class of a change of the mix, each with its own share, and what the pool needs."""
    assert sentence(EVENT, Pool(12, 0.7)) == (
        "Cost per request +26 % since 09:41 UTC at flat 8.0 req/s: tenant acme 0 % → 14 %, route /v1/summaries "
        "1 % → 8 %, class long 1 % → 8 % of requests. Utilisation 66 % → 83 %; 15 replicas needed at 70 %, 12 there."
    )


@pytest.mark.parametrize(
    ("effect", "words"), [("prompt", "longer prompts"), ("output", "longer answers"), ("cache", "fewer cache hits")]
)
def test_the_effect_in_words(effect: str, words: str) -> None:
    """Lengths and hits are told by what happened to them, and of whom where one stands out."""
    effects = {**dict.fromkeys(MIX, 0.0), effect: 0.2565}
    one = Contribution("class", "policy", effect, 0.24, 0.85, 0.85)
    assert sentence(replace(EVENT, effects=effects, contributions=())).endswith(f": {words}.")
    assert sentence(replace(EVENT, effects=effects, contributions=(one,))).endswith(f": {words} of class policy.")


@pytest.mark.parametrize(("brings", "named"), [(0.1, False), (0.2, True)])
def test_the_largest_is_not_blamed_for_its_size(brings: float, named: bool) -> None:
    """Where all prompts grow the largest tenant brings most: it is named only beyond its share of the requests."""
    effects = {**dict.fromkeys(MIX, 0.0), "prompt": 0.2565}
    one = Contribution("tenant", "claims", "prompt", brings, 0.39, 0.39)
    assert ("claims" in sentence(replace(EVENT, effects=effects, contributions=(one,)))) is named


def test_all_of_them_are_none_of_them() -> None:
    """Where more than two values of a dimension share the effect, none is blamed."""
    some = tuple(Contribution("tenant", f"t{i}", "mix", 0.08, 0.1, 0.12) for i in range(4))
    assert "t1" not in sentence(replace(EVENT, contributions=some))


def test_the_rate_where_it_has_changed() -> None:
    """A rate that moved is told from and to, so that nobody takes it for flat."""
    assert "at 4.0 → 8.0 req/s" in sentence(replace(EVENT, rate_before=4.0))


def test_the_end() -> None:
    """A drift that is over says so, and why where it did not simply go."""
    assert sentence(replace(EVENT, event="cleared")) == "Over: cost per request +26 % since 09:41 UTC."
    assert sentence(replace(EVENT, event="cleared", note="accepted")).endswith("UTC: accepted.")


def test_waiting_is_told() -> None:
    """The verdict is part of the text where requests wait longer."""
    assert sentence(replace(EVENT, verdict="both")).endswith("Requests also wait longer.")
