"""Results of load generators in the shapes that they write, made of an engine whose rates are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capwatch.calibrate import results
from capwatch.calibrate.fit import fit, fit_points
from capwatch.errors import CapwatchError, UsageError

from .engine import Engine, Served, poisson, serve

ENGINE = Engine()
START = 1_790_000_000.0


def runs(detailed: bool = True) -> list[dict[str, Any]]:
    """A sweep of vLLM's over the number of workers."""
    return [_vllm(serve(ENGINE, poisson(1, 60 + 20 * most, most), most), most, detailed) for most in (1, 4, 8, 16, 32)]


def _vllm(done: Sequence[Served], most: int, detailed: bool) -> dict[str, Any]:
    """One run of `vllm bench serve --save-result`, with --save-detailed or without."""
    seconds = max(one.end for one in done) - min(one.at for one in done)
    inner = [one for one in done if one.output > 1]
    found: dict[str, Any] = {
        "date": "20260921-140640", "endpoint_type": "vllm", "backend": "vllm", "label": None, "model_id": "chat-70b",
        "tokenizer_id": "chat-70b", "num_prompts": len(done), "request_rate": "inf", "burstiness": 1.0,
        "max_concurrency": most, "duration": seconds, "completed": len(done), "failed": 0,
        "total_input_tokens": int(sum(one.prompt for one in done)),
        "total_output_tokens": sum(one.output for one in done),
        "request_throughput": len(done) / seconds, "request_goodput": None,
        "output_throughput": sum(one.output for one in done) / seconds,
        "mean_ttft_ms": 1e3 * float(np.mean([one.first - one.at for one in done])),
        "mean_tpot_ms": 1e3 * sum(one.end - one.first for one in inner) / sum(one.output - 1 for one in inner),
    }  # fmt: skip
    if detailed:
        found |= {
            "input_lens": [int(one.prompt) for one in done],
            "output_lens": [one.output for one in done],
            "ttfts": [one.first - one.at for one in done],
            "itls": [[(one.end - one.first) / max(one.output - 1, 1)] * (one.output - 1) for one in done],
            "start_times": [5000.0 + one.at for one in done],
            "generated_texts": ["…"] * len(done),
            "errors": [""] * len(done),
        }
    return found


def guidellm() -> dict[str, Any]:
    """`benchmarks.json`: each benchmark with its successful requests."""
    benchmarks = []
    for most in (1, 8, 32):
        requests = [
            {
                "type_": "generative_request_stats", "request_id": str(number),
                "request_start_time": START + one.at, "request_end_time": START + one.end,
                "time_to_first_token_ms": 1e3 * (one.first - one.at), "prompt_tokens": int(one.prompt),
                "cached_tokens": None, "output_tokens": one.output,
            }
            for number, one in enumerate(serve(ENGINE, poisson(1, 300, most), most))
        ]  # fmt: skip
        benchmarks.append({"type_": "generative_benchmark", "requests": {"successful": requests, "errored": []}})
    return {"metadata": {"version": 1}, "benchmarks": benchmarks}


def aiperf() -> list[dict[str, Any]]:
    """`profile_export.jsonl`: a record for each request, one of which failed."""
    records: list[dict[str, Any]] = [
        {
            "metadata": {
                "session_num": number, "request_start_ns": int((START + one.at) * 1e9),
                "request_end_ns": int((START + one.end) * 1e9), "benchmark_phase": "profiling", "was_cancelled": False,
            },
            "metrics": {
                "time_to_first_token": {"value": 1e3 * (one.first - one.at), "unit": "ms"},
                "request_latency": {"value": 1e3 * (one.end - one.at), "unit": "ms"},
                "input_sequence_length": {"value": int(one.prompt), "unit": "tokens"},
                "output_sequence_length": {"value": one.output, "unit": "tokens"},
            },
            "error": None,
        }
        for number, one in enumerate(serve(ENGINE, poisson(1.3, 600, 11)))
    ]  # fmt: skip
    failed = {"metadata": records[0]["metadata"], "metrics": {}, "error": {"code": 500, "type": "HTTPError"}}
    return [*records, failed]


