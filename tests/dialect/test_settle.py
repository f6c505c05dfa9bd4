"""The rules that settle a record, whatever the dialect (contract, section 3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect.settle import DROPS, settle
from capwatch.record import DURATIONS, NUMBERS, OUTCOMES, TIMES, TOKENS, Batch, Request

NOW = 1_772_529_300.0
REFUSED = math.inf


def settled(near: float = math.nan, **told: Any) -> tuple[Request, str]:
    """A record after settling, and why it is dropped."""
    batch = Batch.of([Request(**told)])
    reason = DROPS[int(settle(batch, np.array([near]))[0])]
    return batch.row(0), reason


def fields(request: Request, *names: str) -> list[object]:
    """Some of a record's fields."""
    return [getattr(request, name) for name in names]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"started_at": NOW, "duration_s": 2.0}, (NOW, NOW + 2, 2.0)),
        ({"finished_at": NOW, "duration_s": 2.0}, (NOW - 2, NOW, 2.0)),
        ({"started_at": NOW, "finished_at": NOW + 3}, (NOW, NOW + 3, 3.0)),
        ({"started_at": NOW}, (NOW, None, None)),
        ({"finished_at": NOW}, (None, NOW, None)),
        ({"started_at": NOW, "finished_at": NOW, "duration_s": 0.0}, (NOW, NOW, 0.0)),
        ({"started_at": NOW + 1, "finished_at": NOW, "duration_s": 2.0}, (None, NOW, None)),
        ({"started_at": 1.0, "finished_at": NOW}, (None, NOW, None)),
        ({"started_at": NOW + 1e-7, "finished_at": NOW}, (NOW + 1e-7, NOW, 0.0)),
        ({"started_at": NOW * 1000, "finished_at": NOW, "output_tokens": 5}, (None, NOW, None)),
    ],
)
def test_times_complete_each_other(told: dict[str, float], expected: tuple[object, ...]) -> None:
    """One known gives the other by the duration; a start after the end, or years before it, is no start."""
    request, reason = settled(**told)
    assert (fields(request, "started_at", "finished_at", "duration_s"), reason) == (list(expected), "")


@pytest.mark.parametrize("told", [{}, {"duration_s": 2.0}, {"finished_at": 0.0}, {"finished_at": REFUSED}])
def test_a_record_without_any_time_is_dropped(told: dict[str, float]) -> None:
    """As `bad_time`; where a wrapper or the reader gives a time, that is its end."""
    assert settled(prompt_tokens=5, **told)[1] == "bad_time"
    request, reason = settled(near=NOW, prompt_tokens=5, **told)
    assert (request.finished_at, reason) == (NOW, "")


@pytest.mark.parametrize(
    ("told", "prompt", "cached", "output", "usage"),
    [
        ({"prompt_tokens": 100, "cached_tokens": 30, "output_tokens": 7}, 100, 30, 7, "provider"),
        ({"prompt_tokens": 100, "cached_tokens": 130}, 100, 100, None, "provider"),
        ({"prompt_tokens": 0, "output_tokens": 0}, None, None, None, "missing"),
        ({"prompt_tokens": 0, "output_tokens": 7}, None, None, 7, "provider"),
        ({"prompt_tokens": 10, "output_tokens": 0}, 10, None, 0, "provider"),
        ({"cached_tokens": 30, "output_tokens": 7}, None, None, 7, "provider"),
        ({"prompt_tokens": 10, "usage": "estimated"}, 10, None, None, "estimated"),
        ({"usage": "estimated"}, None, None, None, "missing"),
        ({"prompt_tokens": -5, "output_tokens": 0}, None, None, 0, "provider"),
        ({"prompt_tokens": 1.5, "output_tokens": 2e9}, None, None, None, "missing"),
    ],
)
def test_tokens_are_counts_or_unknown(
    told: dict[str, Any], prompt: int | None, cached: int | None, output: int | None, usage: str
) -> None:
    """A prompt of 0 tokens means unknown, cached is part of the prompt, usage says what is left."""
    request, _ = settled(finished_at=NOW, duration_s=1.0, **told)
    assert fields(request, "prompt_tokens", "cached_tokens", "output_tokens", "usage") == [
        prompt,
        cached,
        output,
        usage,
    ]


