"""llama.cpp's log: samples of all builds, tasks written anew in each build's way, broken lines, memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect import Decoder, Options
from capwatch.engines import replicas
from capwatch.formats.llamacpp import FORMAT
from capwatch.record import Request

from .compare import sample, sample_differences

NEAR = 1772530000.0
SAMPLES = (
    "engines/llamacpp-b3600.log",
    "engines/llamacpp-b4747.log",
    "engines/llamacpp-b11434.log",
    "engines/llamacpp-b11434-jsonl.log",
    "captured/llama_server_text.log",
    "captured/llama_server_jsonl.log",
    "captured/llama_server_littles_law.log",
)


@dataclass(frozen=True)
class Task:
    """A task as it was; times in hundredths of a millisecond."""

    slot: int
    prefill: int
    cached: int
    evaluated: int
    decode: int
    output: int

    @property
    def held(self) -> int:
        """Tokens in the slot at the end: the last output token is not put there."""
        return self.cached + self.evaluated + self.output - 1


tasks = st.lists(
    st.builds(
        Task,
        slot=st.integers(0, 3),
        prefill=st.integers(0, 10**6),
        cached=st.integers(0, 5000),
        evaluated=st.integers(1, 9000),
        decode=st.integers(0, 10**6),
        output=st.integers(1, 2000),
    ),
    max_size=5,
)


def timings(task: Task) -> list[str]:
    """The three timing texts that all builds share."""
    rest = "(    0.21 ms per token,  4875.33 tokens per second)"
    return [
        f"prompt eval time = {task.prefill / 100:10.2f} ms / {task.evaluated:5} tokens {rest}",
        f"       eval time = {task.decode / 100:10.2f} ms / {task.output:5} tokens {rest}",
        f"      total time = {(task.prefill + task.decode) / 100:10.2f} ms / {task.evaluated + task.output:5} tokens",
    ]


def b3600(number: int, task: Task) -> list[str]:
    """Key=value records, the release last."""
    keys = f'| tid="13" timestamp=1723881612 id_slot={task.slot} id_task={number}'
    lines = [f"INFO [           print_timings] {text} {keys} n=1" for text in timings(task)]
    return [*lines, f"INFO [            update_slots] slot released {keys} n_past={task.held} truncated=false"]


def b4747(number: int, task: Task) -> list[str]:
    """The release first, then one record of several lines."""
    head = f"id {task.slot:2} | task {number} | "
    release = f"slot      release: {head}stop processing: n_past = {task.held}, truncated = 0"
    return [f"slot launch_slot_: {head}processing task", release, f"slot print_timing: {head}", *timings(task)]


def b11434(number: int, task: Task) -> list[str]:
    """A full header on each line, the release last."""
    head = f"id {task.slot:2} | task {number} | "
    return [
        f"0.21.883.598 I slot launch_slot_: {head}processing task, is_child = 0",
        *(f"0.21.883.598 I slot print_timing: {head}{text}" for text in timings(task)),
        f"0.21.883.598 I slot print_timing: {head}   graphs reused =          6",
        f"0.21.883.598 I slot      release: {head}stop processing: n_tokens = {task.held}, truncated = 0",
    ]


def routed(number: int, task: Task) -> list[str]:
    """The same behind a router."""
    return [f"[{8000 + task.slot}] {line}" for line in b11434(number, task)]


def jsonl(number: int, task: Task) -> list[str]:
    """The same as JSON."""
    return [
        json.dumps({"type": "log", "level": "info", "time": 21883598, "msg": line.partition(" I ")[2] + "\n"})
        for line in b11434(number, task)
    ]


def read(lines: list[str]) -> list[Request]:
    """The records of some lines."""
    decoded = Decoder(FORMAT, Options()).decode("\n".join(lines).encode(), NEAR)
    return [decoded.batch.row(row) for row in range(len(decoded.batch))]


def told(one: Request) -> tuple[float | None, ...]:
    """The numbers of a record, times in hundredths of a millisecond."""
    assert one.prefill_s is not None
    assert one.decode_s is not None
    return (
        round(one.prefill_s * 1e5),
        round(one.decode_s * 1e5),
        one.output_tokens,
        one.prompt_tokens,
        one.cached_tokens,
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_a_shared_sample_is_understood(name: str) -> None:
    """Every line of the shared samples has the result expected of it."""
    assert sample_differences(name, "llamacpp") == []


@pytest.mark.parametrize("write", [b3600, b4747, b11434, routed, jsonl])
@given(made=tasks)
def test_tasks_written_anew_are_read_back(write: Callable[[int, Task], list[str]], made: list[Task]) -> None:
    """In every build's way of writing, a task gives its times, its output, and by the release its prompt."""
    found = read([line for number, task in enumerate(made) for line in write(number, task)])
    assert [told(one) for one in found] == [
        (task.prefill, task.decode, task.output, task.cached + task.evaluated, task.cached) for task in made
    ]


def test_captured_tokens_are_those_of_the_programs_own_counters() -> None:
    """Over a captured run, computed and cached prompt tokens and output are exactly what the server counted."""
    found = read(sample("captured/llama_server_text.log").read_text().splitlines())
    (page,) = replicas(sample("captured/llama_server_metrics.prom").read_text())
    cached = sum(one.cached_tokens or 0 for one in found)
    computed = sum(one.prompt_tokens or 0 for one in found) - cached
    output = sum(one.output_tokens or 0 for one in found)
    totals = [page.totals[name][0] for name in ("prompt_tokens", "prefix_hits", "output_tokens")]
    assert [computed, cached, output] == totals


