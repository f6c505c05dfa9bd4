"""The cloudflare dialect: times by their size, limits by who set them, and events that come twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capwatch.dialect import Decoder, Options
from capwatch.formats import shelf

from .compare import NEAR, options_of, run_case

EVENT: dict[str, Any] = {
    "Cached": False,
    "Endpoint": "v1/chat/completions",
    "Metrics": {"durationMs": 100, "tokensIn": 10, "tokensOut": 5},
    "Model": "served",
    "RequestedModel": "asked",
    "RateLimited": False,
    "StatusCode": 200,
    "Timestamp": 1772529300900000000,
}


def record(**changes: Any) -> dict[str, Any]:
    """The record of one event with changes."""
    return run_case("cloudflare", options_of(), None, json.dumps(EVENT | changes).encode())[0]["record"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "told",
    [
        1772529300900000000,
        "1772529300900000000",
        1772529300900000,
        1772529300900,
        1772529300.9,
        "2026-03-03T09:15:00.9Z",
    ],
)
def test_a_time_is_told_apart_by_its_size(told: object) -> None:
    """Nanoseconds, microseconds, milliseconds, seconds or RFC 3339, by the job's options."""
    assert record(Timestamp=told)["started_at"] == 1772529300.9


@pytest.mark.parametrize(
    ("limited", "status", "outcome", "limiter"),
    [
        (True, 429, "rate_limited", "gateway"),
        (True, None, "rate_limited", "gateway"),
        (False, 429, "rate_limited", "upstream"),
        (None, 429, "rate_limited", None),
        (False, 200, "ok", None),
        (False, 504, "timeout", None),
    ],
)
def test_who_limited(limited: bool | None, status: int | None, outcome: str, limiter: str | None) -> None:
    """`RateLimited` is the gateway's own limit; a 429 without it came from the provider."""
    got = record(RateLimited=limited, StatusCode=status)
    assert (got["outcome"], got.get("rate_limited_by")) == (outcome, limiter)


@pytest.mark.parametrize(("changes", "model"), [({}, "served"), ({"Model": ""}, "asked"), ({"Model": None}, "asked")])
def test_the_model_that_served_comes_first(changes: dict[str, Any], model: str) -> None:
    """The one asked for stands in where the event has only that."""
    assert record(**changes)["model"] == model


def keys(*events: dict[str, Any]) -> list[str | None]:
    """What duplicates of these events would share."""
    lines = "".join(f"{json.dumps(event)}\n" for event in events).encode()
    return list(Decoder(shelf()["cloudflare"], Options()).decode(lines, NEAR).batch.dedupe_key)


def test_an_event_that_comes_twice_is_known() -> None:
    """It has no id, so its whole line tells; another time is another event."""
    first, again, other = keys(EVENT, EVENT, EVENT | {"Timestamp": 1772529300900000001})
    assert first is not None
    assert first == again != other


def test_events_alike_to_the_second_are_not_taken_for_one() -> None:
    """Embeddings of one size in one second give the same line."""
    assert keys(EVENT | {"Timestamp": 1772529300}) == [None]
