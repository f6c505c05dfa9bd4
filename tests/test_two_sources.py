"""Two logs tell of one request: the gateway's counts it, the engine's completes it, whatever comes between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capwatch.config.schema import Config, Pool
from capwatch.dialect import Decoder, Options
from capwatch.formats import shelf
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline

from .end_to_end.command import Page, printed
from .spine import NOW, Spine, decoded, request

CONFIG = Config(pools=(Pool("chat"),))
ENGINE = Origin("engine", "chat", "vllm-0", counts=False)
TIMES = {"queue_s": 0.5, "prefill_s": 0.25, "decode_s": 1.0, "cached_tokens": 60, "prompt_tokens": 100}
ROW = {"duration_s": 2.0, "prompt_tokens": 100, "output_tokens": 10, "stream": True, "ttft_s": 0.9}
PHASES = {"queue": 0.5, "prefill": 0.25, "decode": 1.0, "other": 0.25}


def gateway(spine: Spine, *ids: str) -> None:
    """Rows of the gateway."""
    spine.pipeline.take(Origin("gateway", "chat"), decoded(*(request(request_id=one, **ROW) for one in ids)), NOW)
    spine.commit()


def engine(spine: Spine, *ids: str) -> None:
    """Records of the engine; nothing is committed of them yet."""
    spine.pipeline.take(ENGINE, decoded(*(request(request_id=one, **TIMES) for one in ids)), NOW)


def phases(spine: Spine) -> dict[str, float]:
    """Residence in the phases of the pool, those that hold any."""
    return {labels[0][1]: value for labels, value in spine.values("phase_seconds_total", pool="chat").items() if value}


def test_the_engines_phases_reach_every_metric_of_the_request() -> None:
    """Residence by phase (law 5: it adds up to the duration), the wait by route, and tokens that were cached."""
    spine = Spine(CONFIG)
    engine(spine, "a")
    gateway(spine, "a")
    assert phases(spine) == PHASES
    assert spine.total("route_queue_seconds_sum") == 0.5
    assert [spine.total("tokens_total", kind=kind) for kind in ("prompt_computed", "prompt_cached")] == [40.0, 60.0]
    assert spine.total("requests_total") == 1.0


def stage(spine: Spine, *records: dict[str, Any], counts: bool = False) -> None:
    """What a log of the orchestrator tells."""
    spine.pipeline.take(Origin("orchestrator", "chat", counts=counts), decoded(*records), NOW)
    spine.commit()


def visits(spine: Spine) -> dict[str, float]:
    """Visits to the phases of the pool, those that saw any."""
    return {labels[0][1]: value for labels, value in spine.values("phase_visits_total", pool="chat").items() if value}


@pytest.mark.parametrize("by", ["request_id", "attempt_group"])
def test_the_orchestrators_stages_reach_the_request(by: str) -> None:
    """By the id of the request or of the trace; law 5 holds, and visits are counted for each phase."""
    spine = Spine(CONFIG)
    stage(spine, request(**{by: "a"}, retrieval_s=0.25, tool_s=0.5, tool_visits=2))
    row = request(**{by: "a"}, **ROW)
    spine.pipeline.take(Origin("gateway", "chat"), decoded(row, request(**{by: "b"}, **ROW)), NOW)
    spine.commit()
    assert phases(spine) == {"retrieval": 0.25, "tool": 0.5, "prefill": 0.15 + 0.9, "decode": 2.2}
    assert visits(spine) == {"retrieval": 1, "tool": 2, "prefill": 2, "decode": 2}
    assert spine.total("requests_total") == 2
    assert spine.total("join_ratio") == 0.5


def otlp(spine: Spine, *, counts: bool, begin: float) -> None:
    """A tool's and a model's span of the trace `t`; the tool begins ``begin`` s after `NOW` and takes half a second."""

    def at(seconds: float) -> str:
        return str(round((NOW + seconds) * 1e9))

    spans = [
        {
            "traceId": "t",
            "spanId": name,
            "startTimeUnixNano": at(start),
            "endTimeUnixNano": at(end),
            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": name}}],
        }
        for name, start, end in (("execute_tool", begin, begin + 0.5), ("chat", -2.0, 0.0))
    ]
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    found = Decoder(shelf()["otlp"], Options()).decode(line, NOW)
    spine.pipeline.take(Origin("traces", "chat", counts=counts), found, NOW)
    spine.commit()


def test_spans_complete_the_request_of_their_trace() -> None:
    """A source of traces that does not count: the tool's seconds and the model's visit are the front row's."""
    spine = Spine(CONFIG)
    otlp(spine, counts=False, begin=-1.5)
    spine.pipeline.take(Origin("front", "chat"), decoded(request(attempt_group="t", duration_s=3.0)), NOW)
    spine.commit()
    assert (phases(spine), visits(spine)) == ({"tool": 0.5, "other": 2.5}, {"tool": 1})
    assert spine.total("requests_total") == 1


@pytest.mark.parametrize(("begin", "expected"), [(-1.5, {"tool": 0.5, "other": 1.5}), (5.0, {"other": 2.0})])
def test_a_span_of_a_stage_is_never_a_request(begin: float, expected: dict[str, float]) -> None:
    """Where traces count, calls are requests; a tool inside one is its phase, one after it nobody's; law 1 holds."""
    spine = Spine(CONFIG)
    otlp(spine, counts=True, begin=begin)
    assert spine.total("requests_total") == 1
    assert phases(spine) == expected
    assert (spine.total("lines_read_total"), spine.total("lines_counted_total")) == (1, 1)


