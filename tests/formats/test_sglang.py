"""SGLang's log: samples of all eras, lines written anew with other values and in other orders, ranks, broken lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect import Field, Options
from capwatch.formats.sglang import FORMAT
from capwatch.record import EngineSample

from .compare import sample_differences
from .reading import decode, fate, in_two, requests, samples

SAMPLES = ("sglang-0.3.2", "sglang-0.4.4", "sglang-0.5.23", "sglang-0.5.23-request-json")
AT = 1791813670.0
STAMP = "2026-10-12 14:01:10"
DECODE = (
    "Decode batch, #running-req: 61, #token: 176810, token usage: 0.98, cuda graph: True, "
    "gen throughput (token/s): 2103.40, #queue-req: 38"
)
LINE = f"[{STAMP}] {DECODE}"
HEADS = ("batch. ", "batch, ", "batch [17], ")
hundredths = st.integers(0, 100).map(lambda n: n / 100)
counts = st.integers(0, 5000)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_shared_sample_is_understood(name: str) -> None:
    """Every line of the shared samples has the result expected of it."""
    assert sample_differences(f"engines/{name}.log", "sglang") == []


@given(
    head=st.sampled_from(HEADS),
    kind=st.sampled_from(["Prefill", "Decode"]),
    queue=st.tuples(counts, counts),
    usage=hundredths,
    rate=st.integers(0, 10**7).map(lambda n: n / 100),
    foreign=st.lists(st.sampled_from(["accept len: 2.31", "#new-thing: 5", "cpu graph: False", "mamba usage: 0.99"])),
    order=st.randoms(use_true_random=False),
    end=st.sampled_from(["", ", "]),
)
def test_batch_lines_written_anew_are_read_back(
    *,
    head: str,
    kind: str,
    queue: tuple[int, int],
    usage: float,
    rate: float,
    foreign: list[str],
    order: object,
    end: str,
) -> None:
    """Whatever era, values, order and further parts: the sample has the values, usage as the share that it is."""
    parts = [
        f"#running-req: {queue[0]}",
        f"#queue-req: {queue[1]}",
        f"token usage: {usage:.2f}",
        f"{'input' if kind == 'Prefill' else 'gen'} throughput (token/s): {rate:.2f}",
        *foreign,
    ]
    order.shuffle(parts)  # type: ignore[attr-defined]
    expected = EngineSample(at=AT, running=queue[0], waiting=queue[1], kv_utilisation=usage)
    setattr(expected, "prompt_tokens_per_s" if kind == "Prefill" else "output_tokens_per_s", rate)
    assert samples(FORMAT, f"[{STAMP}] {kind} {head}{', '.join(parts)}{end}") == [expected]


@pytest.mark.parametrize("cut", range(len("Decode batch"), DECODE.index("#queue-req: 38") + len("#queue-req:")))
def test_a_batch_line_cut_before_its_last_number_is_dropped(cut: int) -> None:
    """No half line becomes a sample, however many numbers it still has."""
    assert fate(FORMAT, f"[{STAMP}] {DECODE[:cut]}") == "malformed"


@pytest.mark.parametrize(
    ("ranks", "engine"),
    [
        ("", None),
        (" TP0", None),
        (" DP0", "0"),
        (" DP3 TP6 EP6", "3"),
        (" PP0 TP0", None),
        (" TP1", "skip"),
        (" PP1 TP0", "skip"),
        (" DP1 PP1", "skip"),
        (" ATTN_CP1 TP0", "skip"),
    ],
)
def test_only_data_parallel_ranks_are_engines(ranks: str, engine: str | None) -> None:
    """Tensor, pipeline and context ranks tell the same again: they are never added."""
    found = samples(FORMAT, f"[{STAMP}{ranks}] {DECODE}")
    assert [one.engine for one in found] == ([] if engine == "skip" else [engine])


def test_the_first_tensor_rank_of_a_replica_speaks_for_it() -> None:
    """With attention in parallel the replicas have tensor ranks of their own; a lower one takes over."""
    lines = [f"[{STAMP} DP1 TP{rank}] {DECODE}" for rank in (3, 2, 3, 2)]
    assert len(samples(FORMAT, *lines)) == 3


def test_starts_are_told_to_each_replica_once() -> None:
    """A server that starts again, also in a loop, starts all its replicas again."""
    start = f"[{STAMP}] server_args=ServerArgs(model_path='m')"
    lines = [f"[{STAMP} DP{rank}] {DECODE}" for rank in (0, 1, 0)]
    found = samples(FORMAT, start, *lines, start, start, *lines)
    assert [one.starts for one in found] == [1, 1, None, 2, 2, None]


def test_memory_survives_as_plain_values() -> None:
    """A reader that goes on from a saved one knows the start and who speaks."""
    start = f"[{STAMP}] server_args=ServerArgs(model_path='m')"
    first = [start, f"[{STAMP} DP0 TP0] {DECODE}", f"[{STAMP} DP1 TP2] {DECODE}", start]
    found = in_two(FORMAT, first, [f"[{STAMP} DP1 TP2] {DECODE}", f"[{STAMP} DP1 TP3] {DECODE}"])
    assert [(one.engine, one.starts) for _, one in found.samples] == [("1", 1)]


@given(
    keys=st.permutations(["timestamp", "event", "rid", "obj", "headers", "out"]),
    stamp=st.sampled_from([f"[{STAMP}] ", ""]),
    tokens=st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
)
def test_request_json_is_read_by_key(keys: list[str], stamp: str, tokens: tuple[int, int]) -> None:
    """In any order of keys, with and without the time before it; the id is the engine's response id, to join by."""
    meta = {
        "id": "chatcmpl-1",
        "finish_reason": {"type": "stop"},
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "e2e_latency": 2.5,
        "first_token_latency": 0.5,
        "future": [1],
    }
    values = {
        "timestamp": "2026-10-12T14:01:10.250000",
        "event": "request.finished",
        "rid": "other",
        "obj": {"stream": True, "text": "a prompt"},
        "headers": {"x-tenant": "acme"},
        "out": {"meta_info": meta, "text": "an answer"},
    }
    (one,) = requests(FORMAT, stamp + json.dumps({key: values[key] for key in keys}))
    assert (one.request_id, one.prompt_tokens, one.output_tokens) == ("chatcmpl-1", *tokens)
    assert (one.finished_at, one.duration_s, one.ttft_s, one.stream) == (AT + 0.25, 2.5, 0.5, True)


def test_whitelisted_headers_can_be_mapped() -> None:
    """SGLang logs the headers that the operator names; `fields:` finds the tenant there."""
    line = (
        '{"timestamp": "2026-10-12T14:01:10", "event": "request.finished", "headers": {"x-tenant": "acme"},'
        ' "out": {"meta_info": {"e2e_latency": 1.0}}}'
    )
    decoded = decode(FORMAT, line, options=Options({"tenant": Field("headers.x-tenant")}))
    assert decoded.batch.row(0).tenant == "acme"


@given(
    line=st.sampled_from([LINE, f"[{STAMP}] ReqTimeStats(rid=a, input_len=5, type=unified): queue_duration=1.00ms"]),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 255)), max_size=4),
    cut=st.integers(0, 40),
)
def test_no_line_raises(line: str, changes: list[tuple[int, int]], cut: int) -> None:
    """However a line is damaged it is counted, skipped or dropped, exactly once."""
    data = bytearray(line.encode()[: len(line) - cut])
    for place, value in changes:
        data[place % len(data)] = value
    decoded = decode(FORMAT, data.decode("latin-1").replace("\n", ""))
    assert decoded.read == 1 == decoded.counted + decoded.skipped + decoded.dropped.total()
