"""Shown: the last durable snapshot, which deltas reach only when they are durable, and what scrapes see of it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeVar

from capwatch.daemon.live import Live, process_protobuf, process_text
from capwatch.exporters import protobuf, text
from capwatch.ledger import Delta, Totals
from capwatch.meters import latency
from capwatch.seen import Meter
from capwatch.view import hidden, view

T = TypeVar("T")
Form = Literal["text", "openmetrics", "protobuf"]
GZIP_LEVEL: Final = 1
"""A page of 8 MB takes 60 ms; higher levels take several times that and save a tenth."""


class Shown:
    """The totals that scrapes see. Committing never waits for a scrape: what it hands over waits in a queue."""

    def __init__(self, totals: Totals, meters: Sequence[Meter], disabled: frozenset[str] = frozenset()) -> None:
        self.live = Live()
        self.totals = totals
        self.meters = meters
        self.disabled = disabled
        self._text = text.Writer(totals.names)
        self._protobuf = protobuf.Writer(totals.names)
        self._lock = threading.Lock()
        self._durable: list[Delta] = []

    def publish(self, delta: Delta) -> None:
        """Show a delta that is durable: at once, or when the scrape that is under way has ended."""
        self._durable.append(delta)
        if self._lock.acquire(blocking=False):
            try:
                self._drain()
            finally:
                self._lock.release()

    def look(self, at: Callable[[Totals], T], patience: float = 0.0) -> T | None:
        """What ``at`` makes of the totals with everything published; None where a scrape takes longer (s).

        It must be quick: it holds up scrapes. Arrays of the totals do not change later.
        """
        if not self._lock.acquire(timeout=patience):
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
            shown = [*view(self.meters, totals, disabled=self.disabled), *self.live.series()]
            if form == "protobuf":
                natives = [one for one in latency.natives(totals) if not hidden(one.metric, self.disabled)]
                page = self._protobuf.page(shown, natives, process_protobuf())
            else:
                openmetrics = form == "openmetrics"
                page = self._text.page(shown, openmetrics=openmetrics, extra=process_text(openmetrics=openmetrics))
        return gzip.compress(page, GZIP_LEVEL) if compressed else page

    def _drain(self) -> None:
        while self._durable:
            self.totals.apply(self._durable.pop(0))
