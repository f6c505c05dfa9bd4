"""NVIDIA's cards and their MIG instances, read by NVML through nvidia-ml-py (the extra `gpu`).

A field that a card does not support is absent, and costs nothing else. A card that is lost costs its own reading, a
library that does not answer costs all of them. Cards are enumerated anew at each reading, and told apart by their UUID:
their number, their MIG mode and their handles may change at any time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

from capwatch.errors import LibraryError
from capwatch.record import GpuReading, GpuSample

MOST_EVENTS: Final = 256
"""Events taken at one reading; the driver keeps the rest."""
MOST_CARDS: Final = 256
"""Cards of one host; more are an error of the library."""

_THROTTLED: Final = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
"""NVML's bits; those of idling and of clocks that were set on purpose are not here, for they slow nothing down."""
_DOWN: Final = ("UNINITIALIZED", "DRIVER_NOT_LOADED", "LIBRARY_NOT_FOUND", "LIB_RM_VERSION_MISMATCH")
_LOST: Final = ("GPU_IS_LOST", "GPU_NOT_FOUND", "RESET_REQUIRED", "UNKNOWN", "IRQ_ISSUE", "OPERATING_SYSTEM", "TIMEOUT")


class _LostError(Exception):
    """A card does not answer, or answers nonsense."""


