"""What is shown as it is now, durable or not: the commit's own health, the configuration's, the process's."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from prometheus_client import CollectorRegistry, Metric, ProcessCollector

from capwatch import __version__
from capwatch import metrics as m
from capwatch.exporters import protobuf
from capwatch.ledger.series import ALONE, Column, Series, alone
from capwatch.metrics import Kind
from capwatch.web.status import Drifts

_PROCESS: Final = ProcessCollector(registry=CollectorRegistry())
"""Reads /proc of this process at every scrape; it keeps nothing."""


@dataclass(slots=True)
class Live:
    """The daemon's own state. Single values, each written by one thread."""

    started_at: float = 0.0
    commit_at: float = 0.0
    commit_s: float = 0.0
    commit_errors: int = 0
    reload_ok: bool = True
    reload_at: float = 0.0
    ready: bool = False
    drifts: Drifts = field(default_factory=Drifts)
    """As the last commit left them."""

    def series(self) -> list[Series]:
        """What of it is in the catalogue."""
        versions = (("version", __version__), ("revision", "unknown"), ("python", platform.python_version()))
        return [
            alone(m.COMMIT_TIMESTAMP_SECONDS, self.commit_at),
            alone(m.COMMIT_DURATION_SECONDS, self.commit_s),
            alone(m.COMMIT_ERRORS, float(self.commit_errors)),
            alone(m.CONFIG_LAST_RELOAD_SUCCESSFUL, float(self.reload_ok)),
            alone(m.CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS, self.reload_at),
            Series(m.BUILD_INFO, ALONE, np.zeros(1, np.int64), np.ones((1, 1)), (Column("", versions),)),
        ]


def process_text(*, openmetrics: bool) -> bytes:
    """The `process_*` families as text."""
    parts = []
    for family, values in _families():
        name = f"{family.name}_total" if family.type == "counter" and not openmetrics else family.name
        parts.append(f"# HELP {name} {family.documentation}\n# TYPE {name} {family.type}\n")
        parts += [f"{sample} {value!r}\n" for sample, value in values]
    return "".join(parts).encode()


def process_protobuf() -> bytes:
    """The `process_*` families as protobuf."""
    kinds = {"counter": Kind.COUNTER, "gauge": Kind.GAUGE}
    return b"".join(
        protobuf.family(name, family.documentation, kinds[family.type], [({}, value)])
        for family, values in _families()
        for name, value in values
    )


def _families() -> Iterator[tuple[Metric, list[tuple[str, float]]]]:
    for family in _PROCESS.collect():
        yield family, [(one.name, float(one.value)) for one in family.samples if not one.name.endswith("_created")]
