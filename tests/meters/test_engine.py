"""The engines on the page: what each last told, its state, what it counted, and sums over a pool."""

from __future__ import annotations

from capwatch.config.schema import Config, Pool
from capwatch.fleet import PATIENCE_S, RETIRE_S
from capwatch.ledger import ENGINE
from capwatch.origin import Origin
from capwatch.pipeline import Pipeline
from capwatch.record import EngineSample

from ..spine import NOW, Spine, decoded, request

CONFIG = Config(pools=(Pool("chat"),))
GAUGES = {
    "engine_running_requests": 3.0,
    "engine_waiting_requests": 2.0,
    "engine_kv_cache_utilisation_ratio": 0.5,
    "engine_kv_cache_capacity_tokens": 5120.0,
    "engine_prefix_hit_ratio": 0.25,
    "engine_prompt_tokens_per_second": 70.0,
    "engine_output_tokens_per_second": 80.0,
}
SAMPLE = EngineSample(
    at=NOW,
    running=3.0,
    waiting=2.0,
    kv_utilisation=0.5,
    kv_capacity_tokens=5120.0,
    prefix_hit_ratio=0.25,
    prompt_tokens_per_s=70.0,
    output_tokens_per_s=80.0,
)


def heard(*samples: tuple[str, EngineSample | None], **told: object) -> Spine:
    """A spine that heard samples of engines of the pool chat."""
    spine = Spine(CONFIG)
    for engine, sample in samples:
        spine.pipeline.engines.hear("chat", engine, sample, **told)  # type: ignore[arg-type]
    spine.commit()
    return spine


def test_every_field_of_a_sample_has_its_metric() -> None:
    """One sample, seven gauges, all labelled by pool and engine."""
    spine = heard(("vllm-0", SAMPLE))
    assert {name: spine.values(name) for name in GAUGES} == {
        name: {(("pool", "chat"), ("engine", "vllm-0")): value} for name, value in GAUGES.items()
    }


def test_a_field_that_was_never_told_is_absent() -> None:
    """Not zero."""
    spine = heard(("vllm-0", EngineSample(at=NOW, running=1.0)))
    assert [spine.value("engine_running_requests"), spine.value("engine_waiting_requests")] == [1.0, None]


def test_the_state_is_one_of_three() -> None:
    """1 on the one that holds, 0 on the others."""
    busy, idle = EngineSample(at=NOW, running=1.0), EngineSample(at=NOW, running=0.0)
    spine = heard(("a", busy), ("b", idle), ("c", busy), ("c", None))
    states = {engine: spine.values("engine_state", engine=engine, pool="chat") for engine in "abc"}
    assert states == {
        engine: {(("state", one),): float(one == state) for one in ("busy", "idle", "unknown")}
        for engine, state in {"a": "busy", "b": "idle", "c": "unknown"}.items()
    }


def test_withdrawn_values_leave_the_page() -> None:
    """Only what lasts, the capacity, stays; an engine that is gone has no frozen gauge."""
    spine = heard(("vllm-0", SAMPLE), ("vllm-0", None))
    assert [name for name in GAUGES if spine.value(name) is not None] == ["engine_kv_cache_capacity_tokens"]


def test_a_silent_engine_is_withdrawn_when_time_passes() -> None:
    """By the event clock, once its patience is over."""
    spine = heard(("vllm-0", SAMPLE), patience=30.0)
    spine.feed(request(), now=NOW)
    spine.tick(NOW + 29)
    assert spine.value("engine_running_requests") == 3.0
    spine.tick(NOW + 31)
    assert [spine.value("engine_running_requests"), spine.value("engine_state", state="unknown")] == [None, 1.0]


def test_preemptions_and_restarts_add_up() -> None:
    """Counts since the last sample become counters."""
    spine = heard(
        ("vllm-0", EngineSample(at=NOW, running=1.0, preemptions=2.0, starts=1.0)),
        ("vllm-0", EngineSample(at=NOW + 1, running=1.0, preemptions=3.0, starts=1.0)),
    )
    assert [spine.value("engine_preemptions_total"), spine.value("engine_restarts_total")] == [5.0, 1.0]


def test_recomputed_tokens_are_those_of_the_pool() -> None:
    """Of all its engines that tell them; absent where none does."""
    told = heard(("a", SAMPLE), ("b", SAMPLE), grown={"recomputed_tokens": 40.0})
    silent = heard(("a", SAMPLE), grown={"requests": 1.0})
    values = [one.values("recomputed_tokens_total") for one in (told, silent)]
    assert values == [{(("pool", "chat"),): 80.0}, {}]


def test_in_flight_is_the_sum_over_the_engines_that_tell_it() -> None:
    """By what each told last; an engine that tells only what runs adds nothing to what waits."""
    spine = heard(("a", SAMPLE), ("b", SAMPLE), ("c", EngineSample(at=NOW, running=1.0)))
    assert spine.values("inflight_measured", pool="chat") == {(("phase", "queue"),): 4.0, (("phase", "running"),): 7.0}


def test_logs_and_pages_feed_the_same_engines() -> None:
    """A sample in a log is heard with the name of the engine that writes it, and its index where it has one."""
    spine, log = Spine(CONFIG), decoded()
    log.samples = [(0, EngineSample(at=NOW, running=1.0)), (0, EngineSample(at=NOW, engine="1", running=2.0))]
    spine.pipeline.take(Origin("log", "chat", "vllm-0", counts=False), log, NOW)
    spine.commit()
    assert spine.values("engine_running_requests", pool="chat") == {
        (("engine", "vllm-0"),): 1.0,
        (("engine", "vllm-0/1"),): 2.0,
    }


def test_an_engine_that_is_gone_for_a_week_leaves_the_page() -> None:
    """With its counters and its name, so that rollouts never fill it; one that returns begins anew."""
    spine = heard(("pod-1", EngineSample(at=NOW, running=1.0, preemptions=2.0)), ("pod-2", SAMPLE))
    spine.feed(request(), now=NOW)
    spine.tick(NOW + RETIRE_S - 60)
    spine.pipeline.engines.hear("chat", "pod-2", EngineSample(at=NOW + RETIRE_S - 60, running=1.0))
    assert spine.value("engine_preemptions_total", engine="pod-1") == 2.0
    spine.tick(NOW + RETIRE_S + 60)
    pods = {labels[1][1] for name, labels in spine.samples() if name.startswith("capwatch_engine_")}
    assert pods == {"pod-2"}
    assert "pod-1" not in spine.totals.names.texts(ENGINE.name).values()
    spine.pipeline.engines.hear("chat", "pod-1", EngineSample(at=NOW + RETIRE_S + 60, running=1.0, preemptions=1.0))
    spine.commit()
    assert spine.value("engine_preemptions_total", engine="pod-1") == 1.0


def test_a_restart_forgets_no_replica() -> None:
    """One that was heard after the checkpoint is withdrawn in its time, though it is never heard again."""
    spine = Spine(CONFIG)
    spine.feed(request(), now=NOW)
    full = spine.pipeline.save()
    spine.pipeline.engines.hear("chat", "vllm-0", SAMPLE)
    delta, news = spine.pipeline.freeze(), spine.pipeline.news()
    spine.totals.apply(delta)
    again = Pipeline(CONFIG, spine.totals.names.copy())
    again.load(full)
    again.absorb(delta, news)
    spine.pipeline = again
    spine.tick(NOW)
    assert spine.value("engine_running_requests") == 3.0
    spine.tick(NOW + PATIENCE_S + 1)
    assert spine.value("engine_running_requests") is None