VLLM = {
    "gen_ai.request.id": {"stringValue": "chatcmpl-7ead13c1"},
    "gen_ai.usage.prompt_tokens": {"intValue": "100"},
    "gen_ai.latency.time_in_queue": {"doubleValue": 0.5},
    "gen_ai.latency.time_in_model_prefill": {"doubleValue": 0.25},
    "gen_ai.latency.time_in_model_decode": {"doubleValue": 1.0},
}
SPAN = {"traceId": "t", "spanId": "s", "attributes": [{"key": key, "value": value} for key, value in VLLM.items()]}
ENGINE_LINES = {
    "sglang": "[2026-03-03 09:14:58] ReqTimeStats(rid=7ead13c1, input_len=100, cached_input_len=60, output_len=10, "
    "attempts=1, type=unified): queue_duration=500.00ms, forward_duration=1250.00ms, entry_time=1772529298.000",
    "dynamo": "2026-03-03T09:14:59.900000Z  INFO http-request: dynamo_llm::http::service::metrics: request completed "
    "request_id=0b0f model=m endpoint=chat_completions request_type=stream status=success elapsed_ms=1750 "
    'x_request_id="7ead13c1" input_tokens=100 output_tokens=10 ttft_ms="750.00"',
    "otlp": json.dumps(
        {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN | {"startTimeUnixNano": "1772529298000000000"}]}]}]}
    ),
}
TAKEN = {
    "sglang": {"queue": 0.5, "other": 1.5},
    "dynamo": {"prefill": 0.75, "decode": 1.0, "other": 0.25},
    "otlp": PHASES,
}


@pytest.mark.parametrize("form", ENGINE_LINES)
@pytest.mark.parametrize("logged", ["7ead13c1", "chatcmpl-7ead13c1"], ids=["x-request-id", "id of the answer"])
def test_engines_that_tell_ids_complete_a_gateways_row(form: str, logged: str) -> None:
    """As they print them: the id that came with the request, or that of the answer. A vLLM's are in its spans alone."""
    spine = Spine(CONFIG)
    found = Decoder(shelf()[form], Options()).decode(ENGINE_LINES[form].encode(), NOW)
    spine.pipeline.take(Origin("engine", "chat", "engine-0", counts=False), found, NOW)
    row = request(request_id=logged, duration_s=2.0, prompt_tokens=100, output_tokens=10)
    spine.pipeline.take(Origin("gateway", "chat"), decoded(row), NOW)
    spine.commit()
    assert phases(spine) == TAKEN[form]
    assert spine.total("join_ratio") == 1


def test_a_row_that_comes_before_its_record_is_counted_as_it_is() -> None:
    """What is counted never changes afterwards."""
    spine = Spine(CONFIG)
    gateway(spine, "a")
    engine(spine, "a")
    spine.commit()
    assert phases(spine) == {"prefill": 0.9, "decode": 1.1}


@pytest.mark.parametrize("checkpointed", [True, False], ids=["checkpoint", "deltas"])
def test_records_outlive_a_restart(checkpointed: bool) -> None:
    """A daemon that is killed between the two lines joins them all the same, by its checkpoint or by later deltas."""
    spine = Spine(CONFIG)
    empty = spine.pipeline.save()
    engine(spine, "a", "b")
    delta, news, full = spine.pipeline.freeze(), spine.pipeline.news(), spine.pipeline.save()
    spine.totals.apply(delta)
    again = Pipeline(CONFIG, spine.totals.names.copy())
    if checkpointed:
        again.load(full)
    else:
        again.load(empty)
        again.absorb(delta, news)
    spine.pipeline = again
    gateway(spine, "a", "b")
    assert phases(spine) == {name: 2 * value for name, value in PHASES.items()}


def test_a_record_that_was_joined_before_a_restart_is_not_joined_again() -> None:
    """The deltas tell of both: that it was held, and that it is gone."""
    spine = Spine(CONFIG)
    engine(spine, "a")
    spine.pipeline.take(Origin("gateway", "chat"), decoded(request(request_id="a", **ROW)), NOW)
    delta, news = spine.pipeline.freeze(), spine.pipeline.news()
    again = Pipeline(CONFIG, spine.totals.names.copy())
    again.absorb(delta, news)
    assert again.save()["told"] == []


def test_replay_joins_the_files_of_two_sources(tmp_path: Path) -> None:
    """Whatever the order of their names: records come first, and over ten minutes none is missed."""
    at = [NOW + 7 * n for n in range(100)]
    write(
        tmp_path / "a-gateway.jsonl",
        [request(request_id=str(n), finished_at=t + 0.02, **ROW) for n, t in enumerate(at)],
    )
    write(tmp_path / "z-engine.jsonl", [request(request_id=str(n), finished_at=t, **TIMES) for n, t in enumerate(at)])
    (tmp_path / "c.yml").write_text(f"""
sources:
  - {{name: gateway, path: "{tmp_path}/a-*", format: jsonl, pool: chat}}
  - {{name: engine, path: "{tmp_path}/z-*", format: jsonl, pool: chat, role: times}}
pools: [{{name: chat}}]
""")
    page = Page(printed("replay", "--config.file", tmp_path / "c.yml", cwd=tmp_path))
    found = {name: page.value("phase_seconds_total", pool="chat", phase=name) for name in PHASES}
    assert found == pytest.approx({name: 100 * value for name, value in PHASES.items()})
    assert [page.value(name, pool="chat") for name in ("join_ratio", "coverage_ratio")] == [1.0, 1.0]
    assert page.value("requests_total") == 100.0


def write(path: Path, records: list[dict[str, Any]]) -> None:
    """Lines of the format `jsonl`."""
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
