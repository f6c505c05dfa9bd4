"""vLLM's log: samples of all eras, lines written anew with other values, broken lines, memory between lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import accumulate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect import Decoder, Options
from capwatch.formats.vllm import FORMAT
from capwatch.record import EngineSample

from .compare import sample, sample_differences

AT = datetime(2026, 3, 2, 8, 31, 10, tzinfo=UTC)
NEAR = AT.timestamp() + 60
MESSAGE = (
    "Engine 000: Avg prompt throughput: 410.2 tokens/s, Avg generation throughput: 201.0 tokens/s, Running: 8 reqs, "
    "Waiting: 2 reqs, GPU KV cache usage: 11.9%, Prefix cache hit rate: 5.5%"
)
PREEMPTED = "Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because … total_num_cumulative_preemption="
LINE = f"INFO 03-02 08:31:10 [loggers.py:87] {MESSAGE}"

SAMPLES = (
    "engines/vllm-v1-0.8.5.log",
    "engines/vllm-v1-0.16-ansi.log",
    "engines/vllm-v1-0.32.log",
    "engines/vllm-v1-0.32-json.log",
    "captured/vllm-0.32-calm/engine.log",
)

PREFIXES = {
    "glog": "INFO {:%m-%d %H:%M:%S} loggers.py:87] ",
    "bracket": "INFO {:%m-%d %H:%M:%S} [loggers.py:87] ",
    "operator": "[blue] INFO {:%m-%d %H:%M:%S} [loggers.py:87] ",
    "worker": "\x1b[1;36m(VllmWorker rank=3 pid=9)\x1b[0;0m INFO {:%m-%d %H:%M:%S} [loggers.py:87] ",
    "process": "\x1b[1;36m(APIServer pid=9)\x1b[0;0m INFO {:%m-%d %H:%M:%S} [loggers.py:87] ",
    "colours": "\x1b[0;36m(APIServer pid=9)\x1b[0;0m \x1b[32mINFO\x1b[0m "
    "\x1b[90m{:%m-%d %H:%M:%S}\x1b[0m \x1b[90m[loggers.py:9]\x1b[0m ",
    "plain": "(APIServer pid=9) DEBUG {:%m-%d %H:%M:%S} [v1/metrics/loggers.py:366] ",
}
tenths = st.integers(0, 99_999).map(lambda n: n / 10)
percent = st.integers(0, 1000).map(lambda n: n / 10)
counts = st.integers(0, 5000)


def read(*lines: str, near: float = NEAR, options: Options | None = None) -> list[EngineSample]:
    """The samples of some lines."""
    decoded = Decoder(FORMAT, options or Options()).decode("\n".join(lines).encode(), near)
    return [one for _, one in decoded.samples]


def fate(line: str) -> str:
    """What becomes of a line that is no record."""
    decoded = Decoder(FORMAT, Options()).decode(line.encode(), NEAR)
    assert decoded.samples == []
    return decoded.fates[0][0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_shared_sample_is_understood(name: str) -> None:
    """Every line of the shared samples has the result expected of it."""
    assert sample_differences(name, "vllm") == []


@given(
    prefix=st.sampled_from(sorted(PREFIXES)),
    at=st.integers(0, 364 * 86_400).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s)),
    engine=st.integers(0, 40),
    rates=st.tuples(tenths, tenths),
    queue=st.tuples(counts, counts),
    usage=percent,
    hits=st.none() | percent,
    foreign=st.lists(
        st.sampled_from(["Deferred: 2 reqs", "Corrupted: 0 reqs", "KV fetch: 1 waiting to start, 1 in progress"])
    ),
    device=st.sampled_from(["GPU", "CPU", "TPU", "XPU"]),
)
def test_v1_statistics_written_anew_are_read_back(
    *,
    prefix: str,
    at: datetime,
    engine: int,
    rates: tuple[float, float],
    queue: tuple[int, int],
    usage: float,
    hits: float | None,
    foreign: list[str],
    device: str,
) -> None:
    """Whatever prefix, values and further parts: the sample has the values, percent as shares."""
    parts = [
        f"Avg prompt throughput: {rates[0]} tokens/s",
        f"Avg generation throughput: {rates[1]} tokens/s",
        f"Running: {queue[0]} reqs",
        f"Waiting: {queue[1]} reqs",
        *foreign,
        f"{device} KV cache usage: {usage}%",
        *([] if hits is None else [f"Prefix cache hit rate: {hits}%"]),
        "External prefix cache hit rate: 3.8%",
    ]
    line = PREFIXES[prefix].format(at) + f"Engine {engine:03}: " + ", ".join(parts)
    assert read(line, near=at.timestamp() + 3600) == [
        EngineSample(
            at=at.timestamp(),
            engine=str(engine),
            running=queue[0],
            waiting=queue[1],
            kv_utilisation=usage / 100,
            prompt_tokens_per_s=rates[0],
            output_tokens_per_s=rates[1],
            prefix_hit_ratio=None if hits is None else hits / 100,
        )
    ]


@given(
    keys=st.permutations(["asctime", "levelname", "name", "processName", "process", "message", "taskName"]),
    around=st.sampled_from(["", "(APIServer pid=9) ", "\x1b[1;36m(APIServer pid=9)\x1b[0;0m "]),
    running=counts,
)
def test_json_keys_may_come_in_any_order_and_behind_a_process(keys: list[str], around: str, running: int) -> None:
    """JSON lines are read by key, with keys of no interest among them, and with a process prefix before them."""
    values = {
        "asctime": "2026-03-02 08:31:10,400",
        "levelname": "INFO",
        "name": "vllm.v1.metrics.loggers",
        "processName": "MainProcess",
        "process": 31,
        "message": MESSAGE.replace("Running: 8", f"Running: {running}"),
        "taskName": None,
    }
    found = read(around + json.dumps({key: values[key] for key in keys}))
    assert [(one.at, one.running) for one in found] == [(AT.timestamp() + 0.4, running)]


@pytest.mark.parametrize("cut", range(len("Engine 000: A"), len(MESSAGE) - len(", Prefix cache hit rate: 5.5%")))
def test_statistics_cut_anywhere_before_the_kv_cache_are_dropped(cut: int) -> None:
    """No half line becomes a sample: numbers that lost digits would be believed."""
    assert fate(LINE[: len(LINE) - len(MESSAGE) + cut]) == "malformed"


@pytest.mark.parametrize(
    "line",
    [
        "INFO 03-02 08:31:10 [loggers.py:9] Engine 000: MFU: 212.4 TF/s/device 1890.7 GB/s/device",
        "INFO 03-02 08:31:10 [loggers.py:9] Engine 000: Iteration(18231): 1 context request, GPU KV cache usage: 33.0%",
        "INFO 03-02 08:31:10 [metrics.py:9] SpecDecoding metrics: Draft acceptance rate: 61.0%, Accepted: 40 tokens",
        "INFO 03-02 08:31:10 [metrics.py:9] KV Transfer metrics: Num successful transfers=41, Avg xfer time (ms)=12.4",
        'INFO:     10.0.0.9:40112 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        "[rank0]:[W1130 15:13:40.947614280 utils.cpp:68] Warning: something of a native library",
        "Traceback (most recent call last):",
        '  File "core.py", line 1, in run',
        "Capturing CUDA graph shapes: 100%|██████████| 35/35 [00:20<00:00]",
        '{"role": "user"',
    ],
)
def test_foreign_lines_are_skipped(line: str) -> None:
    """Sibling statistics, access lines, tracebacks and other programs' output are no errors of the log."""
    assert fate(line) == "skip"


