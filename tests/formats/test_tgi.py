"""TGI's log: samples, requests written anew in all three spellings, hostile parameters, broken lines."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.formats.tgi import FORMAT

from .compare import sample_differences
from .reading import decode, fate, in_two, requests, samples

SAMPLES = ("tgi-3.3.7-text", "tgi-3.3.7-json")
STAMP = "2026-01-12T16:20:00.000000Z"
AT = 1768234800.0
START = f"{STAMP}  INFO text_generation_launcher: Starting Webserver"
BUDGET = f"{STAMP}  INFO text_generation_router_v3: backends/v3/src/lib.rs:137: Setting max batch total tokens to 1000"
END = "text_generation_router::server: router/src/server.rs:432: Success"


@dataclass(frozen=True)
class Served:
    """A request as it was: nanoseconds, tokens, and what the client sent for stop strings."""

    total: int
    queued: int
    per_token: int
    tokens: int
    stop: str

    @property
    def worked(self) -> int:
        """Nanoseconds of inference; Rust divides and rounds down."""
        return self.per_token * self.tokens + self.tokens // 2

    def parameters(self, quote: str) -> str:
        """The parameters as Rust prints them."""
        texts = json.dumps(self.stop).replace('"', quote)
        return (
            f"GenerateParameters {{ temperature: Some(0.7), max_new_tokens: Some(4096), stop: [{texts}], seed: None }}"
        )

    def times(self) -> dict[str, str]:
        """The fields that the router adds."""
        return {
            "total_time": rust(self.total),
            "validation_time": rust(1),
            "queue_time": rust(self.queued),
            "inference_time": rust(self.worked),
            "time_per_token": rust(self.worked // self.tokens),
        }


def rust(nanoseconds: int) -> str:
    """A duration as Rust prints it: the largest unit of which there is a whole one, with all decimals."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if nanoseconds >= size:
            rest = f"{nanoseconds % size:0{len(str(size)) - 1}}".rstrip("0")
            return f"{nanoseconds // size}{'.' if rest else ''}{rest}{unit}"
    return f"{nanoseconds}ns"


served = st.builds(
    Served,
    total=st.integers(1, 10**12),
    queued=st.integers(0, 10**11),
    per_token=st.integers(10**5, 10**9),
    tokens=st.integers(1, 4096),
    stop=st.sampled_from(["", "</s>", ' total_time="9s" queue_time="8s"', "}: x::server: a:1: Success", 'a="b"', "{}"]),
)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_shared_sample_is_understood(name: str) -> None:
    """Every line of the shared samples has the result expected of it."""
    assert sample_differences(f"engines/{name}.log", "tgi") == []


@given(
    one=served,
    order=st.randoms(use_true_random=False),
    span=st.sampled_from(["generate", "generate_stream", "chat_completions", "text"]),
)
def test_requests_written_anew_are_read_back(one: Served, order: object, span: str) -> None:
    """In any order of the fields and whatever stop strings: times, tokens, and a stream where the path says it."""
    times = [f'{name}="{value}"' for name, value in one.times().items()]
    order.shuffle(times)  # type: ignore[attr-defined]
    quoted = span == "chat_completions"
    parameters = one.parameters('\\"') if quoted else one.parameters('"')
    fields = f'parameters="{parameters}" {" ".join(times)}' if quoted else f"parameters={parameters} {' '.join(times)}"
    (found,) = requests(FORMAT, f"{STAMP}  INFO {span}{{{fields}}}: {END}")
    assert found.finished_at == AT
    assert found.duration_s == pytest.approx(one.total / 1e9, abs=1e-9)
    assert found.queue_s == pytest.approx(one.queued / 1e9, abs=1e-9)
    assert (found.output_tokens, found.usage, found.max_output_tokens) == (one.tokens, "estimated", 4096)
    assert found.stream is {"generate": False, "generate_stream": True}.get(span)


@given(one=served, keys=st.permutations(["timestamp", "level", "message", "target", "span", "spans", "new"]))
def test_json_is_read_by_key(one: Served, keys: list[str]) -> None:
    """The same from an object, in any order of its keys."""
    span = {**one.times(), "name": "generate", "parameters": one.parameters('"')}
    values = {
        "timestamp": STAMP,
        "level": "INFO",
        "message": "Success",
        "target": "text_generation_router::server",
        "span": span,
        "spans": [span],
        "new": None,
    }
    (found,) = requests(FORMAT, json.dumps({key: values[key] for key in keys}))
    assert (found.output_tokens, found.stream) == (one.tokens, False)
    assert found.duration_s == pytest.approx(one.total / 1e9, abs=1e-9)


@pytest.mark.parametrize("cut", range(60, 330, 3))
def test_a_request_cut_anywhere_is_dropped(cut: int) -> None:
    """No half line becomes a record."""
    one = Served(total=10**9, queued=5, per_token=10**6, tokens=5, stop="")
    times = " ".join(f'{name}="{value}"' for name, value in one.times().items())
    line = f"{STAMP}  INFO generate{{parameters={one.parameters(chr(34))} {times}}}: {END}"
    assert fate(FORMAT, line[: min(cut, len(line) - 9)]) == "malformed"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("no permits available", "overload"),
        ("Request failed during generation: Server error: out of memory", "upstream_error"),
        ("`inputs` must have less than 8192 tokens. Given: 9000", "client_error"),
    ],
)
def test_refused_requests_are_records(message: str, outcome: str) -> None:
    """They have no duration, but they were asked for."""
    place = "text_generation_router::infer: router/src/infer/mod.rs:1"
    (found,) = requests(FORMAT, f"{STAMP} ERROR generate{{parameters=x}}:generate: {place}: {message}")
    assert (found.outcome, found.duration_s, found.route) == (outcome, None, "/generate")


def test_a_start_is_told_with_the_budget() -> None:
    """Once for each start, also over a saved memory."""
    assert [one.starts for one in samples(FORMAT, START, BUDGET, BUDGET, START, START, BUDGET)] == [1, None, 2]
    assert [one.starts for _, one in in_two(FORMAT, [START], [BUDGET, BUDGET]).samples] == [1, None]


@given(
    line=st.sampled_from([BUDGET, START, f'{STAMP}  INFO generate{{parameters=G {{ a: 1 }} total_time="1s"}}: {END}']),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 255)), max_size=4),
)
def test_no_line_raises(line: str, changes: list[tuple[int, int]]) -> None:
    """However a line is damaged it is counted, skipped or dropped, exactly once."""
    data = bytearray(line.encode())
    for place, value in changes:
        data[place % len(data)] = value
    decoded = decode(FORMAT, data.decode("latin-1").replace("\n", ""))
    assert decoded.read == 1 == decoded.counted + decoded.skipped + decoded.dropped.total()
