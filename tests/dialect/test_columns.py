"""The fast tier over whole rows and the reader are one dialect: whatever a line holds, both give the same records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.dialect import Decoder, Field, Format, Options
from capwatch.formats import shelf
from tests.formats.compare import NEAR, Case, cases, sample

FORMS = ("envoy", "nginx")
MAPPED = Options(
    {
        "tenant": Field("tenant"),
        "route": Field("path"),
        "outcome": Field("word"),
        "retries": Field("tries"),
        "stream": Field("streamed"),
        "ttft_s": Field("first_us", "us"),
        "output_tokens": Field("usage.out"),
        "status": Field("code"),
        "cache_hit": Field("hit"),
        "finished_at": Field("end", "ms"),
    },
    ZoneInfo("Europe/Berlin"),
)
ENVOY: dict[str, Sequence[object]] = {
    "start_time": ("2026-03-03T09:15:00.120Z", "2026-03-03T09:15:00", 1772529300.5, "03/Mar/2026:09:15:00 +0000", "-"),
    "duration": (0, 250, 60_000, "250", "250ms", -1, 2.5, "-"),
    "response_code": (0, 200, 429, 503, 504, 499, "200", 99_999, 200.7),
    "response_flags": ("-", "DC", "UT", "RL", "UF,URX", "UO", "", "??"),
    "response_code_details": ("via_upstream", "downstream_remote_disconnect", "ext_proc_error", "-"),
    "upstream_host": ("10.42.7.21:8000", "-", 7),
    "x-request-id": ("a", "b", "-", 12),
    "request_id": ("c", ""),
    "x-envoy-origin-path": ("/v1/chat/completions?k=v", "/v1/files/12345678", "-"),
    "path": ("/v1/responses", "", 5),
    "x-tenant-id": ("acme", "-", "", None),
    "tenant": ("globex", {"id": "deep"}, True),
    "tenant.id": ("initech",),
    "gen_ai.response.model": ("llama-3.1-70b", "tell me a story", "-"),
    "gen_ai.request.model": ("gpt-oss-120b",),
    "gen_ai.usage.input_tokens": (0, 1530, "1530", 1.5, 10**30),
    "gen_ai.usage.cached_input_tokens": (0, 512, 9999),
    "gen_ai.usage.output_tokens": (0, 342, True),
    "gen_ai": ({"usage": {"output_tokens": 7}}, {"response.model": "deep"}, "text"),
    "gen_ai.token_latency.ttft_ms": (0, 120, "120", 99_999),
    "token_latency_ttft": (80,),
    "upstream_request_attempt_count": (1, 2, "2", 0),
    "access_log_type": ("DownstreamEnd", "UpstreamEnd", "NotSet"),
    "mcp.method.name": ("tools/call", "initialize"),
    "method": ("POST", "GET", 5),
    "msg": ("words",),
    "level": ("info",),
    "x-priority": ("high",),
    "word": ("timeout", "rate_limited", "nonsense"),
    "tries": (0, 3),
    "streamed": (True, False, "true"),
    "first_us": (90_000, 1.5),
    "usage": ({"out": 5}, '{"out": 6}'),
    "code": (200, 503),
    "hit": (True, False, "true"),
    "end": (1772529300120, "x"),
}
NGINX: dict[str, Sequence[object]] = {
    "msec": ("1772529308.840", 1772529308.84, "-", "x", ""),
    "time_iso8601": ("2026-03-03T09:15:08+00:00", "2026-03-03T09:15:08"),
    "time_local": ("03/Mar/2026:09:15:08 +0000",),
    "ts": (1772529308,),
    "request_time": ("7.940", 7.94, 0, "", "-1", "many"),
    "status": ("200", 200, "499", "429", "503", "504", "000", "-", 200.5),
    "request_id": ("a", "b", "-", 12),
    "uri": ("/v1/chat/completions", "/v1/files/12345678", "-", 5),
    "request_uri": ("/v1/responses?key=k",),
    "request": ("POST /v1/x HTTP/1.1", "GET / HTTP/1.1", "garbage", 5),
    "request_method": ("POST", "GET", "-"),
    "method": ("HEAD", "POST"),
    "upstream_status": ("200", "502, 200", "404 : 200", "-", "", 200, None),
    "upstream_response_time": ("7.938", "0.1, -, 7.8", "0.011 : 2.290", "-", "", 0.5, "x", None),
    "upstream_addr": ("10.42.7.21:8000", "a, b", ""),
    "upstream_cache_status": ("HIT", "MISS", "-", ""),
    "request_completion": ("OK", "", "-", None),
    "connection": ("17", 17, "-"),
    "remote_port": (33301,),
    "connection_requests": ("1", 2),
    "bytes_sent": ("4388", 4388, "-"),
    "tenant": ("acme", "-", "", True),
    "http_x_tenant_id": ("globex",),
    "model": ("llama-3.1-70b", "tell me a story", "-"),
    "stream": ("true", False, "?", 1),
    "prompt_tokens": ("1530", 1530, "0", "", 1.5, 10**30, True),
    "cached_tokens": ("512", 9999),
    "output_tokens": ("342", 0),
    "ttft_s": ("0.412", 99.5),
    "priority": ("high",),
    "outcome": ("timeout", "rate_limited", "nonsense", ""),
    "retries": ("3", 0),
    "rate_limited_by": ("gateway", "upstream", "?"),
    "usage": ("estimated", {"out": 5}, '{"out": "6"}'),
    "word": ("timeout", "rate_limited", "nonsense"),
    "tries": (0, "3"),
    "streamed": (True, "true"),
    "first_us": (90_000, "1.5"),
    "code": (200, "503"),
    "hit": (True, False, "true"),
    "end": (1772529300120, "1772529300120", "x"),
    "path": ("/v1/y",),
}
VALUES = {"envoy": ENVOY, "nginx": NGINX}
USUAL = {
    "envoy": ("start_time", "duration", "response_code", "response_flags", "upstream_host", "x-request-id", "path"),
    "nginx": ("msec", "request_time", "status", "uri", "upstream_status", "upstream_response_time", "connection"),
}


@st.composite
def lines(draw: st.DrawFn, form: str) -> bytes:
    """A line with usual keys, and some others of any kind."""
    values = VALUES[form]
    row: dict[str, Any] = {key: values[key][draw(st.sampled_from([0, 0, 0, 1]))] for key in USUAL[form]}
    for key in draw(st.lists(st.sampled_from(sorted(values)), max_size=6)):
        row[key] = draw(st.sampled_from([*values[key], None]))
    for key in draw(st.lists(st.sampled_from(USUAL[form]), max_size=1)):
        row.pop(key, None)
    return json.dumps(row).encode()


def read(form: Format, options: Options, block: Sequence[bytes]) -> list[object]:
    """What a tier makes of lines: records with their lines and what repeats them, then fates and numbers."""
    decoded = Decoder(form, options).decode(b"\n".join([*block, b""]), NEAR)
    batch = decoded.batch
    records: list[object] = [
        (line, batch.row(row), batch.dedupe_key[row]) for row, line in enumerate(decoded.lines.tolist())
    ]
    return [*records, decoded.fates, decoded.read, decoded.counted, decoded.skipped]


def agree(name: str, options: Options, block: Sequence[bytes]) -> None:
    """Both tiers say the same."""
    form = shelf()[name]
    assert read(form, options, block) == read(replace(form, scanner=None), options, block)


@pytest.mark.parametrize("options", [Options(), MAPPED], ids=["own names", "mapped"])
@pytest.mark.parametrize("name", FORMS)
@given(data=st.data())
@settings(max_examples=250, deadline=None)
def test_both_tiers_read_any_row_alike(name: str, options: Options, data: st.DataObject) -> None:
    """Of usual and unusual values, and with rows that are none among them."""
    agree(name, options, data.draw(st.lists(lines(name), min_size=1, max_size=4)))


GOLDEN = [case for case in cases() if case.log.parent.name in FORMS and not case.said().get("wrapper")]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case.log.parent.name}/{case.log.stem}")
def test_both_tiers_read_the_golden_logs_alike(case: Case) -> None:
    """Broken and text lines among usual ones."""
    agree(case.log.parent.name, case.options(), case.log.read_bytes().splitlines())


@pytest.mark.parametrize(
    ("name", "file", "left"),
    [
        ("envoy", "gateways/envoy_ai_gateway.jsonl", 2),  # a tool call, and a line of texts
        ("nginx", "gateways/nginx_json.jsonl", 2),  # broken JSON
        ("nginx", "captured/nginx_access_json.jsonl", 0),
    ],
)
def test_usual_lines_are_taken_by_the_fast_tier(name: str, file: str, left: int) -> None:
    """Or it would be of no use."""
    scanner = shelf()[name].scanner
    assert scanner is not None
    block = sample(file).read_bytes().splitlines()
    _, taken, over = scanner(Options()).scan(block, clean=True)
    assert (len(taken), len(over)) == (len(block) - left, left)