@pytest.mark.parametrize("file", ["logger.py", "request_logger.py", "entrypoints/logger.py"])
def test_what_a_client_wrote_is_not_believed(file: str) -> None:
    """A prompt of several lines is logged under full prefixes; statistics and starts in it are invented."""
    prefix = f"INFO 03-02 08:31:10 [{file}:39] "
    found = read(prefix + MESSAGE, prefix + "vLLM API server version 9.9.9", LINE)
    assert [(one.running, one.starts) for one in found] == [(8, None)]


@pytest.mark.parametrize(
    ("process", "engine"),
    [
        ("EngineCore_DP1", "1"),
        ("EngineCore_12", "12"),
        ("Worker_DP0_TP1", "0"),
        ("EngineCore", None),
        ("Worker_TP1", None),
    ],
)
def test_the_capacity_is_that_of_the_engine_in_the_process_name(process: str, engine: str | None) -> None:
    """Data-parallel ranks are engines, tensor ranks are not."""
    line = f"({process} pid=7) INFO 03-02 08:31:10 [kv_cache_utils.py:9] GPU KV cache size: 65,536 tokens"
    assert [(one.engine, one.kv_capacity_tokens) for one in read(line)] == [(engine, 65536)]


def test_the_configured_zone_counts() -> None:
    """Times without a zone are in the source's."""
    options = Options(zone=timezone(timedelta(hours=-7)))
    assert [one.at for one in read(LINE, options=options, near=NEAR + 7 * 3600)] == [AT.timestamp() + 7 * 3600]


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(1, 50)), min_size=1))
def test_preemptions_are_the_growth_of_each_process(events: list[tuple[int, int]]) -> None:
    """The cumulative numbers of interleaved processes give, for each, everything after its first event."""
    totals: dict[int, list[int]] = {}
    lines = []
    for pid, more in events:
        totals.setdefault(pid, []).append(more)
        lines.append(f"(Engine pid={pid}) WARNING 03-02 08:31:10 [scheduler.py:9] {PREEMPTED}{sum(totals[pid])}")
    expected = sum(1 + list(accumulate(each))[-1] - each[0] for each in totals.values())
    assert sum(one.preemptions or 0 for one in read(*lines)) == expected


