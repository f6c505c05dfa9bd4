"""The azure_openai dialect: ticks, properties in two shapes, messages with several rows, other categories."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .compare import options_of, run_case

EPOCH_TICKS = 621355968000000000  # 1970-01-01 in .NET ticks
TICKS = EPOCH_TICKS + 1772529300_1200000
ROW: dict[str, Any] = {
    "category": "RequestResponse",
    "correlationId": "a",
    "time": "2026-03-03T09:15:00.0000000Z",
    "durationMs": 2310,
    "operationName": "ChatCompletions_Create",
    "resultSignature": "200",
}
PROPERTIES: dict[str, Any] = {"requestTime": TICKS, "responseTime": TICKS + 2_3100000, "modelName": "gpt-4o"}


def understood(properties: object = PROPERTIES, **changes: Any) -> dict[str, Any]:
    """What is understood of a row with changes."""
    row = ROW | {"properties": properties} | changes
    return run_case("azure_openai", options_of(), None, json.dumps(row).encode())[0]


@pytest.mark.parametrize("properties", [PROPERTIES, json.dumps(PROPERTIES)], ids=["object", "text"])
def test_ticks_are_the_times(properties: object) -> None:
    """100 ns since the year 1, in both shapes of `properties`; to the microsecond or so that a float can tell."""
    got = understood(properties)["record"]
    assert [got["started_at"], got["finished_at"], got["duration_s"]] == pytest.approx(
        [1772529300.12, 1772529302.43, 2.31], abs=2e-5
    )


@pytest.mark.parametrize(("told", "duration"), [(-3, None), (2310, 2.31), (None, None), ("2310", 2.31)])
def test_a_negative_duration_is_unknown(told: object, duration: float | None) -> None:
    """Never 0, and the request counts."""
    got = understood({"modelName": "gpt-4o"}, durationMs=told)
    assert (got["outcome"], got["record"].get("duration_s")) == ("record", duration)


@pytest.mark.parametrize("category", ["Audit", "Trace", "AzureOpenAIRequestUsage"])
def test_other_categories_are_no_requests(category: str) -> None:
    """They may be written to the same place."""
    assert understood(category=category)["outcome"] == "skip"


def test_a_message_of_an_event_hub_holds_several_rows() -> None:
    """Each is a record; what is none costs only itself."""
    rows = [ROW | {"correlationId": one, "properties": PROPERTIES} for one in "ab"]
    line = json.dumps({"records": [rows[0], {"category": "Audit"}, 7, rows[1]]}).encode()
    got = run_case("azure_openai", options_of(), None, line)[0]
    assert [one["request_id"] for one in got["records"]] == ["a", "b"]


@pytest.mark.parametrize(("told", "stream"), [("Streaming", True), ("Non-Streaming", False), ("", None)])
def test_the_kind_of_stream(told: str, stream: bool | None) -> None:
    """A word that is not there tells nothing."""
    assert understood(PROPERTIES | {"streamType": told})["record"].get("stream") == stream


@pytest.mark.parametrize(
    ("operation", "properties", "expected"),
    [
        ("Embeddings_Create", {}, "/v1/embeddings"),
        ("Of_Tomorrow", {"modelDeploymentName": "d"}, "Of_Tomorrow"),
        ("ListKey", {}, None),
    ],
)
def test_the_operation_is_the_route(operation: str, properties: dict[str, Any], expected: str | None) -> None:
    """As a path where it is known; without a model and unknown, it asked none."""
    assert understood(properties, operationName=operation).get("record", {}).get("route") == expected