def test_captured_residence_gives_what_a_sampler_saw() -> None:
    """Launch-to-release times of 150 tasks in 3.60 s are on average the 2.9 slots that a sampler saw at work."""
    found = read(sample("captured/llama_server_littles_law.log").read_text().splitlines())
    assert sum(one.duration_s or 0 for one in found) / 3.60 == pytest.approx(2.909, rel=0.01)


def test_a_release_that_was_lost_does_not_cost_the_record() -> None:
    """The next task in the slot shows that the timings were complete; only the prompt stays unknown."""
    first = Task(0, 1000, 0, 100, 2000, 10)
    found = read(b11434(1, first)[:-1] + b11434(2, first))
    assert [(one.output_tokens, one.prompt_tokens) for one in found] == [(10, None), (10, 100)]


@pytest.mark.parametrize("spoil", ["truncated = 1", "slot context shift, n_keep = 0, n_left = 8191, n_discard = 4095"])
def test_a_shifted_context_tells_nothing_of_the_prompt(spoil: str) -> None:
    """Where tokens were thrown away, the tokens held at the end are no measure of the prompt."""
    launch, *rest, release = b11434(1, Task(0, 1000, 0, 100, 2000, 10))
    if spoil.startswith("slot"):
        rest.insert(0, f"0.21.883.598 W slot   pre_decode: id  0 | task 1 | {spoil}")
    else:
        release = release.replace("truncated = 0", spoil)
    assert [(one.output_tokens, one.prompt_tokens) for one in read([launch, *rest, release])] == [(10, None)]


def test_an_uptime_that_falls_is_a_new_process() -> None:
    """Half a task of the old process does not become part of one of the new."""
    lines = b11434(1, Task(0, 1000, 0, 100, 2000, 10))
    later = [line.replace("0.21.883.598", "5.00.000.000") for line in lines[:-1]]
    assert read([*later, lines[-1]]) == []


def test_a_start_is_told_with_the_capacity() -> None:
    """The slots' line gives the KV capacity and that the server started; a unified cache is shared by its slots."""
    lines = [
        "0.00.003.688 I srv  llama_server: initializing ...",
        "0.00.020.730 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'false'",
        "0.00.020.731 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'true'",
    ]
    decoded = Decoder(FORMAT, Options()).decode("\n".join(lines).encode(), NEAR)
    assert [(one.kv_capacity_tokens, one.starts) for _, one in decoded.samples] == [(8192, 1), (2048, None)]


@pytest.mark.parametrize(
    "line",
    [
        "0.21.962.980 I slot print_timing: id  0 | task 0 | prompt eval time =      75.28 ms /   36",
        "0.21.962.980 I slot print_timing: id  0 | ta",
        "0.21.963.182 I slot      release: id  0 | task 0 | stop processing: n_tok",
        "       eval time =    3011.90 m",
        '{"type":"log","time":3861063,"le',
    ],
)
def test_what_was_cut_is_dropped(line: str) -> None:
    """Half a timing line is an error of the log."""
    decoded = Decoder(FORMAT, Options()).decode(line.encode(), NEAR)
    assert dict(decoded.dropped) == {"malformed": 1}


@given(made=tasks, place=st.integers(0, 1000))
def test_memory_survives_as_plain_values(made: list[Task], place: int) -> None:
    """A log read in two halves, with the reader saved as JSON between them, gives the same records."""
    lines = [line for number, task in enumerate(made) for line in b11434(number, task)]
    cut = place % (len(lines) + 1)
    first, second = Decoder(FORMAT, Options()), Decoder(FORMAT, Options())
    found = first.decode("\n".join(lines[:cut]).encode(), NEAR)
    second.load(msgspec.json.decode(msgspec.json.encode(first.save())))
    more = second.decode("\n".join(lines[cut:]).encode(), NEAR)
    halves = [part.batch.row(row) for part in (found, more) for row in range(len(part.batch))]
    assert halves == read(lines)


def test_open_tasks_are_bounded() -> None:
    """However many slots a log names, the memory stays small."""
    decoder = Decoder(FORMAT, Options())
    launch = "[{}] slot launch_slot_: id {} | task 1 | processing task"
    decoder.decode("\n".join(launch.format(n % 60000, n) for n in range(6000)).encode(), NEAR)
    assert len(msgspec.json.encode(decoder.save())) < 1_000_000


@given(
    made=st.builds(Task, *(st.integers(1, 50) for _ in range(6))),
    write=st.sampled_from([b3600, b4747, b11434, routed, jsonl]),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=8),
)
def test_no_line_raises(made: Task, write: Callable[[int, Task], list[str]], changes: list[tuple[int, int]]) -> None:
    """However lines are damaged each is counted, skipped or dropped, exactly once."""
    data = bytearray("\n".join(write(1, made)).encode())
    for place, value in changes:
        data[place % len(data)] = value
    decoded = Decoder(FORMAT, Options()).decode(bytes(data), NEAR)
    assert decoded.read == decoded.counted + decoded.skipped + decoded.dropped.total()
    assert decoded.read == len(bytes(data).removesuffix(b"\n").split(b"\n"))
