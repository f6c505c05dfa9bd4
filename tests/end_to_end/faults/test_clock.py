"""Clocks that are set, zones that change, years that turn: totals do not depend on them, nothing is negative."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from . import LONG
from .daemon import Daemon, until
from .ledger import Ledger, Samples, accounted, parsed
from .scenario import DOCUMENT, source
from .shim import Shim, needs_shim
from .writer import Writer

RATE = 1000.0
STEPS_S = (-3600.0, 3600.0, 0.0, -86_400.0 * 40, 86_400.0 * 400, 0.0) if LONG else (-3600.0, 3600.0)
"""What the wall clock is off by, in turn: an hour back, an hour ahead, and what a dead battery makes of it."""
FRESH_S = 5.0
"""Far more than from a line to the page; had anything been put off by the wall clock, it would be hours."""
ZONES = ("UTC", "Asia/Kathmandu", "America/St_Johns")
NEW_YEAR = datetime(2026, 1, 1, 0, 5, tzinfo=UTC).timestamp()


@needs_shim
def test_a_clock_that_is_set(tmp_path: Path) -> None:
    """Every step is survived: totals are exact, lines come to the page as quickly as ever, no value is negative."""
    shim = Shim(tmp_path)
    path = tmp_path / "log"
    daemon = Daemon(tmp_path, {"sources": [source("gateway", path)], "limits": DOCUMENT["limits"]})
    daemon.env |= shim.env
    writer = Writer(path, RATE)
    negative: list[str] = []

    def page() -> str | None:
        found = daemon.page()
        negative.extend(negatives(parsed(found or "")))
        return found

    ledger = Ledger(page, lambda: writer.bytes)
    try:
        daemon.start()
        ledger.start()
        writer.start()
        for offset in STEPS_S:
            time.sleep(0.7)
            shim.set(clock_offset=offset)
            wanted = writer.lines + 100
            took = until(partial(_has_read, daemon, wanted), "it goes on")
            assert took < FRESH_S
            late = daemon.samples().total("commit_timestamp_seconds") - (time.time() + offset)
            assert abs(late) < FRESH_S
        daemon.kill()
        daemon.start()
        writer.stop()
        daemon.wait_for_lines({"gateway": writer.lines})
        ledger.stop()
        last = daemon.samples()
    finally:
        daemon.close()
    assert ledger.breaches == []
    assert negative == []
    assert last.total("requests_total") + last.total("retired_requests_total") == writer.lines
    assert accounted(last) == writer.bytes
    assert "level=error" not in daemon.log.read_text()


def wait_for_event(daemon: Daemon, at: float) -> None:
    """Wait until the newest event is at this time (s, epoch)."""
    until(lambda: daemon.samples().total("source_last_event_timestamp_seconds") == at, f"the newest event is at {at}")


def _has_read(daemon: Daemon, lines: int) -> bool:
    return daemon.samples().total("lines_read_total") > lines


def negatives(found: Samples) -> list[str]:
    """Samples below 0, of which only a residual may be."""
    return [f"{key} {value}" for key, value in found.values.items() if value < 0 and "residual" not in key]


@pytest.mark.parametrize("zone", ZONES if LONG else ZONES[-1:])
def test_times_without_a_year_over_new_year(tmp_path: Path, zone: str) -> None:
    """`12-31` is of the year before the file was written, `01-01` of that year, whatever zone the daemon is in."""
    path = tmp_path / "log"
    text = "INFO {} [loggers.py:123] Engine 000: Avg prompt throughput: 120.0 tokens/s, Avg generation throughput: "
    text += "88.5 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 31.0%, Prefix cache hit rate: 52.0%\n"
    one = source("engine", path) | {"format": "vllm", "timezone": "UTC", "engine_from": "vllm-0"}
    daemon = Daemon(tmp_path, {"sources": [one], "pools": [{"name": "default"}]})
    daemon.env["TZ"] = zone
    try:
        for stamp, expected in (
            ("12-31 23:59:58", datetime(2025, 12, 31, 23, 59, 58, tzinfo=UTC)),
            ("01-01 00:00:03", datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC)),
        ):
            with path.open("a") as file:
                file.write(text.format(stamp))
            os.utime(path, (NEW_YEAR, NEW_YEAR))
            if stamp.startswith("12"):
                daemon.start()
            wait_for_event(daemon, expected.timestamp())
    finally:
        daemon.close()


@pytest.mark.parametrize("zone", ZONES if LONG else ZONES[:1])
def test_local_times_through_the_end_of_summer_time(tmp_path: Path, zone: str) -> None:
    """Times of a source's own zone are told in UTC: before the clock goes back, in the double hour, and after."""
    path = tmp_path / "log"
    one = source("gateway", path, timezone="Europe/Berlin")
    daemon = Daemon(tmp_path, {"sources": [one]})
    daemon.env["TZ"] = zone
    hours = {"01:30:00": 23.5, "02:30:00": 24.5, "03:30:00": 26.5}  # 2025-10-26; hours since 2025-10-25 00:00 UTC
    begun = datetime(2025, 10, 25, tzinfo=UTC).timestamp()
    try:
        path.touch()
        daemon.start()
        for text, hour in hours.items():
            with path.open("a") as file:
                file.write(f'{{"finished_at": "2025-10-26T{text}", "tenant": "a", "outcome": "ok"}}\n')
            wait_for_event(daemon, begun + hour * 3600)
    finally:
        daemon.close()
