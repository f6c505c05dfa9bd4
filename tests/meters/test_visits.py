"""Visits by phase: how often a request goes where, the v of Little's law by phase."""

from __future__ import annotations

from typing import Any

import pytest

from capwatch.config.schema import Config, Pool

from ..spine import Spine, request

CONFIG = Config(pools=(Pool("chat"), Pool("idle")))


def visits(*records: dict[str, Any]) -> dict[str, float]:
    """Visits to each phase of the pool that these requests go to, those that saw any."""
    spine = Spine(CONFIG)
    spine.feed(*(request(duration_s=4.0, **record) for record in records))
    return {labels[0][1]: value for labels, value in spine.values("phase_visits_total", pool="chat").items() if value}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"retrieval_s": 0.5}, {"retrieval": 1}),
        ({"retrieval_s": 0.5, "retrieval_visits": 3}, {"retrieval": 3}),
        ({"tool_visits": 2}, {"tool": 2}),
        ({"tool_s": 0.0}, {}),
        ({"tool_s": 0.5, "tool_visits": 0}, {}),
        ({"gateway_s": 0.01}, {"gateway": 1}),
        ({"ttft_s": 1.0, "stream": True}, {"prefill": 1, "decode": 1}),
        ({"prompt_tokens": 9, "output_tokens": 3}, {"prefill": 1, "decode": 1}),
        ({"prompt_tokens": 9, "output_tokens": 0}, {"prefill": 1}),
        ({"prompt_tokens": 9, "output_tokens": 3, "cache_hit": True}, {}),
        ({"model_visits": 3}, {"prefill": 3, "decode": 3}),
        ({"model_visits": 3, "queue_s": 0.5}, {"queue": 3, "prefill": 3, "decode": 3}),
        ({}, {}),
    ],
)
def test_a_phase_is_visited_where_a_log_tells_of_it(told: dict[str, Any], expected: dict[str, float]) -> None:
    """By time spent there, by tokens made there, or by a number; what is not told is no visit."""
    assert visits(told) == expected


def test_visits_per_request_are_the_fan_out() -> None:
    """20 requests of which 3 go to a tool twice: v = 6 / 20 (Little's law by phase: L = λ v W)."""
    spine = Spine(CONFIG)
    spine.feed(*(request(tool_s=1.0, tool_visits=2) for _ in range(3)), *(request() for _ in range(17)))
    assert spine.total("phase_visits_total", pool="chat", phase="tool") / spine.total("departures_total") == 0.3


def test_every_pool_begins_at_nothing() -> None:
    """So that a rate sees the first step; nobody visits what is unexplained."""
    spine = Spine(CONFIG)
    spine.commit()
    told = spine.values("phase_visits_total", pool="idle")
    assert {labels[0][1]: value for labels, value in told.items()} == dict.fromkeys(
        ("gateway", "retrieval", "tool", "queue", "prefill", "decode"), 0.0
    )
