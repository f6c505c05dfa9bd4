"""NVML through its real binding, on a library of our own: every value, every field unsupported, cards lost and back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from capwatch.errors import LibraryError
from capwatch.gpus import Library, shelf
from capwatch.record import GpuSample

from .stub import USUAL, Stub

NOT_SUPPORTED, NO_PERMISSION, GPU_IS_LOST, RM_VERSION_MISMATCH, UNKNOWN = 3, 4, 15, 18, 999
FIELDS = {
    "nvmlDeviceGetUtilizationRates": {"busy", "memory_busy"},
    "nvmlDeviceGetPowerUsage": {"power"},
    "nvmlDeviceGetTotalEnergyConsumption": {"energy"},
    "nvmlDeviceGetTemperature": {"temperature"},
    "nvmlDeviceGetClockInfo": {"sm_clock"},
    "nvmlDeviceGetTotalEccErrors": {"ecc_corrected", "ecc_uncorrected"},
    "nvmlDeviceGetName": {"name"},
    "nvmlSystemGetDriverVersion": {"driver"},
    "nvmlEventSetCreate": set(),
    "nvmlDeviceRegisterEvents": set(),
    "nvmlDeviceGetMigMode": set(),
}
"""What each function fills."""


@contextmanager
def opened() -> Iterator[Library]:
    """The library, open."""
    library = shelf()["nvml"]()
    try:
        yield library
    finally:
        library.close()


def whole(gpu: str = "0") -> GpuSample:
    """What a card of the usual values is to tell, in base units."""
    return GpuSample(
        gpu=gpu,
        uuid=f"GPU-{gpu}",
        name="Stub 80GB",
        driver="580.1",
        busy=0.75,
        memory_busy=0.4,
        memory_used=60.0 * 2**30,
        memory_total=80.0 * 2**30,
        power=412.5,
        temperature=61.0,
        sm_clock=1755e6,
        throttled=frozenset({"sw_power_cap", "hw_thermal_slowdown"}),
        energy=5000.25,
        ecc_corrected=3.0,
        ecc_uncorrected=1.0,
    )


def test_every_value_is_read_in_base_units(stub: Stub) -> None:
    """Percent, milliwatts, millijoules, megahertz and bits become shares, watts, joules, hertz and reasons."""
    with opened() as library:
        reading = library.read()
    assert (reading.cards, reading.xids, reading.whole) == ([whole("0"), whole("1")], [], True)


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION])
@pytest.mark.parametrize("function", FIELDS)
def test_a_field_that_is_not_supported_costs_itself(stub: Stub, function: str, code: int) -> None:
    """Absent, not 0, and all others are there."""
    stub.fail(function, code)
    with opened() as library:
        (card, _) = library.read().cards
    expected = whole()
    for field in FIELDS[function]:
        setattr(expected, field, None)
    assert card == expected


def test_older_drivers_are_asked_by_older_functions(stub: Stub) -> None:
    """Memory without what is reserved, and reasons under their first name; without either, absent."""
    for newer in ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons"):
        stub.fail(newer, NOT_SUPPORTED)
    with opened() as library:
        assert library.read().cards[0] == whole()
        for older in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            stub.fail(older, NOT_SUPPORTED)
        card = library.read().cards[0]
    assert (card.memory_used, card.memory_total, card.throttled) == (None, None, None)


@pytest.mark.parametrize("code", [GPU_IS_LOST, UNKNOWN])
@pytest.mark.parametrize("function", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetUUID"])
def test_a_lost_card_costs_itself_after_ten_readings(stub: Stub, function: str, code: int) -> None:
    """The other stays, and the reading says that it is not whole; when it answers again all is as before."""
    with opened() as library:
        for _ in range(10):
            assert library.read().whole
        stub.fail(function, code, card=0)
        reading = library.read()
        assert ([card.uuid for card in reading.cards], reading.whole) == (["GPU-1"], False)
        stub.mend()
        assert library.read().cards == [whole("0"), whole("1")]


def test_handles_are_asked_for_anew(stub: Stub) -> None:
    """After the library was opened again the old ones are worth nothing, and the same cards are found."""
    with opened() as library:
        library.read()
        with opened() as other:
            assert other.read().cards == [whole("0"), whole("1")]
            assert library.read().cards == [whole("0"), whole("1")]
    assert stub.faults == []


def test_cards_come_and_go(stub: Stub) -> None:
    """Their number is looked at each time; a card that moved is known by its UUID."""
    with opened() as library:
        stub.card(2)
        assert [card.uuid for card in library.read().cards] == ["GPU-0", "GPU-1", "GPU-2"]
        del stub.cards[2]
        stub.uuids = {0: "GPU-1", 1: "GPU-0"}
        stub.write()
        assert [(card.gpu, card.uuid) for card in library.read().cards] == [("0", "GPU-1"), ("1", "GPU-0")]


def test_mig_may_be_switched_at_any_time(stub: Stub) -> None:
    """Instances have their own memory and no utilisation; the card itself stays."""
    with opened() as library:
        stub.card(0, instances=2, busy=None)
        cards = library.read().cards
        assert [(card.gpu, card.uuid) for card in cards] == [
            *(("0", "GPU-0"), ("0:0", "MIG-0-GPU-0"), ("0:1", "MIG-1-GPU-0"), ("1", "GPU-1")),
        ]
        assert [cards[0].busy, cards[1].busy, cards[1].memory_used] == [None, None, 30.0 * 2**30]
        stub.card(0, instances=0, busy=75)
        assert library.read().cards == [whole("0"), whole("1")]


def test_instances_that_cannot_be_listed_cost_nothing(stub: Stub) -> None:
    """Where that is not supported or they are gone; an unknown error is the card's own."""
    stub.card(0, instances=1)
    stub.fail("nvmlDeviceGetMigDeviceHandleByIndex", UNKNOWN)
    with opened() as library:
        assert [card.uuid for card in library.read().cards] == ["GPU-1"]
    stub.mend()
    stub.fail("nvmlDeviceGetMigDeviceHandleByIndex", NOT_SUPPORTED)
    with opened() as library:
        assert [card.uuid for card in library.read().cards] == ["GPU-0", "GPU-1"]


