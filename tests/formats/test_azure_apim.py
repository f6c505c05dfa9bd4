"""The azure_apim dialect: two rows make one request, whichever comes first, or one of them alone."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from capwatch.dialect import Decoded, Decoder, Options
from capwatch.formats import shelf
from capwatch.formats.azure_apim import MOST_ALONE, MOST_OPEN, WAIT_S

from .compare import NEAR, options_of, run_case

GATEWAY: dict[str, Any] = {"responseCode": 200, "backendResponseCode": 200, "backendTime": 1990, "clientTime": 4}
ANSWER: dict[str, Any] = {"modelName": "gpt-4o", "promptTokens": 100, "completionTokens": 20, "totalTokens": 120}


def gateway(one: str = "a", **told: Any) -> bytes:
    """A row of the gateway, from 09:15:00 on for 2 s."""
    row = {"category": "GatewayLogs", "correlationId": one, "time": "2026-03-03T09:15:00.0000001Z", "durationMs": 2000}
    return json.dumps(row | {"properties": GATEWAY | told}).encode()


def answer(one: str = "a", **told: Any) -> bytes:
    """A row of an answer, at its end."""
    row = {"category": "GatewayLlmLogs", "correlationId": one, "time": "2026-03-03T09:15:02.0000001Z"}
    return json.dumps(row | {"properties": ANSWER | told}).encode()


def explained(*lines: bytes, **fields: str) -> list[dict[str, Any]]:
    """What `explain` says of these lines."""
    return run_case("azure_apim", options_of(fields), None, b"\n".join(lines))


def outcomes(*lines: bytes) -> list[str]:
    """What became of each line."""
    return [one["outcome"] for one in explained(*lines)]


@pytest.mark.parametrize("lines", [(gateway(), answer()), (answer(), gateway())], ids=["gateway first", "answer first"])
def test_two_rows_are_one_request(lines: tuple[bytes, ...]) -> None:
    """It is printed at the later line; the other is a part of it."""
    first, last = explained(*lines)
    assert first["outcome"] == "skip"
    record = last["record"]
    assert [
        record[name] for name in ("request_id", "model", "prompt_tokens", "output_tokens", "duration_s", "outcome")
    ] == [*("a", "gpt-4o", 100, 20, 2.0, "ok")]
    assert [record["started_at"], record["finished_at"]] == [1772529300.0, 1772529302.0]


def test_rows_of_several_requests_may_lie_between() -> None:
    """Each finds its own."""
    got = explained(gateway("a"), answer("b", promptTokens=7), gateway("b"), gateway("c"), answer("a"), answer("c"))
    assert [one["record"]["prompt_tokens"] for one in got if "record" in one] == [7, 100, 100]


def test_an_answer_in_parts_counts_once() -> None:
    """Rows without tokens wait for one with them; rows after that are parts of what was told."""
    parts = (answer(promptTokens=0, completionTokens=0), answer(), answer(sequenceNumber=2), answer(promptTokens=999))
    got = explained(gateway(), *parts)
    assert [one["outcome"] for one in got] == ["skip", "skip", "record", "skip", "skip"]
    assert got[2]["record"]["prompt_tokens"] == 100


def test_a_row_that_nothing_followed_is_a_record_of_its_own_line() -> None:
    """Without tokens, or without status and duration; each at its own line at the end."""
    alone, nobodys = explained(gateway("a"), answer("b"))
    assert (alone["record"]["usage"], alone["record"]["status"]) == ("missing", 200)
    assert (nobodys["record"]["prompt_tokens"], nobodys["record"]["finished_at"]) == (100, 1772529302.0)


def test_a_failure_waits_for_nothing() -> None:
    """There will be no answer; a late one is a part of what was told."""
    assert outcomes(gateway(responseCode=504, backendResponseCode=504), answer()) == ["record", "skip"]


def decoder() -> Decoder:
    """A fresh one."""
    return Decoder(shelf()["azure_apim"], Options())


def counts(*found: Decoded) -> list[int]:
    """Lines read, and of these counted and skipped."""
    return [sum(getattr(one, name) for one in found) for name in ("read", "counted", "skipped")]


def test_a_line_is_read_when_its_request_is_told() -> None:
    """Law 1: while it waits it is none of the lines read; then one is counted and the other skipped."""
    one = decoder()
    first = one.decode(gateway(), NEAR)
    assert counts(first) == [0, 0, 0]
    assert counts(first, one.decode(answer(), NEAR)) == [2, 1, 1]


def test_waiting_ends_after_a_while() -> None:
    """Counted from the first look at the clock that saw it, since a backlog is old without being late."""
    one = decoder()
    one.decode(gateway(), NEAR)
    assert counts(one.expire(1e9), one.expire(1e9 + WAIT_S)) == [0, 0, 0]
    given_up = one.expire(1e9 + WAIT_S + 1)
    assert counts(given_up) == [1, 1, 0]
    assert list(given_up.batch.request_id) == ["a"]
    assert counts(one.decode(answer(), NEAR)) == [1, 0, 1]


def test_what_waits_outlives_a_restart() -> None:
    """As plain builtins, as the state keeps them."""
    one, again = decoder(), decoder()
    one.decode(gateway(), NEAR)
    again.load(msgspec.msgpack.decode(msgspec.msgpack.encode(one.save())))
    found = again.decode(answer(), NEAR)
    assert (counts(found), found.batch["prompt_tokens"].tolist()) == ([2, 1, 1], [100])


def test_without_the_other_category_nothing_waits_for_long() -> None:
    """After so many in vain a row is a record at once, until an answer is seen again."""
    one = decoder()
    for number in range(MOST_ALONE):
        one.decode(gateway(f"{number}"), NEAR)
    one.expire(math.inf)
    assert counts(one.decode(gateway("x"), NEAR)) == [1, 1, 0]
    one.decode(answer("y"), NEAR)
    assert counts(one.decode(gateway("z"), NEAR)) == [0, 0, 0]


def test_rows_that_wait_are_bounded() -> None:
    """Beyond that a request is told without its tokens; nothing is lost and nothing counted twice."""
    one = decoder()
    rows = b"\n".join(gateway(f"{number}") for number in range(MOST_OPEN + 2))
    assert counts(one.decode(rows, NEAR)) == [2, 2, 0]
    assert counts(one.decode(answer("0"), NEAR), one.expire(math.inf)) == [MOST_OPEN + 1, MOST_OPEN, 1]


@pytest.mark.parametrize(
    ("told", "outcome", "limiter"),
    [
        ({"responseCode": 0, "lastError": {"reason": "ClientConnectionFailure"}}, "client_abort", None),
        ({"responseCode": 200, "lastError": {"reason": "ClientConnectionFailure"}}, "client_abort", None),
        (
            {"responseCode": 429, "backendResponseCode": None, "lastError": {"reason": "RateLimitExceeded"}},
            "rate_limited",
            "gateway",
        ),
        (
            {"responseCode": 403, "backendResponseCode": None, "lastError": {"reason": "QuotaExceeded"}},
            "rate_limited",
            "gateway",
        ),
        ({"responseCode": 429, "backendResponseCode": 429}, "rate_limited", "upstream"),
        ({"responseCode": 429, "backendResponseCode": None}, "rate_limited", "gateway"),
        ({"responseCode": 503, "backendResponseCode": 503}, "upstream_error", None),
        ({"responseCode": 503, "backendResponseCode": None}, "overload", None),
        ({"responseCode": 500, "backendResponseCode": None}, "gateway_error", None),
        (
            {"responseCode": 500, "backendResponseCode": None, "lastError": {"reason": "BackendConnectionFailure"}},
            "upstream_error",
            None,
        ),
        ({"responseCode": 504, "backendResponseCode": None}, "timeout", None),
        ({"responseCode": 500, "lastError": {"reason": "Timeout"}}, "timeout", None),
        ({"responseCode": 403, "lastError": {"reason": "x", "source": "llm-content-safety"}}, "content_filter", None),
        ({"responseCode": 404, "backendResponseCode": 404}, "client_error", None),
        ({"responseCode": 200}, "ok", None),
    ],
)
def test_reasons_and_statuses(told: dict[str, Any], outcome: str, limiter: str | None) -> None:
    """The gateway's last error before the status; of a 5xx or 429 the backend's status says who made it."""
    record = explained(gateway(**told))[0]["record"]
    assert (record["outcome"], record.get("rate_limited_by")) == (outcome, limiter)


@pytest.mark.parametrize(
    ("backend", "client", "own"), [(1990, 4, 0.006), (1990, None, 0.01), (1999, 1999, None), (None, 4, None)]
)
def test_the_gateways_own_time(backend: int | None, client: int | None, own: float | None) -> None:
    """What neither side took; where both overlap it is not known."""
    assert explained(gateway(backendTime=backend, clientTime=client))[0]["record"].get("gateway_s") == own


def test_both_spellings_of_the_documents() -> None:
    """That of the wire, and that of the table where the other is not there."""
    row = answer(promptTokens=None, PromptTokens=55)
    assert explained(gateway(), row)[1]["record"]["prompt_tokens"] == 55


def test_a_row_that_comes_twice_is_one_request() -> None:
    """Whether the other came in between or not."""
    assert outcomes(gateway(), gateway(), answer(), answer()) == ["skip", "skip", "record", "skip"]


def test_paths_of_the_operator_are_of_the_row_that_tells_the_field() -> None:
    """The tenant of the gateway's row, the model of the answer's."""
    rows = gateway(productId="gold"), answer(deploymentName="blue")
    record = explained(*rows, tenant="properties.productId", model="properties.deploymentName")[1]["record"]
    assert (record["tenant"], record["model"]) == ("gold", "blue")