def test_preemptions_start_anew_with_a_server() -> None:
    """After a new start, or a number that fell, the number itself is the growth."""
    warning = "WARNING 03-02 08:31:10 [scheduler.py:9] " + PREEMPTED
    start = "INFO 03-02 08:31:10 [api_server.py:9] vLLM API server version 0.8.5"
    found = read(warning + "101", warning + "151", warning + "3", start, warning + "1", warning + "51")
    assert [(one.preemptions, one.starts) for one in found] == [(1, None), (50, None), (3, None), (1, 1), (50, None)]


def test_a_start_is_told_once_for_each_engine() -> None:
    """Several lines speak of one start; each data-parallel engine starts for itself."""
    prefix = "{} INFO 03-02 08:31:10 [core.py:9] {}".format
    init = "Initializing a V1 LLM engine (v0.32.0) with config: model='m'"
    found = read(
        prefix("(APIServer pid=1)", "vLLM API server version 0.32.0"),
        prefix("(EngineCore_DP0 pid=2)", init),
        prefix("(EngineCore_DP0 pid=2)", "GPU KV cache size: 100 tokens"),
        prefix("(EngineCore_DP1 pid=3)", init),
        LINE,
        LINE.replace("Engine 000", "Engine 001"),
        LINE.replace("Engine 000", "Engine 001"),
    )
    assert [(one.engine, one.starts) for one in found] == [("0", 1), ("0", None), ("1", 1), ("1", None)]


def test_memory_survives_as_plain_values() -> None:
    """A reader that is saved as JSON and loaded goes on where the other stopped."""
    warning = "WARNING 03-02 08:31:10 [scheduler.py:9] " + PREEMPTED
    first = Decoder(FORMAT, Options())
    first.decode(f"{warning}51\nINFO 03-02 08:31:10 [x.py:1] # GPU blocks: 100, # CPU blocks: 5".encode(), NEAR)
    second = Decoder(FORMAT, Options())
    second.load(msgspec.json.decode(msgspec.json.encode(first.save())))
    concurrency = "INFO 03-02 08:31:10 [x.py:1] Maximum concurrency for 100 tokens per request: 8.00x"
    found = second.decode(f"{warning}101\n{concurrency}".encode(), NEAR).samples
    assert [(one.preemptions, one.kv_capacity_tokens) for _, one in found] == [(50, None), (None, 800)]


def test_preemption_counts_of_many_processes_are_bounded() -> None:
    """However many processes a log names, the memory stays small."""
    decoder = Decoder(FORMAT, Options())
    lines = [f"(Engine pid={n}) WARNING 03-02 08:31:10 [scheduler.py:9] {PREEMPTED}51" for n in range(500)]
    decoder.decode("\n".join(lines).encode(), NEAR)
    assert len(msgspec.json.encode(decoder.save())) < 2000


@given(
    line=st.sampled_from(
        [
            LINE,
            LINE.replace("[", "").replace("000", "001"),
            json.dumps({"message": MESSAGE, "asctime": "2026-03-02 08:31:10,400"}),
        ]
    ),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 300),
)
def test_no_line_raises(line: str, changes: list[tuple[int, int]], cut: int) -> None:
    """However a line is damaged it is counted, skipped or dropped, exactly once."""
    data = bytearray(line.encode())
    for place, value in changes:
        data[place % len(data)] = value
    decoded = Decoder(FORMAT, Options()).decode(bytes(data[: len(data) - cut % 40]), NEAR)
    assert decoded.read == decoded.counted + decoded.skipped + decoded.dropped.total()


def test_the_captured_capacity_is_that_of_the_run() -> None:
    """The run had 40 blocks of 128 tokens."""
    data = sample("captured/vllm-0.32-calm/engine.log").read_bytes()
    found = [one.kv_capacity_tokens for _, one in Decoder(FORMAT, Options()).decode(data, 1796060000.0).samples]
    assert [one for one in found if one is not None] == [5120]
