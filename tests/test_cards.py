"""The cards on the page: gauges, counters that never fall, cards lost, moved, renamed and forgotten, a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.cards import FORGET_S
from capwatch.config.schema import Config, Pool
from capwatch.metrics import THROTTLE_REASONS
from capwatch.record import GpuReading, GpuSample

from .spine import NOW, Spine

CONFIG = Config(pools=(Pool("chat", gpus=("0", "GPU-c")), Pool("batch", gpus=("1",)), Pool("cpu")))
GAUGES = {
    "gpu_busy_ratio": ("busy", 0.75),
    "gpu_memory_busy_ratio": ("memory_busy", 0.5),
    "gpu_memory_used_bytes": ("memory_used", 6e10),
    "gpu_memory_total_bytes": ("memory_total", 8e10),
    "gpu_power_watts": ("power", 412.5),
    "gpu_temperature_celsius": ("temperature", 61.0),
    "gpu_sm_clock_hertz": ("sm_clock", 1.755e9),
}
WHOLE: dict[str, Any] = dict(GAUGES.values()) | {
    "throttled": frozenset({"sw_power_cap"}),
    "energy": 5000.25,
    "ecc_corrected": 3.0,
    "ecc_uncorrected": 0.0,
}


def card(gpu: str = "0", uuid: str = "GPU-a", told: Mapping[str, Any] | None = None) -> GpuSample:
    """A card that tells everything, or this instead."""
    return GpuSample(gpu=gpu, uuid=uuid, name="Card 80GB", driver="580.1", **(WHOLE | dict(told or {})))


def heard(*readings: GpuReading | list[GpuSample] | None, config: Config = CONFIG) -> Spine:
    """A spine that heard these readings, a commit after each."""
    spine = Spine(config)
    for reading in readings:
        hear(spine, reading)
    return spine


def hear(spine: Spine, reading: GpuReading | list[GpuSample] | None, now: float = NOW) -> None:
    """Let a spine hear a reading."""
    spine.pipeline.cards.hear(GpuReading(reading) if isinstance(reading, list) else reading, now)
    spine.commit()


def shown(spine: Spine) -> set[str]:
    """Names of the GPU metrics that are on the page."""
    return {name.removeprefix("capwatch_") for name, _ in spine.samples() if "_gpu_" in name or "nvml" in name}


def test_every_field_has_its_metric() -> None:
    """One card, all its gauges by index and UUID, its name, the reasons that slow it down, and what it counted."""
    spine = heard([card()])
    assert {name: spine.value(name, gpu="0", uuid="GPU-a") for name in GAUGES} == {
        name: value for name, (_, value) in GAUGES.items()
    }
    assert spine.values("gpu_info", gpu="0", uuid="GPU-a") == {(("name", "Card 80GB"), ("driver", "580.1")): 1}
    assert {
        reason: spine.value("gpu_throttled", gpu="0", uuid="GPU-a", reason=reason) for reason in THROTTLE_REASONS
    } == {reason: float(reason == "sw_power_cap") for reason in THROTTLE_REASONS}
    assert spine.value("gpu_energy_joules_total", gpu="0", uuid="GPU-a") == 5000.25
    assert [spine.value("gpu_ecc_errors_total", gpu="0", kind=kind) for kind in ("corrected", "uncorrected")] == [3, 0]
    assert [spine.value("gpu_up", gpu="0", uuid="GPU-a"), spine.value("nvml_up")] == [1, 1]


@pytest.mark.parametrize("field", WHOLE)
def test_a_field_that_is_not_told_is_absent(field: str) -> None:
    """Not 0, and all others are there."""
    all_of_them, without = heard([card()]), heard([card(told={field: None})])
    gone = {key for key in all_of_them.samples() if key not in without.samples()}
    kept = {key for key in gone if key[0].removeprefix("capwatch_") in shown(without) and field[:3] != "ecc"}
    assert gone
    assert kept == set()


def test_a_library_that_does_not_answer_leaves_counters_and_the_word() -> None:
    """All gauges go; the cards are down, the library too; what was counted stays counted."""
    spine = heard([card()], None)
    assert [spine.value("nvml_up"), spine.value("gpu_up", gpu="0")] == [0, 0]
    assert shown(spine) == {"nvml_up", "gpu_up", "gpu_energy_joules_total", "gpu_ecc_errors_total"}
    hear(spine, [card()])
    assert [spine.value("nvml_up"), spine.value("gpu_up", gpu="0"), spine.value("gpu_busy_ratio")] == [1, 1, 0.75]


def test_a_host_without_any_card() -> None:
    """The library's word alone."""
    assert [shown(heard(None)), heard(None).value("nvml_up"), heard([]).value("nvml_up")] == [{"nvml_up"}, 0, 1]


