"""Judges a daemon from outside: what a Prometheus would have made of every page, and the laws that hold on each."""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from .writer import line

LINE_BYTES = len(line(0, 1e9))
"""Of a writer's plain lines."""
SCRAPE_S = 0.1
"""Far more often than a Prometheus: what is shown only for a moment is seen too."""
LIVE = ("capwatch_commit_", "process_", "python_")
"""Live by contract, so outside law 7."""

Labels = tuple[tuple[str, str], ...]
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Samples:
    """A page: every sample by its name and labels as they are written, and which families are counters."""

    def __init__(self, values: Mapping[str, float], counters: frozenset[str]) -> None:
        self.values = values
        self.counters = counters

    def total(self, name: str, **where: str) -> float:
        """The sum of all samples of a name (without `capwatch_`) whose labels fit."""
        return sum(self.by(name, **where).values())

    def by(self, name: str, *labels: str, **where: str) -> dict[tuple[str, ...], float]:
        """The same by the values of some labels."""
        sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for key, value in self.values.items():
            found, _, rest = key.partition("{")
            if found == f"capwatch_{name}":
                has = dict(_LABEL.findall(rest))
                if where.items() <= has.items():
                    sums[tuple(has[label] for label in labels)] += value
        return dict(sums)

    def tenants(self, prefix: str = "t") -> dict[str, list[float]]:
        """By tenant: requests, and tokens computed, cached and output, as `Writer.truth` has them."""
        found = {tenant: [count, 0.0, 0.0, 0.0] for (tenant,), count in self.by("requests_total", "tenant").items()}
        for place, kind in enumerate(("prompt_computed", "prompt_cached", "output"), 1):
            for (tenant,), count in self.by("tokens_total", "tenant", kind=kind).items():
                found[tenant][place] = count
        return {tenant: sums for tenant, sums in found.items() if tenant.startswith(prefix)}


def parsed(page: str) -> Samples:
    """Read a page in the text format that capwatch writes: no blanks in values, no times."""
    values, counters = {}, set()
    for text in page.splitlines():
        if text.startswith("#"):
            if text.endswith(" counter"):
                counters.add(text.split(" ")[2])
        else:
            key, _, value = text.rpartition(" ")
            values[key] = float(value)
    return Samples(values, frozenset(counters))


class Accumulated:
    """Prometheus' own rule: a counter that falls has begun anew at 0."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.fallen: list[str] = []

    def add(self, key: str, value: float) -> None:
        """One more sample."""
        before = self.last.get(key, 0.0)
        if value < before:
            self.fallen.append(f"{key}: {before} → {value}")
            before = 0.0
        self.sums[key] += value - before
        self.last[key] = value


class Ledger:
    """Scrapes a daemon again and again, and notes every breach of a law in a sentence."""

    def __init__(
        self,
        page: Callable[[], str | None],
        written: Callable[[], float],
        *,
        line_bytes: int | None = LINE_BYTES,
    ) -> None:
        """Judge pages.

        Args:
            page: fetches one.
            written: bytes written to all files so far.
            line_bytes: of every line; None where they differ.
        """
        self.breaches: list[str] = []
        self.pages = 0
        self.accumulated = Accumulated()
        self._page = page
        self._written = written
        self._line_bytes = line_bytes
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Ledger:
        """Begin to scrape."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Scrape no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            begun = time.monotonic()
            page = self._page()
            if page is None:
                time.sleep(SCRAPE_S / 10)
                continue
            self.judge(parsed(page))
            time.sleep(max(SCRAPE_S, time.monotonic() - begun))  # on a slow machine not all of it goes into looking

    def judge(self, found: Samples) -> None:
        """Look at one page."""
        self.pages += 1
        for key, value in found.values.items():
            if key.partition("{")[0] in found.counters and not key.startswith(LIVE):
                self.accumulated.add(key, value)
        self.breaches += [f"law 7: {one}" for one in self.accumulated.fallen]
        self.accumulated.fallen = []
        self._judge_lines(found)
        self._judge_bytes(found)
        requests = found.total("requests_total") + found.total("retired_requests_total")
        self._expect("law 3: requests", requests, found.total("lines_counted_total"))

    def _judge_lines(self, found: Samples) -> None:
        for (source,), read in found.by("lines_read_total", "source").items():
            fates = ("lines_counted_total", "lines_skipped_total", "lines_dropped_total")
            self._expect(f"law 1: lines of {source}", sum(found.total(fate, source=source) for fate in fates), read)
            if self._line_bytes is not None:
                bytes_read = found.total("source_bytes_read_total", source=source)
                self._expect(f"bytes read of {source}", bytes_read, read * self._line_bytes)

    def _judge_bytes(self, found: Samples) -> None:
        """Law 2 from one side: the page is a moment old, so it may know of less than was written, never of more."""
        known = accounted(found)
        if known > (most := self._written()):
            self.breaches.append(f"law 2: {known} bytes, and {most} were written")

    def _expect(self, what: str, value: float, expected: float) -> None:
        if value != expected:
            self.breaches.append(f"{what}: {value}, not {expected}")


def accounted(found: Samples, **where: str) -> float:
    """The right side of law 2."""
    parts = ("bytes_read_total", "bytes_skipped_total", "lag_bytes", "bytes_lost_total")
    return sum(found.total(f"source_{part}", **where) for part in parts)
