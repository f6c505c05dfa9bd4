"""TensorRT-LLM's log and statistics: samples, iterations written anew, ranks, restarts, broken lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.formats.trtllm import FORMAT
from capwatch.record import EngineSample

from .compare import sample_differences
from .reading import decode, fate, in_two, samples

AT = datetime(2026, 4, 20, 5, 11, tzinfo=UTC)
SAMPLES = ("trtllm-1.x-iterlog", "trtllm-1.x-metrics-json")
LINE = (
    "[04/20/2026-05:11:00] [TRT-LLM] [RANK 0] [I] iter = {}, global_rank = {}, rank = 0, num_scheduled_requests = 21, "
    "kv_cache_util = 0.412, timestamp = 2026-04-20 05:11:00, states = {{'num_ctx_requests': 3, 'b': 1}}"
)
ALLOCATED = "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 1.00 GiB for max tokens in paged KV cache (640)."
counts = st.integers(0, 10**6)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_shared_sample_is_understood(name: str) -> None:
    """Every line of the shared samples has the result expected of it."""
    assert sample_differences(f"engines/{name}.log", "trtllm") == []


@given(
    prefix=st.sampled_from(
        ["[04/20/2026-05:11:00] [TRT-LLM] [I] ", "3: [04/20/2026-05:11:00] [TRT-LLM] [RANK 0] [I] "]
    ),
    running=counts,
    share=st.none() | st.integers(0, 1000).map(lambda n: n / 1000),
    between=st.sampled_from([" = ", ": "]),
    later=st.integers(0, 10**7),
    order=st.randoms(use_true_random=False),
)
def test_iterations_written_anew_are_read_back(
    *, prefix: str, running: int, share: float | None, between: str, later: int, order: object
) -> None:
    """By name, in any order and either spelling; a KV share that is not there is absent."""
    at = AT + timedelta(seconds=later)
    parts = [
        "iter = 7",
        "global_rank = 0",
        f"num_scheduled_requests{between}{running}",
        f"kv_cache_util{between}{'N/A' if share is None else f'{share:.3f}'}",
        f"timestamp = {at:%Y-%m-%d %H:%M:%S}",
        "prev_device_step_time = N/A",
        "states = {'num_ctx_requests': 3, 'iter': 9}",
    ]
    tail = parts[1:]
    order.shuffle(tail)  # type: ignore[attr-defined]
    expected = EngineSample(at=at.timestamp(), running=running, kv_utilisation=share)
    assert samples(FORMAT, prefix + ", ".join([parts[0], *tail])) == [expected]


@given(st.lists(st.tuples(counts, counts, st.integers(0, 100)), min_size=1, max_size=4))
def test_a_poll_has_a_sample_for_each_iteration(iterations: list[tuple[int, int, int]]) -> None:
    """Active and queued requests, used of all blocks, and the capacity in tokens."""
    poll = [
        {
            "timestamp": (AT + timedelta(milliseconds=n)).strftime("%m-%d-%Y %H:%M:%S.%f"),
            "iter": n + 1,
            "numActiveRequests": active,
            "numQueuedRequests": queued,
            "kvCacheStats": {"usedNumBlocks": used, "maxNumBlocks": 100, "tokensPerBlock": 64},
        }
        for n, (active, queued, used) in enumerate(iterations)
    ]
    found = samples(FORMAT, json.dumps(poll))
    assert [(one.running, one.waiting, one.kv_utilisation) for one in found] == [
        (active, queued, used / 100) for active, queued, used in iterations
    ]
    assert {one.kv_capacity_tokens for one in found} == {6400.0}


@pytest.mark.parametrize("cut", range(LINE.index("global"), len(LINE.format(1, 0)) - 1))
def test_an_iteration_cut_anywhere_is_dropped(cut: int) -> None:
    """No half line becomes a sample."""
    assert fate(FORMAT, LINE.format(1, 0)[:cut]) == "malformed"


def test_other_ranks_repeat_the_first() -> None:
    """Tensor and pipeline ranks are never added, nor do they hide a restart."""
    found = samples(FORMAT, LINE.format(5, 0), LINE.format(5, 1), LINE.format(5, 7))
    assert len(found) == 1


def test_iterations_that_begin_anew_are_a_restart() -> None:
    """Seen with and without the line that says so, and then once."""
    start = "[04/20/2026-05:10:00] [TRT-LLM] [I] TensorRT-LLM inited."
    found = samples(FORMAT, *(LINE.format(n, 0) for n in (5, 6, 1, 2)), start, LINE.format(1, 0), LINE.format(2, 0))
    assert [one.starts for one in found] == [None, None, 1, None, 1, None]


def test_lines_without_a_time_take_that_of_the_line_before() -> None:
    """So that what is told at the start of a finished file is not of its end; before any time, that of reading."""
    found = samples(FORMAT, ALLOCATED, LINE.format(1, 0), ALLOCATED, near=AT.timestamp() + 9000)
    assert [one.at for one in found] == [AT.timestamp() + 9000, AT.timestamp(), AT.timestamp()]


def test_memory_survives_as_plain_values() -> None:
    """Iteration, clock and start are remembered."""
    found = in_two(FORMAT, [LINE.format(9, 0)], [ALLOCATED, LINE.format(2, 0)])
    assert [(one.at, one.starts) for _, one in found.samples] == [(AT.timestamp(), None), (AT.timestamp(), 1)]


@given(
    line=st.sampled_from([LINE.format(1, 0), '[{"iter": 1, "timestamp": "04-20-2026 05:11:00.25"}]', ALLOCATED]),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 255)), max_size=4),
)
def test_no_line_raises(line: str, changes: list[tuple[int, int]]) -> None:
    """However a line is damaged it is counted, skipped or dropped, exactly once."""
    data = bytearray(line.encode())
    for place, value in changes:
        data[place % len(data)] = value
    decoded = decode(FORMAT, data.decode("latin-1").replace("\n", ""))
    assert decoded.read == 1 == decoded.counted + decoded.skipped + decoded.dropped.total()
