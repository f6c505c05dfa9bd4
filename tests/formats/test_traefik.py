"""The traefik dialect: JSON and text drawn anew tell the same, and aborted streams are known by what is lost."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .compare import compare, options_of, run_case, sample_differences

START = 1772529300.0


def test_the_sample_is_understood() -> None:
    """Every line of the shared sample has the expected outcome and record."""
    assert sample_differences("gateways/traefik_access.jsonl", "traefik", {"tenant": "request_X-Tenant-Id"}) == []


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a line is to tell, as the record that is expected."""
    status = draw(st.sampled_from([200, 200, 429, 503, 499, 0, 400]))
    return {
        "started_at": START,
        "duration_s": draw(st.integers(1, 60_000)) / 1000,
        "tenant": draw(st.none() | st.sampled_from(["acme", "globex"])),
        "route": "/v1/chat/completions",
        "status": status,
        "outcome": {
            200: "ok",
            429: "rate_limited",
            503: "upstream_error",
            499: "client_abort",
            0: "client_abort",
            400: "client_error",
        }[status],
        "retries": draw(st.integers(0, 3)),
        "gateway_s": draw(st.integers(0, 999)) / 1e6,
        "ttft_s": None,
        "usage": "missing",
    }


def as_json(expected: dict[str, Any], seed: int) -> str:
    """A line of the JSON log; of a stream whose client left the origin is lost."""
    lost = expected["status"] == 0
    row = {
        "StartUTC": datetime.fromtimestamp(START, UTC).isoformat().replace("+00:00", "Z"),
        "Duration": round(expected["duration_s"] * 1e9),
        "OriginDuration": 0 if lost else 1000,
        "OriginStatus": expected["status"],
        "Overhead": round(expected["gateway_s"] * 1e9),
        "DownstreamStatus": expected["status"],
        "RequestMethod": "POST",
        "RequestPath": "/v1/chat/completions?key=k",
        "RetryAttempts": expected["retries"],
        "ClientUsername": expected["tenant"] or "-",
        "level": "info",
        "msg": "",
        "time": "2026-03-03T10:00:00Z",
    }
    items = list(row.items())
    random.Random(seed).shuffle(items)
    return json.dumps(dict(items))


def as_text(expected: dict[str, Any]) -> str:
    """A line in the common format."""
    at = datetime.fromtimestamp(START, UTC)
    return (
        f"203.0.113.7 - {expected['tenant'] or '-'} [{at:%d/%b/%Y:%H:%M:%S +0000}] "
        f'"POST /v1/chat/completions?key=k HTTP/2.0" {expected["status"]} 4148 "-" "agent" 1001 "llm@kubernetes"'
        f' "http://10.42.7.21:8000" {round(expected["duration_s"] * 1000)}ms'
    )


@settings(max_examples=80, deadline=None)
@given(told(), st.booleans(), st.integers(0, 1000))
def test_a_line_drawn_anew_is_understood(expected: dict[str, Any], text: bool, seed: int) -> None:
    """Nanoseconds in JSON, milliseconds in text; what text has no place for stays unknown."""
    lost = {"gateway_s": None} if expected["status"] == 0 else {}
    wanted = expected | ({"retries": None, "gateway_s": None} if text else lost)
    line = as_text(expected) if text else as_json(expected, seed)
    got = run_case("traefik", options_of(), None, line.encode())
    assert compare({"line": 1, "outcome": "record", "record": wanted}, got[0]) == []


@pytest.mark.parametrize(
    ("kept", "user", "tenant"),
    [
        ("acme", "-", "acme"),
        ("acme", "globex", "acme"),
        (None, "globex", "globex"),
        ("REDACTED", "globex", "globex"),
        ("REDACTED", "-", None),
    ],
)
def test_the_tenant_is_the_header_that_is_kept_else_the_user(kept: str | None, user: str, tenant: str | None) -> None:
    """A redacted header tells nothing."""
    row = {
        "StartUTC": "2026-03-03T09:15:00Z",
        "DownstreamStatus": 200,
        "ClientUsername": user,
        "request_X-Tenant-Id": kept,
    }
    assert run_case("traefik", options_of(), None, json.dumps(row).encode())[0]["record"].get("tenant") == tenant
