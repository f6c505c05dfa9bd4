"""Ollama's log: samples, access lines written anew, tasks of the runner brought to them, broken lines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.dialect import Options
from capwatch.formats.ollama import FORMAT, NEAR_LINES

from .compare import sample_differences
from .reading import decode, fate, in_two, requests, samples

AT = datetime(2026, 8, 20, 9, 30, 31, tzinfo=UTC)
ACCESS = '[GIN] 2026/08/20 - 09:30:31 | {} | {:>12} |        10.0.0.5 | {:<7}  "{}"'
LOADED = "srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'false'"
STARTING = (
    'time=2026-08-20T09:30:20.500+00:00 level=INFO source=llama_server.go:433 msg="starting llama-server" cmd="x"'
)


def task(number: int, milliseconds: int, output: int = 20) -> list[str]:
    """The lines of a task that worked for this long, half of it on its prompt of 100 tokens."""
    head = f"id {number % 4:2} | task {number} | "
    half = f"{milliseconds / 2:10.2f} ms"
    return [
        f"slot print_timing: {head}prompt eval time = {half} /   100 tokens (    0.79 ms per token)",
        f"slot print_timing: {head}       eval time = {half} / {output:5} tokens (   20.96 ms per token)",
        f"slot print_timing: {head}      total time = {milliseconds:10.2f} ms /   120 tokens",
        f"slot      release: {head}stop processing: n_tokens = {99 + output}, truncated = 0",
    ]


def access(seconds: float, status: int = 200, path: str = "/api/chat") -> str:
    """An access line."""
    return ACCESS.format(status, f"{seconds}s", "POST", path)


def test_the_shared_sample_is_understood() -> None:
    """Every line of the shared sample has the result expected of it."""
    assert sample_differences("engines/ollama-0.32.log", "ollama") == []


@given(
    at=st.integers(0, 10**8).map(lambda seconds: AT + timedelta(seconds=seconds)),
    status=st.sampled_from([200, 400, 499, 500, 503]),
    lasted=st.sampled_from([("1m4s", 64), ("4.81s", 4.81), ("812.3ms", 0.8123), ("210.4µs", 0.0002104)]),
    path=st.sampled_from(["/api/chat", "/v1/responses", "/api/embed?x=1"]),
)
def test_access_lines_written_anew_are_read_back(
    at: datetime, status: int, lasted: tuple[str, float], path: str
) -> None:
    """Path without its query, status, duration, and the time as that of the end."""
    line = f'[GIN] {at:%Y/%m/%d - %H:%M:%S} | {status} | {lasted[0]:>13} | {"10.0.0.5":>15} | POST     "{path}"'
    (found,) = requests(FORMAT, line)
    outcomes = {200: "ok", 400: "client_error", 499: "client_abort", 500: "upstream_error", 503: "overload"}
    assert (found.finished_at, found.status, found.outcome) == (at.timestamp(), status, outcomes[status])
    assert found.duration_s == pytest.approx(lasted[1])
    assert found.route == path.partition("?")[0]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/tags"), ("HEAD", "/"), ("POST", "/api/show"), ("OPTIONS", "/api/chat")]
)
def test_only_paths_of_a_model_are_requests(method: str, path: str) -> None:
    """What asks for tags, health or a list costs nothing."""
    assert fate(FORMAT, ACCESS.format(200, "1s", method, path)) == "skip"


@given(st.lists(st.integers(100, 9000), min_size=1, max_size=6))
def test_the_tokens_of_all_tasks_come_to_their_requests(works: list[int]) -> None:
    """However the ends of neighbours are mixed, no work is lost, and none is longer than its request."""
    tasks = [line for number, work in enumerate(works) for line in task(number, work, output=10 + number)]
    lines = [access(work / 1000) for work in sorted(works)]
    found = requests(FORMAT, *tasks, *lines)
    assert sorted(one.output_tokens or 0 for one in found) == [10 + number for number in range(len(works))]
    assert all((one.prefill_s or 0) + (one.decode_s or 0) <= (one.duration_s or 0) + 1e-9 for one in found)


def test_a_task_comes_to_no_failed_shorter_or_late_request() -> None:
    """What no request can have worked is nobody's; after some lines it is forgotten."""
    found = requests(FORMAT, *task(1, 2000), access(5, 500), access(1.5), access(2.5), access(2.5))
    assert [one.output_tokens for one in found] == [None, None, 20, None]
    late = requests(FORMAT, *task(1, 2000), *["llama: more output"] * NEAR_LINES, access(5))
    assert [one.output_tokens for one in late] == [None]


def test_the_capacity_has_the_time_of_the_line_before() -> None:
    """Lines of the runner have none of their own; the start of a runner is told with it."""
    found = samples(FORMAT, STARTING, LOADED, STARTING, STARTING, LOADED)
    assert [(one.at, one.kv_capacity_tokens, one.starts) for one in found] == [
        (AT.timestamp() - 10.5, 8192, 1),
        (AT.timestamp() - 10.5, 8192, 2),
    ]


def test_the_configured_zone_counts_for_access_lines() -> None:
    """They are local; the other lines say their offset."""
    options = Options(zone=ZoneInfo("Europe/Berlin"))
    decoded = decode(FORMAT, access(1), options=options)
    assert decoded.batch.row(0).finished_at == AT.timestamp() - 7200


def test_memory_survives_as_plain_values() -> None:
    """A task that ended before the restart still comes to its request, an open one is ended after it."""
    open_, ended = task(1, 1000, output=7), task(2, 1000, output=8)
    found = in_two(FORMAT, [*open_[:2], *ended], [*open_[2:], access(1), access(1)])
    assert [found.batch.row(row).output_tokens for row in (0, 1)] == [8, 7]


@given(
    line=st.sampled_from([access(5), STARTING, LOADED, *task(1, 5)]),
    changes=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 255)), max_size=4),
    cut=st.integers(0, 60),
)
def test_no_line_raises(line: str, changes: list[tuple[int, int]], cut: int) -> None:
    """However a line is damaged it is counted, skipped or dropped, exactly once."""
    data = bytearray(line.encode()[: max(1, len(line) - cut)])
    for place, value in changes:
        data[place % len(data)] = value
    decoded = decode(FORMAT, data.decode("latin-1").replace("\n", ""))
    assert decoded.read == 1 == decoded.counted + decoded.skipped + decoded.dropped.total()
