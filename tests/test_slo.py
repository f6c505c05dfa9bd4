"""The verdict on a request: every rule of goodput, the first that applies (capacity text, section 9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.config.schema import Config, Match, Slo
from capwatch.record import LIMITERS, OUTCOMES, Batch, Request
from capwatch.slo import VERDICTS, Targets, judge
from tests.spine import Spine, request

GOOD = {"outcome": "ok", "stream": True, "ttft_s": 0.4, "duration_s": 2.0, "output_tokens": 41.0}
LEFT = {"outcome": "client_abort", "ttft_s": None, "output_tokens": None}


def verdict(told: dict[str, Any], ttft: float | None = 0.5, tpot: float | None = 0.05, e2e: float | None = None) -> str:
    """The verdict on one request against these bounds."""
    bounds = (np.array([np.nan if bound is None else bound]) for bound in (ttft, tpot, e2e))
    return VERDICTS[int(judge(Batch.of([Request(**told)]), Targets(*bounds))[0])]


RULES: list[tuple[str, dict[str, Any], str]] = [
    ("within", {}, "good"),
    ("a cache hit, whatever else", {"cache_hit": True, "outcome": "timeout"}, "cache_hit"),
    ("the client's mistake", {"outcome": "client_error"}, "client"),
    ("the client's content", {"outcome": "content_filter"}, "client"),
    ("the client left", {"outcome": "client_abort"}, "client"),
    ("left before a token, soon", LEFT | {"duration_s": 0.5}, "client"),
    ("left before a token, after too long", LEFT, "ttft"),
    ("the same with 0 tokens told", LEFT | {"output_tokens": 0.0}, "ttft"),
    ("left in the middle, TTFT not told", {"outcome": "client_abort", "ttft_s": None}, "client"),
    ("left, no stream", LEFT | {"stream": False}, "client"),
    ("left, no duration", LEFT | {"duration_s": None}, "client"),
    ("timeout", {"outcome": "timeout"}, "error"),
    ("overload", {"outcome": "overload"}, "error"),
    ("upstream", {"outcome": "upstream_error"}, "error"),
    ("gateway", {"outcome": "gateway_error"}, "error"),
    ("limited upstream", {"outcome": "rate_limited", "rate_limited_by": "upstream"}, "error"),
    ("limited by the own quota", {"outcome": "rate_limited", "rate_limited_by": "gateway"}, "client"),
    ("limited, nobody says by whom", {"outcome": "rate_limited"}, "error"),
    ("no TTFT", {"ttft_s": None}, "no_timing"),
    ("no TTFT and no tokens", {"ttft_s": None, "output_tokens": None}, "no_timing"),
    ("no stream and no bound on the whole", {"ttft_s": None, "stream": False}, "no_timing"),
    ("no output tokens", {"output_tokens": None}, "no_tokens"),
    ("no output tokens, though late", {"output_tokens": None, "ttft_s": 0.6}, "no_tokens"),
    ("no duration, so no TPOT", {"duration_s": None}, "no_timing"),
    ("one token, only TTFT counts", {"output_tokens": 1.0, "duration_s": 900.0}, "good"),
    ("one token, no duration", {"output_tokens": 1.0, "duration_s": None}, "good"),
    ("no token, late", {"output_tokens": 0.0, "ttft_s": 0.6}, "ttft"),
    ("TTFT at its bound", {"ttft_s": 0.5}, "good"),
    ("TTFT over", {"ttft_s": 0.5000001}, "ttft"),
    ("TPOT at its bound", {"ttft_s": 0.5, "output_tokens": 11.0, "duration_s": 1.0}, "good"),
    ("TPOT over", {"duration_s": 2.6}, "tpot"),
    ("both over", {"ttft_s": 0.6, "duration_s": 2.8}, "both"),
]


@pytest.mark.parametrize(("told", "expected"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_the_first_rule_that_applies_decides(told: dict[str, Any], expected: str) -> None:
    """With targets of 0.5 s and 50 ms."""
    assert verdict(GOOD | told) == expected


WHOLE: list[tuple[str, dict[str, Any], str]] = [
    ("within", {}, "good"),
    ("at the bound", {"duration_s": 3.0, "output_tokens": 60.0}, "good"),
    ("over", {"duration_s": 3.1, "output_tokens": 60.0}, "e2e"),
    ("over, but TPOT comes first", {"duration_s": 3.1}, "tpot"),
    ("no stream is judged by the whole alone", {"stream": False, "ttft_s": None, "output_tokens": None}, "good"),
    ("no stream, over", {"stream": False, "ttft_s": None, "duration_s": 3.1}, "e2e"),
    ("no stream, no duration", {"stream": False, "ttft_s": None, "duration_s": None}, "no_timing"),
    ("a stream without TTFT", {"ttft_s": None}, "no_timing"),
    ("not said to be a stream", {"ttft_s": None, "stream": None}, "no_timing"),
    ("one token and no duration", {"output_tokens": 1.0, "duration_s": None}, "no_timing"),
]


@pytest.mark.parametrize(("told", "expected"), [rule[1:] for rule in WHOLE], ids=[rule[0] for rule in WHOLE])
def test_a_bound_on_the_whole_comes_last(told: dict[str, Any], expected: str) -> None:
    """With targets of 0.5 s, 50 ms and 3 s in all; missing data is never a hit or a miss."""
    assert verdict(GOOD | told, e2e=3.0) == expected


@pytest.mark.parametrize(
    ("told", "bounds", "expected"),
    [
        ({"ttft_s": None}, {"ttft": None, "tpot": None, "e2e": 3.0}, "good"),
        ({"ttft_s": None, "duration_s": None}, {"ttft": None, "tpot": None, "e2e": 3.0}, "no_timing"),
        ({"output_tokens": None}, {"ttft": 0.5, "tpot": None}, "good"),
        ({"ttft_s": 9.0, "duration_s": 10.0}, {"ttft": None, "tpot": 0.05}, "good"),
        ({}, {"ttft": None, "tpot": None}, "no_slo"),
        ({"outcome": "timeout"}, {"ttft": None, "tpot": None}, "error"),
    ],
)
def test_a_target_that_is_not_given_always_holds(
    told: dict[str, Any], bounds: dict[str, float | None], expected: str
) -> None:
    """And what only it needs need not be known."""
    assert verdict(GOOD | told, **bounds) == expected


TOLD = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(OUTCOMES),
        "cache_hit": st.booleans(),
        "stream": st.sampled_from([True, False, None]),
        "rate_limited_by": st.sampled_from([*LIMITERS, None]),
        "ttft_s": st.sampled_from([None, 0.1, 0.5, 2.0]),
        "duration_s": st.sampled_from([None, 0.2, 3.0, 30.0]),
        "prompt_tokens": st.sampled_from([None, 0, 100]),
        "output_tokens": st.sampled_from([None, 0, 1, 2, 500]),
        "tenant": st.sampled_from(["a", "b"]),
        "route": st.sampled_from(["/x", "/y", "/z"]),
    }
)


@given(st.lists(TOLD, min_size=1, max_size=30))
@settings(max_examples=30)
def test_verdicts_add_up_to_requests(told: list[dict[str, Any]]) -> None:
    """Law 4: per tenant and route, whatever is known of the requests."""
    targets = (Slo(Match(route=("/x",)), 0.5, 0.05, 3.0), Slo(Match(route=("/y",)), ttft=0.5))
    spine = Spine(Config(slo=targets))
    spine.feed(*(request(**one) for one in told))
    names = ("goodput_requests_total", "goodput_missed_total", "goodput_unclassified_total")
    for tenant in "ab":
        for route in ("/x", "/y", "/z"):
            judged = sum(spine.total(name, tenant=tenant, route=route) for name in names)
            assert judged == spine.total("requests_total", tenant=tenant, route=route)
