"""The bedrock dialect: error codes, disjoint parts of the prompt, and figures at the end of a body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .compare import options_of, run_case

CALL: dict[str, Any] = {
    "schemaType": "ModelInvocationLog",
    "timestamp": "2026-03-03T09:15:00Z",
    "accountId": "111122223333",
    "requestId": "a",
    "operation": "Converse",
    "modelId": "meta.llama3-1-70b-instruct-v1:0",
    "input": {"inputTokenCount": 100},
    "output": {"outputTokenCount": 20, "outputBodyJson": {"metrics": {"latencyMs": 2310}}},
}


def record(fields: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The record of one call with changes."""
    return run_case("bedrock", options_of(fields), None, json.dumps(CALL | changes).encode())[0]["record"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("code", "outcome", "limiter"),
    [
        ("ThrottlingException", "rate_limited", "upstream"),
        ("ServiceQuotaExceededException", "rate_limited", "upstream"),
        ("ModelTimeoutException", "timeout", None),
        ("ValidationException", "client_error", None),
        ("AccessDeniedException", "client_error", None),
        ("ServiceUnavailableException", "upstream_error", None),
        ("ModelErrorException", "upstream_error", None),
        ("OfNextYearException", "upstream_error", None),
        ("429", "rate_limited", "upstream"),
        (None, "ok", None),
        ("", "ok", None),
    ],
)
def test_a_code_gives_the_outcome(code: str | None, outcome: str, limiter: str | None) -> None:
    """There is no HTTP status; a code that nobody knows is a failure of the service."""
    got = record(errorCode=code, output=None)
    assert (got["outcome"], got.get("rate_limited_by")) == (outcome, limiter)


@pytest.mark.parametrize(
    ("told", "prompt", "cached"),
    [
        ({"inputTokenCount": 100}, 100, None),
        ({"inputTokenCount": 100, "cacheReadInputTokenCount": 40}, 140, 40),
        ({"inputTokenCount": 100, "cacheReadInputTokenCount": 40, "cacheWriteInputTokenCount": 7}, 147, 40),
        ({"cacheReadInputTokenCount": 40}, 40, 40),
        ({"inputTokenCount": 0}, None, None),
        ({}, None, None),
    ],
)
def test_the_parts_of_a_prompt_are_added(told: dict[str, int], prompt: int | None, cached: int | None) -> None:
    """Tokens read from the cache and written to it are outside the count of the input."""
    got = record(input=told)
    assert (got.get("prompt_tokens"), got.get("cached_tokens")) == (prompt, cached)


@pytest.mark.parametrize(
    ("body", "duration"),
    [
        ({"metrics": {"latencyMs": 2310}}, 2.31),
        ('{"metrics": {"latencyMs": 2310}}', 2.31),
        ([{"type": "x"}, {"amazon-bedrock-invocationMetrics": {"invocationLatency": 2310}}], 2.31),
        ([{"messageStart": {}}, {"metadata": {"metrics": {"latencyMs": 2310}}}], 2.31),
        ([], None),
        ("plain words", None),
        (None, None),
    ],
)
def test_the_duration_is_inside_the_body(body: object, duration: float | None) -> None:
    """In an answer, or in the last event of a stream; where the body is elsewhere there is none."""
    assert record(output={"outputTokenCount": 20, "outputBodyJson": body}).get("duration_s") == duration


def test_the_first_byte_of_a_stream_is_its_first_chunk() -> None:
    """Of calls that do not stream it is not taken."""
    body = [{"amazon-bedrock-invocationMetrics": {"invocationLatency": 900, "firstByteLatency": 300}}]
    told = {"outputTokenCount": 20, "outputBodyJson": body}
    assert record(operation="InvokeModelWithResponseStream", output=told)["ttft_s"] == 0.3
    assert "ttft_s" not in record(operation="InvokeModel", output=told)


@pytest.mark.parametrize(
    ("arn", "tenant"),
    [
        ("arn:aws:sts::111122223333:assumed-role/acme-search/jane@example.invalid", "acme-search"),
        ("arn:aws:iam::111122223333:user/jane", "111122223333"),
        ("nonsense", "111122223333"),
        (None, "111122223333"),
    ],
)
def test_the_caller_is_a_role_and_never_a_person(arn: str | None, tenant: str) -> None:
    """Sessions and users are names of people."""
    assert record(identity={"arn": arn})["tenant"] == tenant


def test_a_tenant_of_the_operators_choice_stands_alone() -> None:
    """The caller does not step in for it."""
    assert "tenant" not in record({"tenant": "requestMetadata.org"})