@pytest.mark.parametrize(
    ("told", "ttft"),
    [
        ({"ttft_s": 0.4, "duration_s": 2.0}, 0.4),
        ({"ttft_s": 0.4}, 0.4),
        ({"ttft_s": 0.4, "duration_s": 2.0, "stream": False}, None),
        ({"ttft_s": 0.0, "duration_s": 2.0}, None),
        ({"ttft_s": 2.1, "duration_s": 2.0}, None),
        ({"ttft_s": 2.0, "duration_s": 2.0, "output_tokens": 2}, None),
        ({"ttft_s": 2.0, "duration_s": 2.0, "output_tokens": 1}, 2.0),
        ({"ttft_s": -0.1, "duration_s": 2.0}, None),
    ],
)
def test_a_ttft_is_that_of_a_stream_and_within_the_whole(told: dict[str, Any], ttft: float | None) -> None:
    """And not the whole itself when more tokens followed."""
    assert settled(finished_at=NOW, **told)[0].ttft_s == ttft


@pytest.mark.parametrize(
    ("told", "prefill", "decode"),
    [
        ({}, 1.0, 2.0),
        ({"gateway_s": 0.25, "queue_s": 0.5}, 0.25, 2.0),
        ({"queue_s": 1.5}, 0.0, 2.0),
        ({"prefill_s": 0.7, "decode_s": 1.9}, 0.7, 1.9),
        ({"ttft_s": None}, None, None),
    ],
)
def test_prefill_and_decode_follow_from_the_ttft(told: dict[str, Any], prefill: float | None, decode: float) -> None:
    """Decode is what comes after the first token; prefill what no phase before it explains."""
    request, _ = settled(**{"finished_at": NOW, "duration_s": 3.0, "ttft_s": 1.0} | told)
    assert fields(request, "prefill_s", "decode_s") == [prefill, decode]


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ({"status": 200}, "ok"),
        ({"status": 503}, "upstream_error"),
        ({"status": 503, "outcome": "overload"}, "overload"),
        ({}, "ok"),
        ({"outcome": "nonsense", "status": 404}, "client_error"),
    ],
)
def test_a_status_gives_the_outcome_where_nothing_else_does(told: dict[str, Any], outcome: str) -> None:
    """Neither told is ok."""
    assert settled(finished_at=NOW, **told)[0].outcome == outcome


def test_who_limited_is_told_of_limited_requests_only() -> None:
    """Otherwise it means nothing."""
    told = [settled(finished_at=NOW, outcome=one, rate_limited_by="gateway")[0] for one in ("rate_limited", "timeout")]
    assert [request.rate_limited_by for request in told] == ["gateway", None]


@pytest.mark.parametrize("bad", [-1.0, REFUSED, 2e9, 1.5])
def test_a_record_that_tells_nothing_but_refused_numbers_is_dropped(bad: float) -> None:
    """As `bad_number`; if any count or duration is usable, it is a record."""
    assert settled(finished_at=NOW, prompt_tokens=bad)[1] == "bad_number"
    assert settled(finished_at=NOW, prompt_tokens=bad, duration_s=1.0)[1] == ""


def test_minus_zero_is_zero() -> None:
    """So that no page shows a sign."""
    request, _ = settled(finished_at=NOW, duration_s=-0.0, queue_s=-0.0, prompt_tokens=-0.0)
    assert [math.copysign(1, request.duration_s or 0.0), math.copysign(1, request.queue_s or 0.0)] == [1, 1]
    assert request.prompt_tokens is None


ANY = st.one_of(st.none(), st.floats(allow_nan=False), st.sampled_from([-0.0, REFUSED, 1.0, 3.0, NOW, NOW + 5]))
RECORDS = st.fixed_dictionaries(
    {name: ANY for name in NUMBERS}  # noqa: C420 - one strategy for all would draw one value for all
    | {"stream": st.sampled_from([True, False, None]), "status": st.sampled_from([None, 0, 200, 429, 999])}
)


@given(RECORDS)
def test_what_is_settled_holds_together(told: dict[str, Any]) -> None:
    """Every number is finite and in range, what is derived agrees with what it rests on."""
    request, reason = settled(**told)
    numbers = {name: value for name in NUMBERS if (value := getattr(request, name)) is not None}
    assert [name for name, value in numbers.items() if not math.isfinite(value)] == []
    assert [name for name in (*DURATIONS, *TOKENS, "retries") if numbers.get(name, 0) < 0] == []
    assert (reason == "bad_time") == (not any(name in numbers for name in TIMES))
    assert (request.cached_tokens or 0) <= (request.prompt_tokens or 0)
    assert request.outcome in OUTCOMES
    if request.ttft_s is not None and request.duration_s is not None:
        assert request.ttft_s <= request.duration_s + 1e-6
    if request.started_at is not None and request.finished_at is not None and told["duration_s"] is None:
        assert request.duration_s is None or request.duration_s <= 1e6
