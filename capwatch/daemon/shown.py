"""Shown: the last durable snapshot, which deltas reach only after they were made durable, and what scrapes see of it."""

from __future__ import annotations

import gzip
import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import numpy as np
from prometheus_client import CollectorRegistry, ProcessCollector

from capwatch import __version__
from capwatch import metrics as m
from capwatch.exporters.text import Writer
from capwatch.ledger import Delta, Totals
from capwatch.ledger.series import ALONE, Column, Series, alone
from capwatch.seen import Meter
from capwatch.view import view

T = TypeVar("T")
Form = Literal["text", "openmetrics", "protobuf"]
GZIP_LEVEL: Final = 1
"""A page of 8 MB takes 60 ms; higher levels take several times that and save a tenth."""


@dataclass(slots=True)
class Live:
    """What is shown as it is now, durable or not: the commit's own health and the configuration's."""

    started_at: float = 0.0
    commit_at: float = 0.0
    commit_s: float = 0.0
    commit_errors: int = 0
    reload_ok: bool = True
    reload_at: float = 0.0
    ready: bool = False


class Shown:
    """The totals that scrapes see. Committing never waits for a scrape: what it hands over waits in a queue."""

    def __init__(self, totals: Totals, meters: Sequence[Meter], disabled: frozenset[str] = frozenset()) -> None:
        self.live = Live()
        self.totals = totals
        self.meters = meters
        self.disabled = disabled
        self._writer = Writer(totals.names)
        self._lock = threading.Lock()
        self._durable: list[Delta] = []
        self._process = ProcessCollector(registry=CollectorRegistry())

    def publish(self, delta: Delta) -> None:
        """Show a delta that is durable: at once, or when the scrape that is under way has ended."""
        self._durable.append(delta)
        if self._lock.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._lock.release()

    def look(self, at: Callable[[Totals], T]) -> T | None:
        """What ``at`` makes of the totals with everything published; None where a scrape is under way.

        It must be quick: it holds up scrapes. Arrays of the totals do not change later.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._drain()
            return at(self.totals)
        finally:
            self._lock.release()

    @contextmanager
    def held(self) -> Iterator[Totals]:
        """The totals with everything published, for as long as the context lasts; for scrapes and pages."""
        with self._lock:
            self._drain()
            yield self.totals

    def reshape(self, meters: Sequence[Meter], disabled: frozenset[str]) -> None:
        """Show with the meters of another configuration."""
        with self._lock:
            self.meters, self.disabled = meters, disabled

    def metrics(self, form: Form, *, compressed: bool) -> bytes:
        """The page of metrics in an exposition format."""
        with self.held() as totals:
            shown = view(self.meters, totals, hidden=self.disabled)
            shown += self._live()
            if form == "protobuf":
                page = self._protobuf(shown)
            else:
                openmetrics = form == "openmetrics"
                page = self._writer.page(shown, openmetrics=openmetrics, extra=self._of_process(openmetrics))
        return gzip.compress(page, GZIP_LEVEL) if compressed else page

    def _drain(self) -> None:
        while self._durable:
            self.totals.apply(self._durable.pop(0))

    def _protobuf(self, shown: list[Series]) -> bytes:
        raise NotImplementedError

    def _live(self) -> list[Series]:
        live = self.live
        versions = (("version", __version__), ("revision", "unknown"), ("python", platform.python_version()))
        return [
            alone(m.COMMIT_TIMESTAMP_SECONDS, live.commit_at),
            alone(m.COMMIT_DURATION_SECONDS, live.commit_s),
            alone(m.COMMIT_ERRORS, float(live.commit_errors)),
            alone(m.CONFIG_LAST_RELOAD_SUCCESSFUL, float(live.reload_ok)),
            alone(m.CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS, live.reload_at),
            Series(m.BUILD_INFO, ALONE, np.zeros(1, np.int64), np.ones((1, 1)), (Column("", versions),)),
        ]

    def _of_process(self, openmetrics: bool) -> bytes:  # noqa: FBT001
        lines = []
        for family in self._process.collect():
            counter = family.type == "counter"
            name = family.name + ("_total" if counter and not openmetrics else "")
            lines.append(f"# HELP {name} {family.documentation}\n# TYPE {name} {family.type}\n")
            lines += [
                f"{one.name} {float(one.value)!r}\n" for one in family.samples if not one.name.endswith("_created")
            ]
        return "".join(lines).encode()
