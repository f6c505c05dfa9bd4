"""Calibrations live: their age, and their error and staleness against engines whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from capwatch.config.calibration import Calibration
from capwatch.config.schema import Config, Match, Pool
from capwatch.record import EngineSample
from tests.calibrate.engine import Engine, Served, poisson, serve
from tests.spine import NOW, Spine, request

SECONDS = 900.0
START = NOW - SECONDS
ENGINE = Engine()


def spine(**changed: Any) -> Spine:
    """A pipeline with one calibrated pool, whose rates are the truth of `ENGINE`."""
    told: dict[str, Any] = {
        "measured_at": NOW - 86400, "prefill": ENGINE.prefill, "decode": ENGINE.decode(32), "step": ENGINE.step,
        "sequence": ENGINE.sequence, "kv_pool_tokens": 30_000, "prompt": 1500.0, "output": 100.0,
    }  # fmt: skip
    measured = Calibration(**told | changed)
    return Spine(Config(pools=(Pool("chat", Match(model=("chat-*",)), replicas=1, measured=measured),)))


def rows(done: Sequence[Served], **changed: Any) -> list[dict[str, Any]]:
    """What a gateway with its engine's log joined tells, in the order of the ends."""
    return [
        request(
            started_at=START + one.at, finished_at=START + one.end, duration_s=one.end - one.at,
            queue_s=one.began - one.at, prefill_s=one.first - one.began, decode_s=one.end - one.first,
            prompt_tokens=int(one.prompt), output_tokens=one.output, **changed,
        )
        for one in sorted(done, key=lambda one: one.end) if one.end < SECONDS
    ]  # fmt: skip


def traffic(engine: Engine, rate: float, seed: int = 1) -> list[Served]:
    """A quarter of an hour of it."""
    return serve(engine, poisson(rate, int(rate * SECONDS), seed))


@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
def test_rates_that_hold(rate: float) -> None:
    """The busy time is predicted within 6 %, at a few and at many requests at once."""
    one = spine()
    one.feed(*rows(traffic(ENGINE, rate)))
    assert one.value("calibration_error_ratio", pool="chat") == pytest.approx(0, abs=0.06)


def test_an_engine_that_became_slower() -> None:
    """By half: a quarter to a third of its busy time is not predicted, since more run at once in it, too."""
    one = spine()
    slow = Engine(prefill=ENGINE.prefill / 1.5, step=ENGINE.step * 1.5, sequence=ENGINE.sequence * 1.5)
    one.feed(*rows(traffic(slow, 0.6)))
    assert one.value("calibration_error_ratio", pool="chat") == pytest.approx(-0.3, abs=0.06)


def test_the_age() -> None:
    """By the clock of events; a pool without calibration has none."""
    one = spine()
    one.feed(request())
    assert one.values("calibration_age_seconds") == {(("pool", "chat"),): 86400.0}
    bare = Spine(Config(pools=(Pool("chat"),)))
    bare.feed(request())
    assert bare.values("calibration_age_seconds") == {}


@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
@pytest.mark.parametrize(("slower", "expected"), [(1.0, 0.0), (1.5, -0.33)])
def test_decode_alone_where_waiting_is_not_told(rate: float, slower: float, expected: float) -> None:
    """Of a gateway that tells first tokens: right rates within 0.1, and steps that take half as long again show."""
    one = spine()
    engine = Engine(prefill=ENGINE.prefill, step=ENGINE.step * slower, sequence=ENGINE.sequence * slower)
    told: list[dict[str, Any]] = []
    for row in rows(traffic(engine, rate)):
        row["ttft_s"], row["stream"] = row.pop("queue_s") + row.pop("prefill_s"), True
        told.append({name: value for name, value in row.items() if name != "decode_s"})
    one.feed(*told)
    assert one.value("calibration_error_ratio", pool="chat") == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("missing", ["decode_s", "output_tokens"])
def test_what_is_not_told_is_not_judged(missing: str) -> None:
    """Without decode or tokens there is no error."""
    one = spine()
    one.feed(*({**row, missing: None} for row in rows(traffic(ENGINE, 0.5))))
    assert one.value("calibration_error_ratio", pool="chat") is None


@pytest.mark.parametrize(("prompt", "stale"), [(1500.0, 0.0), (900.0, 1.0), (2700.0, 1.0)])
def test_another_profile(prompt: float, stale: float) -> None:
    """Prompts as they were then, or those of another retrieval depth."""
    one = spine(prompt=prompt)
    one.feed(*rows(traffic(ENGINE, 1.2)))
    assert one.value("calibration_stale", pool="chat", reason="profile") == stale


@pytest.mark.parametrize(("tokens", "stale"), [(30_000.0, 0.0), (30_100.0, 0.0), (60_000.0, 1.0)])
def test_another_engine(tokens: float, stale: float) -> None:
    """Its KV cache has another size; where no engine tells it, nothing is known."""
    one = spine()
    one.feed(request())
    assert one.value("calibration_stale", pool="chat", reason="engine") is None
    one.pipeline.engines.hear("chat", "vllm-0", EngineSample(at=NOW, running=1.0, kv_capacity_tokens=tokens))
    one.commit()
    assert one.value("calibration_stale", pool="chat", reason="engine") == stale