def written(path: Path, content: object, *, lines: bool = False) -> str:
    """A file of JSON, or of JSON lines."""
    parts = content if lines and isinstance(content, list) else [content]
    path.write_text("".join(f"{json.dumps(part)}\n" for part in parts))
    return str(path)


def check(found: results.Results) -> None:
    """Both rates within 3 %."""
    made = fit(found.observed)
    prefill, decode = made.prefill(), made.decode(8)
    assert prefill is not None
    assert decode is not None
    assert prefill.value == pytest.approx(ENGINE.prefill, rel=0.03)
    assert decode.value == pytest.approx(ENGINE.decode(8), rel=0.03)


@pytest.mark.parametrize("shape", ["list", "lines", "files"])
def test_vllm_with_single_requests(shape: str, tmp_path: Path) -> None:
    """A sweep's summary (a list), an appended file (lines) or one file a run: the same."""
    paths = (
        [written(tmp_path / f"{number}.json", one) for number, one in enumerate(runs())]
        if shape == "files"
        else [written(tmp_path / "runs.json", runs(), lines=shape == "lines")]
    )
    found = results.read(paths)
    assert (found.tool, found.model, len(found.points)) == ("vllm bench", "chat-70b", 0)
    assert found.measured_at == 1789999600.0
    check(found)


def test_vllm_with_means_alone(tmp_path: Path) -> None:
    """Without --save-detailed a run is one point; rates come out within 5 %."""
    found = results.read([written(tmp_path / "summary.json", runs(detailed=False))])
    assert len(found.points) == 5
    made = fit_points(found.points)
    prefill, decode = made.prefill(), made.decode(16)
    assert prefill is not None
    assert decode is not None
    assert prefill.value == pytest.approx(ENGINE.prefill, rel=0.05)
    assert decode.value == pytest.approx(ENGINE.decode(16), rel=0.05)


def test_means_that_do_not_tell_are_refused(tmp_path: Path) -> None:
    """Two runs, and none with one request at a time."""
    found = results.read([written(tmp_path / "summary.json", runs(detailed=False)[1:3])])
    with pytest.raises(CapwatchError, match="one of them at --max-concurrency 1; or run them with --save-detailed"):
        fit_points(found.points)


def test_guidellm(tmp_path: Path) -> None:
    """Each benchmark is a run of its own, whatever its times."""
    found = results.read([written(tmp_path / "benchmarks.json", guidellm())])
    assert (found.tool, len(found.observed.first)) == ("guidellm", 900)
    assert set(found.observed.replica.tolist()) == {0, 1, 2}
    check(found)


def test_aiperf(tmp_path: Path) -> None:
    """A record that failed is left out."""
    found = results.read([written(tmp_path / "profile_export.jsonl", aiperf(), lines=True)])
    assert (found.tool, len(found.observed.first)) == ("aiperf", 600)
    check(found)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is no result of"), ("{}", "is no result of"), ("[1, 2]", "is no result of"), ("not json", "is no JSON"),
        ('{"benchmarks": []}', "is no result of"), ("[" * 100_000, "is no JSON"),
    ],
)  # fmt: skip
def test_what_is_no_result(content: str, said: str, tmp_path: Path) -> None:
    """One line that names the file."""
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match=rf"x\.json: {said}"):
        results.read([str(tmp_path / "x.json")])


def test_hostile_numbers_are_left_out(tmp_path: Path) -> None:
    """NaN, texts, negative and missing numbers cost their request alone."""
    made = guidellm()
    hostile: list[object] = [float("nan"), "1", -5, None, [], True]
    for number, value in enumerate(hostile):
        made["benchmarks"][0]["requests"]["successful"][number]["prompt_tokens"] = value
    made["benchmarks"][0]["requests"]["successful"].append(7)
    found = results.read([written(tmp_path / "benchmarks.json", made)])
    assert len(found.observed.first) == 894


def test_results_of_two_tools_are_refused(tmp_path: Path) -> None:
    """Their runs are not comparable."""
    paths = [written(tmp_path / "a.json", guidellm()), written(tmp_path / "b.json", runs()[0])]
    with pytest.raises(UsageError, match="results of guidellm and vllm bench; give those of one"):
        results.read(paths)