class Nvml:
    """The library, open. One thread's."""

    def __init__(self) -> None:
        """Open it.

        Raises:
            LibraryError: nvidia-ml-py is not installed, or there is no driver that it could talk to.
        """
        try:
            import pynvml  # noqa: PLC0415 - an extra, which most hosts do without
        except ImportError:
            raise LibraryError("nvidia-ml-py is not installed; pip install 'capwatch[gpu]'") from None
        self._nvml: ModuleType = pynvml
        self._down = {getattr(pynvml, f"NVML_ERROR_{name}") for name in _DOWN}
        self._lost = {getattr(pynvml, f"NVML_ERROR_{name}") for name in _LOST}
        self._uuids: dict[int, str] = {}
        """By index, of the cards seen since the library was opened."""
        self._listening: dict[str, int] = {}
        """By UUID: the address of the handle whose events are waited for."""
        self._call("nvmlInit")
        self._events = self._told("nvmlEventSetCreate")

    def read(self) -> GpuReading:
        """See `capwatch.gpus.Library`."""
        driver = _text(self._told("nvmlSystemGetDriverVersion"))
        count = min(int(self._call("nvmlDeviceGetCount")), MOST_CARDS)
        cards: list[GpuSample] = []
        names: dict[int, tuple[str, str]] = {}
        whole = True
        for index in range(count):
            try:
                handle = self._one("nvmlDeviceGetHandleByIndex", index)
                card = self._card(handle, str(index), driver)
                instances = [*self._instances(handle, index, driver)]
            except _LostError:
                whole = False
                continue
            self._uuids[index] = card.uuid
            names[_address(handle)] = (card.gpu, card.uuid)
            self._listen(card.uuid, handle)
            cards += [card, *instances]
        return GpuReading(cards, [*self._xids(names)], whole)

    def close(self) -> None:
        """Give the library back; one that fails at that is gone already."""
        if self._events is not None:
            self._told("nvmlEventSetFree", self._events)
        self._told("nvmlShutdown")

    def _card(self, handle: object, gpu: str, driver: str | None) -> GpuSample:
        """One reading of a card or instance; raises `_LostError`."""
        ask, nvml = self._field, self._nvml
        load = ask("nvmlDeviceGetUtilizationRates", handle)
        memory = ask("nvmlDeviceGetMemoryInfo", handle, nvml.nvmlMemory_v2) or ask("nvmlDeviceGetMemoryInfo", handle)
        reasons = ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if reasons is None:  # drivers before 535
            reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        ecc = [
            _number(ask("nvmlDeviceGetTotalEccErrors", handle, kind, nvml.NVML_VOLATILE_ECC))
            for kind in (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
        ]
        return GpuSample(
            gpu=gpu,
            uuid=_text(self._one("nvmlDeviceGetUUID", handle)) or "unknown",
            name=_text(ask("nvmlDeviceGetName", handle)),
            driver=driver,
            busy=_share(load.gpu) if load else None,
            memory_busy=_share(load.memory) if load else None,
            memory_used=_number(memory.used) if memory else None,
            memory_total=_number(memory.total) if memory else None,
            power=_number(ask("nvmlDeviceGetPowerUsage", handle), 1e-3),
            temperature=_number(ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU)),
            sm_clock=_number(ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM), 1e6),
            throttled=None if reasons is None else frozenset(name for bit, name in _THROTTLED.items() if reasons & bit),
            energy=_number(ask("nvmlDeviceGetTotalEnergyConsumption", handle), 1e-3),
            ecc_corrected=ecc[0],
            ecc_uncorrected=ecc[1],
        )

    def _instances(self, handle: object, index: int, driver: str | None) -> Iterator[GpuSample]:
        """The MIG instances of a card, where it is cut into some; raises `_LostError`."""
        mode = self._field("nvmlDeviceGetMigMode", handle)
        if not mode or mode[0] != self._nvml.NVML_DEVICE_MIG_ENABLE:
            return
        for number in range(min(int(self._field("nvmlDeviceGetMaxMigDeviceCount", handle) or 0), MOST_CARDS)):
            instance = self._field("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
            if instance is not None:  # places that no instance has are not found
                with suppress(_LostError):
                    yield self._card(instance, f"{index}:{number}", driver)

    def _listen(self, uuid: str, handle: object) -> None:
        """Wait for a card's XID events; a handle that is new needs that anew."""
        if self._events is None or self._listening.get(uuid) == _address(handle):
            return
        self._listening[uuid] = _address(handle)
        self._told("nvmlDeviceRegisterEvents", handle, self._nvml.nvmlEventTypeXidCriticalError, self._events)

    def _xids(self, names: dict[int, tuple[str, str]]) -> Iterator[tuple[str, str, int]]:
        """Events that have come, without waiting for more; one of a card lost since bears its last name."""
        known = {address: uuid for uuid, address in self._listening.items()}
        indices = {uuid: str(index) for index, uuid in self._uuids.items()}
        for _ in range(MOST_EVENTS):
            event = self._told("nvmlEventSetWait_v2", self._events, 0) if self._events is not None else None
            if event is None:
                return
            if event.eventType == self._nvml.nvmlEventTypeXidCriticalError:
                address = _address(event.device)
                uuid = known.get(address, "unknown")
                gpu, uuid = names.get(address, (indices.get(uuid, "unknown"), uuid))
                yield gpu, uuid, int(event.eventData)

    def _call(self, name: str, *arguments: object) -> Any:
        """What the library says, or why it cannot say anything."""
        try:
            return getattr(self._nvml, name)(*arguments)
        except self._nvml.NVMLError as error:
            raise LibraryError(f"NVML: {error}") from None

    def _one(self, name: str, *arguments: object) -> Any:
        """What a card has to say, or `_LostError`."""
        try:
            return getattr(self._nvml, name)(*arguments)
        except self._nvml.NVMLError as error:
            if error.value in self._down:
                raise LibraryError(f"NVML: {error}") from None
            raise _LostError from None

    def _field(self, name: str, *arguments: object) -> Any:
        """What a card may say; None where it does not support that, `_LostError` where it is gone."""
        try:
            return getattr(self._nvml, name)(*arguments)
        except self._nvml.NVMLError as error:
            if error.value in self._down:
                raise LibraryError(f"NVML: {error}") from None
            if error.value in self._lost:
                raise _LostError from None
            return None

    def _told(self, name: str, *arguments: object) -> Any:
        """What the library may say; None where it does not."""
        try:
            return getattr(self._nvml, name)(*arguments)
        except self._nvml.NVMLError:
            return None


def _text(value: str | bytes | None) -> str | None:
    """Some versions of the binding give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _share(percent: int) -> float | None:
    """A share of 0..1; what is no percentage is not told."""
    return percent / 100 if 0 <= percent <= 100 else None


def _number(value: int | None, factor: float = 1.0) -> float | None:
    return None if value is None else value * factor if factor >= 1 else value / round(1 / factor)


def _address(handle: object) -> int:
    """What tells handles apart: the address behind them."""
    return int(ctypes.cast(handle, ctypes.c_void_p).value or 0)  # type: ignore[arg-type]


OPEN: Final[Callable[[], Nvml]] = Nvml
