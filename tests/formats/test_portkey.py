"""The portkey dialect: outcomes beyond the HTTP status, and whose keys make the tenant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .compare import options_of, run_case

ROW: dict[str, Any] = {
    "id": "a",
    "created_at": "2026-03-03T09:15:00.900Z",
    "is_success": True,
    "req_units": 1530,
    "res_units": 342,
    "response_time": 7940,
    "response_status_code": 200,
}


def record(fields: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The record of one row with changes."""
    return run_case("portkey", options_of(fields), None, json.dumps(ROW | changes).encode())[0]["record"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("status", "success", "outcome"),
    [
        (200, True, "ok"),
        (246, True, "ok"),
        (446, False, "content_filter"),
        (412, False, "rate_limited"),
        (408, False, "timeout"),
        (429, False, "rate_limited"),
        (500, False, "upstream_error"),
        (200, False, "upstream_error"),
        (None, False, "upstream_error"),
        (None, True, "ok"),
    ],
)
def test_portkeys_own_statuses(status: int | None, success: bool, outcome: str) -> None:
    """446 is its guardrail's refusal, 412 a used-up budget; a failure without a status is no success."""
    assert record(response_status_code=status, is_success=success)["outcome"] == outcome


@pytest.mark.parametrize(
    ("metadata", "tenant"),
    [
        ({"tenant": "acme", "team": "search"}, "acme"),
        ({"tenant_id": "t-1"}, "t-1"),
        ({"team": "search"}, "search"),
        ({"_user": "jane"}, None),
        ({"tenant": ""}, None),
        (None, None),
    ],
)
def test_the_tenant_is_a_key_of_the_metadata(metadata: object, tenant: str | None) -> None:
    """The first of the usual keys; a user is no tenant."""
    assert record(metadata=metadata).get("tenant") == tenant


def test_a_path_of_the_operator_stands_alone() -> None:
    """Where it finds nothing, no default steps in; its durations are milliseconds as Portkey's own."""
    got = record({"tenant": "metadata.org", "ttft_s": "first"}, metadata={"tenant": "acme"}, first=250)
    assert (got.get("tenant"), got["ttft_s"]) == (None, 0.25)


def test_units_of_nothing_are_unknown() -> None:
    """Failures and streams without usage are written with 0 units."""
    got = record(req_units=0, res_units=0, total_units=0)
    assert [got.get("prompt_tokens"), got.get("output_tokens"), got["usage"]] == [None, None, "missing"]
