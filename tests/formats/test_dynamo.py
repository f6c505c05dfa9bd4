"""Dynamo's log: the sample, requests written anew as text and JSON, hostile fields, engines' own messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.formats.dynamo import FORMAT, OUTCOMES
from capwatch.record import Request

from .compare import sample_differences
from .reading import decode, fate, in_two, requests, samples

STAMP = "2026-10-20T03:01:18.250000Z"
AT = 1792465278.25
HEAD = f"{STAMP}  INFO http-request: dynamo_llm::http::service::metrics: request completed"
STATISTICS = (
    "Engine 001: Avg prompt throughput: 2048.4 tokens/s, Avg generation throughput: 260.0 tokens/s, Running: 10 reqs, "
    "Waiting: 0 reqs, GPU KV cache usage: 14.2%"
)
fields = st.fixed_dictionaries(
    {
        "request_id": st.from_regex(r"[0-9a-f-]{1,36}", fullmatch=True).filter(lambda one: one != "-"),
        "model": st.sampled_from(["a/model", "m:1"]),
        "request_type": st.sampled_from(["stream", "unary"]),
        "status": st.just("success"),
        "elapsed_ms": st.integers(1000, 10**6),
        "input_tokens": st.integers(1, 10**5),
        "output_tokens": st.integers(2, 10**5),
        "ttft_ms": st.integers(1, 900),
        "uri": st.just("/v1/chat/completions"),
    }
)


def told(one: Request) -> dict[str, object]:
    """The fields of a record under the log's names, in the log's units."""
    return {
        "request_id": one.request_id,
        "model": one.model,
        "request_type": "stream" if one.stream else "unary",
        "status": "success" if one.outcome == "ok" else "error",
        "elapsed_ms": round((one.duration_s or 0) * 1000),
        "input_tokens": one.prompt_tokens,
        "output_tokens": one.output_tokens,
        "uri": one.route,
    }


def test_the_shared_sample_is_understood() -> None:
    """Every line of the shared sample has the result expected of it."""
    assert sample_differences("engines/dynamo-1.6-readable.log", "dynamo") == []


@given(one=fields, order=st.randoms(use_true_random=False), quoted=st.booleans())
def test_requests_written_anew_are_read_back(one: dict[str, object], order: object, *, quoted: bool) -> None:
    """Fields in any order, numbers with or without quotes, prose of a later version among them."""
    mark = '"' if quoted else ""
    pairs = [f"{key}={mark}{value}{mark}" for key, value in one.items()] + ["later=some words of prose", 'more="a b=c"']
    order.shuffle(pairs)  # type: ignore[attr-defined]
    (found,) = requests(FORMAT, f"{HEAD} {' '.join(pairs)}")
    assert told(found) == {key: value for key, value in one.items() if key != "ttft_ms"}
    assert found.finished_at == AT
    assert found.ttft_s == (float(str(one["ttft_ms"])) / 1000 if found.stream else None)


@given(one=fields, order=st.randoms(use_true_random=False), texts=st.booleans())
def test_json_requests_written_anew_are_read_back(one: dict[str, object], order: object, *, texts: bool) -> None:
    """The same from objects, whose numbers may be texts."""
    values = {key: str(value) if texts else value for key, value in one.items()}
    pairs = [*values.items(), ("time", STAMP), ("message", "request completed"), ("level", "INFO"), ("new", None)]
    order.shuffle(pairs)  # type: ignore[attr-defined]
    (found,) = requests(FORMAT, json.dumps(dict(pairs)))
    assert told(found) == {key: value for key, value in one.items() if key != "ttft_ms"}


@pytest.mark.parametrize("kind", [*OUTCOMES, "of_a_later_version"])
def test_the_kind_of_an_error_is_its_outcome(kind: str) -> None:
    """Unknown kinds are errors of the server."""
    (found,) = requests(FORMAT, f"{HEAD} status=error error_type={kind} elapsed_ms=5")
    assert found.outcome == OUTCOMES.get(kind, "upstream_error")


def test_what_a_client_wrote_forges_no_field() -> None:
    """A detail quotes the client, a model is whatever was asked for: neither changes what became of the request."""
    detail = "error_detail=no model 'x' status=success elapsed_ms=9 input_tokens=5"
    line = f'{HEAD} model=x status=error error_type=not_found {detail} elapsed_ms=70 model="x status=success"'
    (found,) = requests(FORMAT, line)
    assert (found.outcome, found.duration_s, found.prompt_tokens, found.model) == ("client_error", 0.07, None, None)


def test_the_id_of_the_gateway_goes_before() -> None:
    """The header is what another log knows; without it the front end's own id is all there is."""
    line = f"{HEAD} request_id=own status=success elapsed_ms=5"
    found = requests(FORMAT, line, f'{line} x_request_id="gw-1"')
    assert [one.request_id for one in found] == ["own", "gw-1"]


@pytest.mark.parametrize(
    ("message", "engine", "running"),
    [
        (STATISTICS, "1", 10),
        ("Decode batch, #running-req: 61, token usage: 0.98, gen throughput (token/s): 3.40, #queue-req: 38", None, 61),
        ("iter = 3, rank = 0, timestamp = 2026-10-20 03:01:12, num_scheduled_requests: 21, states = {}", None, 21),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_messages_of_the_engines_are_read(form: str, message: str, engine: str | None, running: int) -> None:
    """Three back ends, each in its own words behind the front end's prefix; the time is the line's."""
    text = f"{STAMP}  INFO module.function: {message}"
    line = text if form == "text" else json.dumps({"time": STAMP, "message": message, "target": "module.function"})
    assert [(one.at, one.engine, one.running) for one in samples(FORMAT, line)] == [(AT, engine, running)]


@pytest.mark.parametrize(
    "cut", range(len("request_id=a model=m status="), len("request_id=a model=m status=success elapsed_ms="))
)
def test_a_request_cut_before_its_duration_is_dropped(cut: int) -> None:
    """No half line becomes a record."""
    whole = "request_id=a model=m status=success elapsed_ms=4100 method=POST"
    assert fate(FORMAT, f"{HEAD} {whole[:cut]}") == "malformed"


def test_the_start_of_an_engine_is_told_with_its_next_sample() -> None:
    """Once, also over a saved memory."""
    start = f"{STAMP}  INFO core.init: Initializing a V1 LLM engine (v0.16.0) with config: model='m'"
    line = f"{STAMP}  INFO loggers.log: {STATISTICS}"
    assert [one.starts for _, one in in_two(FORMAT, [line, start], [line, line]).samples] == [1, None]


@given(
    line=st.sampled_from([f"{HEAD} status=success elapsed_ms=5", f"{STAMP}  INFO loggers.log: {STATISTICS}"]),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 255)), max_size=4),
)
def test_no_line_raises(line: str, changes: list[tuple[int, int]]) -> None:
    """However a line is damaged it is counted, skipped or dropped, exactly once."""
    data = bytearray(line.encode())
    for place, value in changes:
        data[place % len(data)] = value
    decoded = decode(FORMAT, data.decode("latin-1").replace("\n", ""))
    assert decoded.read == 1 == decoded.counted + decoded.skipped + decoded.dropped.total()
