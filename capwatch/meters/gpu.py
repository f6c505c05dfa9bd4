"""The GPUs: what each card last told, what it counted, and whether the library answers (contract, section 4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from capwatch import metrics as m
from capwatch.config.schema import Config
from capwatch.labels.text import clean
from capwatch.ledger import DRIVER, GPU, GPU_NAME, POOL, UUID, XID, Axis, Gathering, Table, Totals
from capwatch.ledger.series import Series, plain, spread
from capwatch.record import GpuSample, Ints
from capwatch.seen import Seen

METRICS: Final = {
    "busy": m.GPU_BUSY_RATIO,
    "memory_busy": m.GPU_MEMORY_BUSY_RATIO,
    "memory_used": m.GPU_MEMORY_USED_BYTES,
    "memory_total": m.GPU_MEMORY_TOTAL_BYTES,
    "power": m.GPU_POWER_WATTS,
    "temperature": m.GPU_TEMPERATURE_CELSIUS,
    "sm_clock": m.GPU_SM_CLOCK_HERTZ,
}
"""The metric of each field of a sample that holds until the next one."""
ECC_KIND = Axis("kind", 1, m.ECC_KINDS)
LEVELS = Table((GPU, UUID), "gpus", (*METRICS, *m.THROTTLE_REASONS), level=True)
UP = Table((GPU, UUID), "gpus_up", ("up",), level=True)
INFO = Table((GPU, UUID, GPU_NAME, DRIVER), "gpu_info", ("there",), level=True)
POOLS = Table((GPU, UUID, POOL), "gpu_pools", ("there",), level=True)
NVML = Table((), "nvml", ("up",), level=True)
ENERGY = Table((GPU, UUID), "gpu_energy", ("joules",))
ECC = Table((GPU, UUID, ECC_KIND), "gpu_ecc", ("errors",))
XIDS = Table((GPU, UUID, XID), "gpu_xids", ("events",))


class Gpus:
    """Contract 4.6."""

    tables = (LEVELS, UP, INFO, POOLS, NVML, ENERGY, ECC, XIDS)
    sketches = ()
    followers = ()

    def measure(self, seen: Seen, into: Gathering) -> None:
        """Requests tell nothing of it."""

    def show(self, totals: Totals) -> Iterable[Series]:
        """See `capwatch.seen.Meter`."""
        keys, values = totals.rows(LEVELS)
        for column, metric in enumerate(METRICS.values()):
            yield plain(metric, LEVELS, keys, values[:, column])
        yield spread(m.GPU_THROTTLED, LEVELS, keys, values[:, len(METRICS) :], m.THROTTLE_REASONS)
        for metric, table in (
            (m.NVML_UP, NVML),
            (m.GPU_UP, UP),
            (m.GPU_INFO, INFO),
            (m.GPU_POOL_INFO, POOLS),
            (m.GPU_ENERGY_JOULES, ENERGY),
            (m.GPU_ECC_ERRORS, ECC),
            (m.GPU_XID_ERRORS, XIDS),
        ):
            rows = totals.rows(table)
            yield plain(metric, table, rows[0], rows[1][:, 0])


def book_library(into: Gathering, *, up: bool) -> None:
    """Set whether the library answers."""
    into.set(NVML, np.zeros(1, np.int64), np.array([float(up)]))


def book_up(into: Gathering, card: tuple[str, str], up: float) -> None:
    """Set whether a card, by index and UUID, answers; NaN for one that is gone for good."""
    into.set(UP, _key(into, UP, card), np.array([up]))


def book_levels(into: Gathering, card: tuple[str, str], sample: GpuSample | None) -> None:
    """Set what a card tells now; None takes everything away."""
    told: list[float] = [np.nan] * len(LEVELS.columns)
    if sample is not None:
        slow = sample.throttled
        told = [_or_nan(getattr(sample, name)) for name in METRICS]
        told += [np.nan if slow is None else float(reason in slow) for reason in m.THROTTLE_REASONS]
    into.set(LEVELS, _key(into, LEVELS, card), *(np.array([value]) for value in told))


def book_info(into: Gathering, card: tuple[str, str], info: Sequence[str], *, there: bool) -> None:
    """Set the row of a card's name and driver, or take it away."""
    ids = [into.names.id(axis.name, clean(text)) for axis, text in zip((GPU_NAME, DRIVER), info, strict=True)]
    into.set(INFO, _key(into, INFO, card, *ids), np.array([1.0 if there else np.nan]))


def book_pool(into: Gathering, card: tuple[str, str], pool: str, *, there: bool) -> None:
    """Set that a card serves a pool, or take that away."""
    into.set(POOLS, _key(into, POOLS, card, into.names.id(POOL.name, pool)), np.array([1.0 if there else np.nan]))


def book_energy(into: Gathering, card: tuple[str, str], joules: float) -> None:
    """Add energy."""
    into.add(ENERGY, _key(into, ENERGY, card), np.array([joules]))


def book_ecc(into: Gathering, card: tuple[str, str], kind: str, errors: float) -> None:
    """Add memory errors of a kind."""
    into.add(ECC, _key(into, ECC, card, m.ECC_KINDS.index(kind)), np.array([errors]))


def book_xid(into: Gathering, card: tuple[str, str], xid: int) -> None:
    """Add an event of the driver."""
    into.add(XIDS, _key(into, XIDS, card, into.names.id(XID.name, str(xid))), np.ones(1))


def _key(into: Gathering, table: Table, card: tuple[str, str], *rest: int) -> Ints:
    ids = (into.names.id(axis.name, clean(text)) for axis, text in zip((GPU, UUID), card, strict=True))
    return np.atleast_1d(table.pack(*ids, *rest))


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def METER(config: Config) -> Gpus:  # noqa: ARG001, N802 - the shelf's word
    """The meter for a configuration."""
    return Gpus()