def test_a_lost_card_takes_its_own_series() -> None:
    """The other stays as it is."""
    spine = heard([card(), card("1", "GPU-b")], [card("1", "GPU-b")])
    assert [spine.value("gpu_up", gpu="0"), spine.value("gpu_up", gpu="1")] == [0, 1]
    assert [spine.value("gpu_busy_ratio", gpu="0"), spine.value("gpu_busy_ratio", gpu="1")] == [None, 0.75]


def test_a_card_that_was_taken_out_is_forgotten_after_a_day() -> None:
    """Until then it is one that should be there."""
    spine = heard([card()])
    found = []
    for after in (FORGET_S, FORGET_S + 1):
        hear(spine, [], NOW + after)
        found.append(spine.value("gpu_up", gpu="0"))
    assert found == [0, None]
    hear(spine, [card()], NOW + 2 * FORGET_S)
    assert spine.value("gpu_up", gpu="0") == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["energy", "ecc_corrected", "ecc_uncorrected"]), st.integers(0, 10**6)), max_size=12
    )
)
def test_counters_never_fall(steps: list[tuple[str, int]]) -> None:
    """Whatever a card counts, forwards or from 0 again: shown is the sum of all growth."""
    spine, counts = Spine(CONFIG), dict.fromkeys(("energy", "ecc_corrected", "ecc_uncorrected"), 0)
    total = dict(counts)
    for name, count in steps:
        total[name] += count - counts[name] if count >= counts[name] else count
        counts[name] = count
        hear(spine, [card(told=counts)])
    if steps:
        assert spine.value("gpu_energy_joules_total") == total["energy"]
        for kind in ("corrected", "uncorrected"):
            assert spine.value("gpu_ecc_errors_total", kind=kind) == total[f"ecc_{kind}"]


def test_what_was_counted_is_remembered_with_each_commit() -> None:
    """A restart between two checkpoints goes on from the last delta: growth meanwhile counts once."""
    spine = heard([card(told={"energy": 100.0})])
    delta, news = spine.pipeline.freeze(), spine.pipeline.news()
    other = Spine(CONFIG, spine.totals.names.copy())
    other.totals = spine.totals
    other.pipeline.absorb(delta, json.loads(json.dumps(news, default=list)))
    hear(other, [card(told={"energy": 130.0})])
    assert other.value("gpu_energy_joules_total") == 130


def test_events_are_counted_by_their_number() -> None:
    """A series for each kind of event, which grows and never sticks."""
    spine = heard(GpuReading([card()], [("0", "GPU-a", 13), ("0", "GPU-a", 79), ("0", "GPU-a", 13)]), [card()])
    assert [spine.value("gpu_xid_errors_total", gpu="0", xid=xid) for xid in ("13", "79")] == [2, 1]


def test_a_new_driver_takes_the_place_of_the_old() -> None:
    """One row a card, whatever changed."""
    newer = card()
    newer.driver = "590.2"
    spine = heard([card()], [newer])
    assert spine.values("gpu_info", gpu="0") == {
        (("uuid", "GPU-a"), ("name", "Card 80GB"), ("driver", "590.2")): 1.0,
    }


def test_cards_are_of_the_pools_that_name_them() -> None:
    """By index or UUID, with their MIG instances; a reload that names others changes the rows."""
    spine = heard([card(), card("1", "GPU-b"), card("1:0", "MIG-b"), card("2", "GPU-c"), card("3", "GPU-d")])
    assert {(dict(labels)["uuid"], dict(labels)["pool"]) for labels in spine.values("gpu_pool_info")} == {
        *(("GPU-a", "chat"), ("GPU-b", "batch"), ("MIG-b", "batch"), ("GPU-c", "chat")),
    }
    other = Spine(Config(pools=(Pool("batch", gpus=("GPU-a",)),)), spine.pipeline.names)
    other.totals = spine.totals
    other.pipeline.inherit(spine.pipeline)
    hear(other, [card()])
    assert {dict(labels)["pool"] for labels in other.values("gpu_pool_info")} == {"batch"}
