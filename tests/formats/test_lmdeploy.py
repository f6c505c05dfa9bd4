"""LMDeploy's log: the sample, the three shapes written anew, sessions, restarts, broken lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.formats.lmdeploy import FORMAT, MOST_SESSIONS
from capwatch.record import EngineSample

from .compare import sample_differences
from .reading import decode, fate, in_two, requests, samples

AT = 1789041640.0
STAMP = "2026-09-10 12:00:40"
START = f"{STAMP},000 - lmdeploy - INFO - async_engine.py:130 - input backend=turbomind"
LOG = f"{STAMP},250 - lmdeploy - INFO - async_engine.py:1 - "
STATS = (
    f"[{STAMP} DP0] Avg thr (in/out): 10.0 / 1.2 tokens/s, Server (succeeded/failed/routed/waiting): {{}} / 0 / 1 / 0, "
    "Engine (running/waiting): 1 / 0, KV cache: 17.5%, "
)
tenths = st.integers(0, 99_999).map(lambda n: n / 10)
percent = st.integers(0, 1000).map(lambda n: n / 10)
counts = st.integers(0, 5000)


def vllms(rates: tuple[float, float], queue: tuple[int, int, int], kv: float, hits: float | None) -> list[str]:
    """The shape of 2025: one number of waiting requests."""
    return [
        f"Avg prompt throughput: {rates[0]} tokens/s",
        f"Avg generation throughput: {rates[1]} tokens/s",
        "Finished: 5 reqs",
        "Unfinished: 9 reqs",
        f"Running: {queue[0]} reqs",
        f"Waiting: {queue[1] + queue[2]} reqs",
        f"GPU KV cache usage: {kv}%",
        *([] if hits is None else [f"Prefix cache hit rate: {hits}%"]),
    ]


def early(rates: tuple[float, float], queue: tuple[int, int, int], kv: float, hits: float | None) -> list[str]:
    """The shape of February 2026."""
    return [
        f"Avg thr (in/out): {rates[0]} / {rates[1]} tokens/s",
        f"API server (completed/routed/waiting): 5 / 9 / {queue[1]}",
        f"Engine (running/waiting): {queue[0]} / {queue[2]}",
        f"KV cache: {kv}%",
        *([] if hits is None else [f"Prefix cache hit rate: {hits}%"]),
        "",
    ]


def late(rates: tuple[float, float], queue: tuple[int, int, int], kv: float, hits: float | None) -> list[str]:
    """The shape since March 2026."""
    parts = early(rates, queue, kv, hits)
    parts[1] = f"Server (succeeded/failed/routed/waiting): 5 / 0 / 9 / {queue[1]}"
    return [*parts[:-1], "SpecDecoding metrics: Draft acceptance rate: 61.20%", "Accepted: 5210 tokens", ""]


def test_the_shared_sample_is_understood() -> None:
    """Every line of the shared sample has the result expected of it."""
    assert sample_differences("engines/lmdeploy-0.18.log", "lmdeploy") == []


@given(
    shape=st.sampled_from([vllms, early, late]),
    rank=st.integers(0, 99),
    rates=st.tuples(tenths, tenths),
    queue=st.tuples(counts, counts, counts),
    kv=percent,
    hits=st.none() | percent,
)
def test_statistics_written_anew_are_read_back(
    *, shape: object, rank: int, rates: tuple[float, float], queue: tuple[int, int, int], kv: float, hits: float | None
) -> None:
    """In each of the three shapes: waiting is that of server and engine, percent becomes a share."""
    body = ", ".join(shape(rates, queue, kv, hits))  # type: ignore[operator]
    (found,) = samples(FORMAT, f"[{STAMP} DP{rank}] {body}")
    expected = EngineSample(
        at=AT,
        engine=str(rank),
        running=queue[0],
        waiting=queue[1] + queue[2],
        kv_utilisation=kv / 100,
        prompt_tokens_per_s=rates[0],
        output_tokens_per_s=rates[1],
        prefix_hit_ratio=None if hits is None else hits / 100,
    )
    assert found == expected


@pytest.mark.parametrize("shape", [vllms, early, late])
def test_statistics_cut_before_the_kv_share_are_dropped(shape: object) -> None:
    """No half line becomes a sample."""
    body = ", ".join(shape((10.0, 1.2), (1, 2, 3), 17.5, None))  # type: ignore[operator]
    kv = body.index("17.5%") + len("17.5")
    fates = {fate(FORMAT, f"[{STAMP} DP0] {body[:cut]}") for cut in range(len("Avg prompt throughput: "), kv + 1)}
    assert fates == {"malformed"}


def test_a_session_has_its_begin_and_its_cap() -> None:
    """Where both lines are in the log; a session number is no id that others know."""
    begun = LOG.replace(",250", ",000") + "session=7, input_tokens=812, max_new_tokens=512, prep=True"
    ended = LOG + 'session 7 finished, reason "stop", input_tokens 812, output_tokens 143'
    (whole, half) = requests(FORMAT, begun, ended, ended)
    assert (whole.duration_s, whole.max_output_tokens, whole.prompt_tokens, whole.output_tokens) == (
        0.25,
        512,
        812,
        143,
    )
    assert (half.duration_s, half.max_output_tokens, half.request_id) == (None, None, None)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("stop", "ok"), ("length", "ok"), ("abort", "client_abort"), ("error", "upstream_error"), ("new_reason", "ok")],
)
def test_the_reason_of_an_end_is_its_outcome(reason: str, outcome: str) -> None:
    """Reasons of a later version are ends as they should be."""
    line = LOG + f'session 7 finished, reason "{reason}", input_tokens 1, output_tokens 2'
    assert [one.outcome for one in requests(FORMAT, line)] == [outcome]


def test_a_restart_is_seen_by_its_line_or_by_totals_that_fall() -> None:
    """And then once: both logs of a server tell it, each in its own way."""
    found = samples(FORMAT, *map(STATS.format, (3, 9, 1, 2)), START, STATS.format(1))
    assert [one.starts for one in found] == [None, None, 1, None, 1]


def test_memory_survives_as_plain_values() -> None:
    """Open sessions, totals and starts are remembered."""
    begun = LOG.replace(",250", ",000") + "session=7, input_tokens=812, max_new_tokens=512, prep=True"
    ended = LOG + 'session 7 finished, reason "stop", input_tokens 812, output_tokens 143'
    found = in_two(FORMAT, [STATS.format(9), begun], [ended, STATS.format(1)])
    assert found.batch.row(0).duration_s == 0.25
    assert [one.starts for _, one in found.samples] == [1]


def test_open_sessions_are_bounded() -> None:
    """However many never end, the memory stays small."""
    lines = [LOG + f"session={n}, input_tokens=1, max_new_tokens=1, prep=True" for n in range(MOST_SESSIONS + 50)]
    ended = LOG + 'session {} finished, reason "stop", input_tokens 812, output_tokens 143'
    found = requests(FORMAT, *lines, ended.format(49), ended.format(50))
    assert [one.max_output_tokens for one in found] == [None, 1]


@given(
    line=st.sampled_from([STATS.format(1), START, LOG + 'session 7 finished, reason "stop", input_tokens 8']),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 255)), max_size=4),
)
def test_no_line_raises(line: str, changes: list[tuple[int, int]]) -> None:
    """However a line is damaged it is counted, skipped or dropped, exactly once."""
    data = bytearray(line.encode())
    for place, value in changes:
        data[place % len(data)] = value
    decoded = decode(FORMAT, data.decode("latin-1").replace("\n", ""))
    assert decoded.read == 1 == decoded.counted + decoded.skipped + decoded.dropped.total()
