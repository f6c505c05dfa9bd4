"""Results of load generators as requests: vLLM's `bench serve` and `bench sweep`, guidellm, AIPerf.

    vLLM bench   JSON, a list of it, or a line for each run; with --save-detailed it tells every request (`start_times`,
                 `ttfts`, `itls` in s, `input_lens`, `output_lens`), without it one point for the run
    guidellm     benchmarks.json: `benchmarks[].requests.successful[]` with times in s and `time_to_first_token_ms`
    AIPerf       profile_export.jsonl: a line for each request, `metadata.request_start_ns`, `metrics.….value`

Each run is one replica's; several replicas behind one address cannot be told apart, and are not meant.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast

import numpy as np

from capwatch.calibrate.windows import Observed
from capwatch.errors import UsageError

Document = Mapping[str, object]
MOST_BYTES: Final = 1 << 30
"""A sweep with every token's time is some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run, of which only means are told: requests/s, tokens of a request, seconds, requests at once.

    ``alone`` is whether its requests came one at a time, so that its time to the first token has no waiting in it.
    """

    rate: float
    prompt: float
    output: float
    ttft: float
    tpot: float
    running: float
    alone: bool


@dataclass(frozen=True, slots=True)
class Results:
    """What files of results tell; each run has a replica of its own."""

    tool: str
    model: str | None
    measured_at: float | None
    """s, epoch; None where it is not told."""
    observed: Observed
    points: Sequence[Point]


def read(paths: Sequence[str]) -> Results:
    """Read files of one tool.

    Raises:
        UsageError: one cannot be read, is of no tool known, or of another than the first.
    """
    runs: list[_Run] = []
    for path in paths:
        found = list(_runs(path))
        if not found:
            raise UsageError(f"{path}: is no result of vllm bench, guidellm or AIPerf (its profile_export.jsonl)")
        runs += found
    if len({run.tool for run in runs}) > 1:
        raise UsageError(
            f"{paths[-1]}: results of {' and '.join(sorted({run.tool for run in runs}))}; give those of one"
        )
    models = {run.model for run in runs if run.model}
    times = [run.at for run in runs if run.at is not None]
    return Results(
        runs[0].tool,
        models.pop() if len(models) == 1 else None,
        max(times, default=None),
        _joined([run.rows for run in runs]),
        [run.point for run in runs if run.point is not None and not run.rows],
    )


Row = tuple[float, float, float, float, float]
"""Begin, first token, end (s), prompt tokens that were computed, output tokens."""


@dataclass(frozen=True, slots=True)
class _Run:
    tool: str
    model: str | None
    at: float | None
    rows: Sequence[Row]
    point: Point | None = None


def _joined(runs: Sequence[Sequence[Row]]) -> Observed:
    table = np.array([row for rows in runs for row in rows], np.float64).reshape(-1, 5)
    replica = np.repeat(np.arange(len(runs)), [len(rows) for rows in runs])
    kept = np.isfinite(table).all(axis=1) & (table[:, 1] >= table[:, 0]) & (table[:, 2] >= table[:, 1])
    kept &= (table[:, 3] >= 0) & (table[:, 4] >= 1)
    return Observed.of(table[kept].T, replica[kept])


def _runs(path: str) -> Iterator[_Run]:
    documents = _documents(path)
    if documents and "metadata" in documents[0] and "metrics" in documents[0]:
        rows = [_aiperf(one) for one in documents if not one.get("error")]
        ends = [row[2] for row in rows if math.isfinite(row[2])]
        yield _Run("aiperf", None, max(ends, default=None), rows)
        return
    for one in documents:
        if "total_input_tokens" in one and "duration" in one:
            yield _vllm(one)
        elif "benchmarks" in one:
            yield from _guidellm(one)


def _documents(path: str) -> list[Document]:
    """The mappings in a JSON document, a list of them, or JSON lines."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        found: object = json.loads(content)
    except (ValueError, RecursionError):
        try:
            found = [json.loads(line) for line in content.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise UsageError(f"{path}: is no JSON") from None
    many = found if isinstance(found, list) else [found]
    return [cast("Document", one) for one in many if isinstance(one, dict)]


def _number(document: object, *names: str) -> float:
    """The first of these keys that holds a number; NaN where none does. A `value` in a mapping is meant by it."""
    for name in names:
        value = document.get(name) if isinstance(document, Mapping) else None
        if isinstance(value, Mapping):
            value = value.get("value")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return math.nan


def _list(document: Document, name: str) -> list[object]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _vllm(one: Document) -> _Run:
    model = one.get("model_id")
    rows: list[Row] = []
    columns = [_list(one, name) for name in ("start_times", "ttfts", "itls", "input_lens", "output_lens")]
    errors = _list(one, "errors") or [""] * len(columns[0])
    for start, ttft, gaps, prompt, output, error in zip(*columns, errors, strict=False):
        if not error and isinstance(gaps, list):
            numbers = [_number({"x": value}, "x") for value in (start, ttft, prompt, output)]
            first = numbers[0] + numbers[1]
            rows.append((numbers[0], first, first + math.fsum(map(float, gaps)), numbers[2], numbers[3]))
    return _Run("vllm bench", model if isinstance(model, str) else None, _date(one.get("date")), rows, _point(one))


def _point(one: Document) -> Point | None:
    completed, rate = _number(one, "completed"), _number(one, "request_throughput")
    prompt, output = (
        (_number(one, f"total_{name}_tokens") / completed for name in ("input", "output"))
        if completed > 0
        else (math.nan,) * 2
    )
    ttft, tpot = _number(one, "mean_ttft_ms") / 1e3, _number(one, "mean_tpot_ms") / 1e3
    most = _number(one, "max_concurrency")
    running = rate * tpot * (output - 1)
    if math.isnan(most):
        running += 1  # who comes by chance finds as many there as there are on average (Wolff 1982), and adds itself
    found = Point(rate, prompt, output, ttft, tpot, max(1.0, running), alone=most == 1)
    whole = all(math.isfinite(value) and value > 0 for value in (rate, prompt, output - 1, ttft, tpot))
    return found if whole else None


def _date(value: object) -> float | None:
    try:
        return datetime.strptime(str(value), "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _guidellm(document: Document) -> Iterator[_Run]:
    for one in _list(document, "benchmarks"):
        requests = one.get("requests") if isinstance(one, Mapping) else None
        rows = (
            [_guidellm_row(request) for request in _list(requests, "successful")]
            if isinstance(requests, Mapping)
            else []
        )
        ends = [row[2] for row in rows if math.isfinite(row[2])]
        yield _Run("guidellm", None, max(ends, default=None), rows)


def _guidellm_row(one: object) -> Row:
    begin, end = _number(one, "request_start_time", "start_time"), _number(one, "request_end_time", "end_time")
    first = _number(one, "first_token_time")
    if math.isnan(first):
        first = begin + _number(one, "time_to_first_token_ms") / 1e3
    cached = _number(one, "cached_tokens")
    prompt = _number(one, "prompt_tokens") - (0 if math.isnan(cached) else cached)
    return begin, first, end, prompt, _number(one, "output_tokens")


_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}


def _aiperf(one: Document) -> Row:
    metadata, metrics = one.get("metadata"), one.get("metrics")
    begin, end = (_number(metadata, f"request_{name}_ns") * 1e-9 for name in ("start", "end"))
    told = metrics.get("time_to_first_token") if isinstance(metrics, Mapping) else None
    unit = told.get("unit") if isinstance(told, Mapping) else None
    first = begin + _number(metrics, "time_to_first_token") * _SECONDS.get(str(unit), 1e-3)
    return begin, first, end, _number(metrics, "input_sequence_length"), _number(metrics, "output_sequence_length")
