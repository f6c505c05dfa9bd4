"""Cold starts on the page: the newest start of each pool, phase by phase, over engines, commits and restarts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from capwatch.coldstarts import MOST
from capwatch.dialect import Decoder, Options
from capwatch.formats import shelf
from capwatch.origin import Origin
from capwatch.record import Reached

from .spine import NOW, Spine

PHASES = {"weights": 40.0, "kv_cache": 55.0, "ready": 56.0, "first_request": 70.0}


def hear(spine: Spine, engine: str, began: float, *phases: str, pool: str = "chat") -> None:
    """Let a start of an engine come to these phases."""
    starts = spine.pipeline._memory.starts
    starts.hear(pool, engine, Reached("start", 0.0, began), began + 99)
    for phase in phases:
        starts.hear(pool, engine, Reached(phase, PHASES[phase], began + PHASES[phase]), began + 99)
    spine.commit()


def shown(spine: Spine, pool: str = "chat") -> dict[str, float]:
    """What the page tells of a pool's start."""
    return {dict(labels)["phase"]: value for labels, value in spine.values("cold_start_seconds", pool=pool).items()}


def test_each_phase_is_shown_when_it_is_reached() -> None:
    """What has not been reached is absent, so that one sees where a start hangs."""
    spine = Spine()
    hear(spine, "a", NOW, "weights", "kv_cache")
    assert shown(spine) == {"weights": 40, "kv_cache": 55}
    hear(spine, "a", NOW, "ready", "first_request")
    assert shown(spine) == PHASES


def test_a_new_start_begins_with_nothing() -> None:
    """The times of the one before are not its own."""
    spine = Spine()
    hear(spine, "a", NOW, *PHASES)
    hear(spine, "a", NOW + 600)
    assert shown(spine) == {}
    hear(spine, "a", NOW + 600, "weights")
    assert shown(spine) == {"weights": 40}


@given(st.permutations([("a", 0.0), ("b", 30.0), ("c", 60.0)]))
def test_the_newest_start_of_a_pool_is_shown(order: list[tuple[str, float]]) -> None:
    """Whichever log is read first."""
    spine = Spine()
    for engine, after in order:
        hear(spine, engine, NOW + after, *(PHASES if engine != "c" else ["weights"]))
    assert shown(spine) == {"weights": 40}


def test_pools_are_apart() -> None:
    """Each has its own newest start."""
    spine = Spine()
    hear(spine, "a", NOW, "ready")
    hear(spine, "b", NOW + 60, "weights", pool="batch")
    assert [shown(spine), shown(spine, "batch")] == [{"ready": 56}, {"weights": 40}]


def test_a_restart_of_the_daemon_goes_on() -> None:
    """From the news of the last commit, and from a checkpoint."""
    spine = Spine()
    hear(spine, "a", NOW, "weights")
    for how in ("news", "save"):
        other = Spine()
        other.totals, other.pipeline.names = spine.totals, spine.totals.names
        starts, saved = other.pipeline._memory.starts, getattr(spine.pipeline._memory.starts, how)()
        starts.absorb(json.loads(json.dumps(saved)))
        starts.hear("chat", "a", Reached("ready", 56.0, NOW + 56), NOW + 99)
        assert starts.save() == [["chat", "a", [NOW, {"weights": 40.0, "ready": 56.0}]]]


def test_starts_are_bounded() -> None:
    """The oldest are forgotten, the newest is shown."""
    spine = Spine()
    for number in range(MOST + 20):
        hear(spine, f"engine-{number}", NOW + number * 10, "weights")
    assert len(spine.pipeline._memory.starts.save()) == MOST
    assert shown(spine) == {"weights": 40}


def test_a_log_is_shown_as_it_is() -> None:
    """From its lines to the page: SGLang's, of which only the batch is a record."""
    lines = [
        "[2026-10-12 14:00:00] server_args=ServerArgs(model_path='m')",
        "[2026-10-12 14:00:18] Load weight end. elapsed=12.04 s, type=X, avail mem=61.20 GB",
        "[2026-10-12 14:00:20] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 180000, K size: 20.60 GB",
        "[2026-10-12 14:00:41] The server is fired up and ready to roll!",
        "[2026-10-12 14:01:06] Decode batch, #running-req: 36, gen throughput (token/s): 1710.22, #queue-req: 14",
    ]
    spine = Spine()
    decoded = Decoder(shelf()["sglang"], Options()).decode("\n".join(lines).encode(), NOW)
    assert (decoded.read, decoded.counted, decoded.skipped) == (5, 1, 4)
    spine.pipeline.take(Origin("logs", "chat", "sglang-0"), decoded, NOW)
    spine.commit()
    assert shown(spine) == {"weights": 18, "kv_cache": 20, "ready": 41, "first_request": 66}
