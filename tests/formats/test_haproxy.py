"""The haproxy dialect: text and JSON drawn anew tell the same, and termination states mean what the manual says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.dialect import Decoder, Options
from capwatch.formats.haproxy import FORMAT

from .compare import compare, options_of, run_case, sample_differences

START = 1772529300.0
PREFIXES = ("", "Mar  3 09:15:02 gw-1 haproxy[14389]: ", "<134>1 2026-03-03T09:15:02.430Z gw-1 haproxy 14389 - - ")


def test_the_sample_is_understood() -> None:
    """Every line of the shared sample has the expected outcome and record."""
    assert sample_differences("gateways/haproxy_httplog.log", "haproxy") == []


@st.composite
def told(draw: st.DrawFn) -> dict[str, Any]:
    """What a line is to tell, as the record that is expected."""
    queue = draw(st.none() | st.integers(0, 5000))
    return {
        "started_at": START + draw(st.integers(0, 999)) / 1000,
        "duration_s": draw(st.integers(5000, 60_000)) / 1000,
        "queue_s": None if queue is None else queue / 1000,
        "tenant": draw(st.sampled_from(["acme", "globex"])),
        "model": draw(st.sampled_from(["llama-3.1-70b", "bge-m3"])),
        "route": "/v1/chat/completions",
        "retries": draw(st.integers(0, 3)),
        "status": 200,
        "outcome": "ok",
        "ttft_s": None,
        "usage": "missing",
    }


def parts(expected: dict[str, Any], redispatched: bool) -> dict[str, str]:
    """What both shapes print."""
    at = datetime.fromtimestamp(expected["started_at"], UTC)
    return {
        "date": f"{at:%d/%b/%Y:%H:%M:%S}.{at.microsecond // 1000:03}",
        "TR": "0",
        "Tw": "-1" if expected["queue_s"] is None else str(round(expected["queue_s"] * 1000)),
        "Tc": "1",
        "Tr": "412",
        "Ta": str(round(expected["duration_s"] * 1000)),
        "retries": "+" * redispatched + str(expected["retries"]),
    }


@settings(max_examples=80, deadline=None)
@given(told(), st.sampled_from(["text", "json"]), st.sampled_from(PREFIXES), st.booleans())
def test_a_line_drawn_anew_is_understood(expected: dict[str, Any], shape: str, prefix: str, redispatched: bool) -> None:
    """Text or JSON, behind any prefix: the record is the same, -1 is not told, and the header time not in it."""
    one = parts(expected, redispatched)
    if shape == "json":
        row = one | {
            "ST": 200,
            "ts": "--",
            "HPO": "/v1/chat/completions",
            "hr": [expected["tenant"], expected["model"]],
        }
        line = prefix + json.dumps(row)
    else:
        timers = "/".join(one[name] for name in ("TR", "Tw", "Tc", "Tr", "Ta"))
        line = (
            f"{prefix}203.0.113.7:33301 [{one['date']}] llm_in~ vllm/gpu-a {timers} 200 4388 - - ----"
            f" 1/1/1/1/{one['retries']} 0/0 {{{expected['tenant']}|{expected['model']}}} {{}}"
            ' "POST /v1/chat/completions?key=k HTTP/1.1"'
        )
    got = run_case("haproxy", options_of({"tenant": "hr.0", "model": "hr.1"}), None, line.encode())
    assert compare({"line": 1, "outcome": "record", "record": expected}, got[0]) == []


LINE = (
    "203.0.113.7:33301 [03/Mar/2026:09:15:00.120] llm_in vllm/gpu-a 0/0/1/5/9 {} 412 - - {}-- 1/1/1/1/0 0/0"
    ' "POST /v1/x HTTP/1.1"'
)


@pytest.mark.parametrize(
    ("status", "state", "outcome"),
    [
        *((200, f"{who}{where}", "client_abort") for who in "Cc" for where in "DHQR"),
        *((200, f"s{where}", "timeout") for where in "CDHQ"),
        *((200, f"S{where}", "upstream_error") for where in "CDH"),
        (429, "PR", "rate_limited"),
        (403, "PR", "client_error"),
        (502, "PH", "gateway_error"),
        (503, "PC", "overload"),
        (503, "SC", "upstream_error"),
        (500, "RR", "gateway_error"),
        (200, "LR", "ok"),
        (302, "PR", "ok"),
        (504, "--", "timeout"),
        (429, "--", "rate_limited"),
        (503, "--", "upstream_error"),
        (404, "--", "client_error"),
        (200, "--", "ok"),
    ],
)
def test_the_termination_state_and_the_status_give_the_outcome(status: int, state: str, outcome: str) -> None:
    """By the precedence of the contract: who ended it before what was sent."""
    assert (
        run_case("haproxy", options_of(), None, LINE.format(status, state).encode())[0]["record"]["outcome"] == outcome
    )


def test_a_line_again_is_the_same_request_whatever_the_collector_put_before_it() -> None:
    """There is no id: all that HAProxy printed tells requests apart, and the port and counters are among it."""
    line, other = LINE.format(200, "--"), LINE.format(200, "--").replace("33301", "33302")
    lines = [line, PREFIXES[1] + line, other]
    keys = list(Decoder(FORMAT, Options()).decode("\n".join(lines).encode(), START).batch.dedupe_key)
    assert keys[0] is not None
    assert [keys[0] == keys[1], keys[0] == keys[2]] == [True, False]


def test_local_times_are_in_the_zone_of_the_source() -> None:
    """HAProxy prints none."""
    got = run_case("haproxy", options_of(timezone="Europe/Berlin"), None, LINE.format(200, "--").encode())[0]["record"]
    assert got["started_at"] == START + 0.12 - 3600