def test_xids_are_events(stub: Stub) -> None:
    """Each is told once, by card, and nothing sticks; those of a card that is lost are its own."""
    with opened() as library:
        assert library.read().xids == []
        stub.xid(0, 13)
        stub.xid(1, 79)
        stub.xid(0, 13)
        assert library.read().xids == [("0", "GPU-0", 13), ("1", "GPU-1", 79), ("0", "GPU-0", 13)]
        assert library.read().xids == []
        stub.fail("nvmlDeviceGetPowerUsage", GPU_IS_LOST, card=1)
        stub.xid(1, 79)
        assert library.read().xids == [("1", "GPU-1", 79)]


def test_a_share_out_of_range_is_not_told(stub: Stub) -> None:
    """Some drivers answer more than a hundred percent for a moment."""
    stub.card(0, busy=4294967295, memory_busy=101)
    with opened() as library:
        card = library.read().cards[0]
    assert (card.busy, card.memory_busy) == (None, None)


@pytest.mark.parametrize("function", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetPowerUsage"])
def test_a_library_that_fails_says_why(stub: Stub, function: str) -> None:
    """A driver that was exchanged under it costs all cards, and comes back."""
    library = shelf()["nvml"]()
    stub.fail(function, RM_VERSION_MISMATCH)
    with pytest.raises(LibraryError, match=r"NVML: .*version mismatch"):
        library.read() if function != "nvmlInitWithFlags" else shelf()["nvml"]()
    stub.mend()
    assert library.read().cards == [whole("0"), whole("1")]
    library.close()


def test_no_driver_is_said_in_one_line(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is there, and has nothing below it."""
    monkeypatch.delenv("NVML_STUB")
    with pytest.raises(LibraryError, match="NVML: Driver Not Loaded"):
        shelf()["nvml"]()
    assert stub.cards[0] == USUAL


@pytest.mark.parametrize(
    ("path", "reason"),
    [("", "NVML: NVML Shared Library Not Found"), ("no_such_folder", "nvidia-ml-py is not installed")],
    ids=["no library", "no binding"],
)
def test_a_host_without_either_part(path: str, reason: str) -> None:
    """A process of its own, since this one has the library loaded."""
    hide = f"import sys; sys.modules['pynvml'] = None if {path!r} else sys.modules.get('pynvml')\n" if path else ""
    code = f"{hide}from capwatch.gpus import shelf\nfrom capwatch.errors import LibraryError\n"
    code += "try:\n    shelf()['nvml']()\nexcept LibraryError as error:\n    print(error)\n"
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=root, timeout=60
    )
    assert done.stdout.startswith(reason), done.stderr
