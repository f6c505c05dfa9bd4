"""A long life in a short time: months of logs in which everybody comes and goes, read by one real daemon.

`python -m tests.bench.soak [--lines 10000000] [--days 60]` writes files faster than they are read, rotates and deletes
them, and prints for each what the daemon holds: memory, descriptors, its state on disk, series, and a scrape's time.
At the end every line has been counted, and memory has stopped to grow: the slope is that of the second half.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.end_to_end.faults.daemon import Daemon, until

PER_FILE: Final = 100_000
"""Lines between two rotations."""
DAY_S: Final = 86400.0
STRANGERS: Final = 20
"""One line in so many has a tenant, a route and a model that never come again."""
LATELY: Final = 3
"""Files that are there at a time, the live one among them."""
ENGINES: Final = 4
"""Replicas at a time; each rotation brings new ones, as rollouts do."""

_LINE: Final = (
    b'{"request_id": "r%d", "finished_at": %.3f, "tenant": "%b", "route": "%b", "model": "%b", "prompt_tokens": %d, '
    b'"cached_tokens": %d, "output_tokens": %d, "duration_s": 2.25, "ttft_s": 0.25, "outcome": "ok"}\n'
)
_STATISTICS: Final = (
    "INFO %s [loggers.py:366] Engine 000: Avg prompt throughput: 2048.4 tokens/s, Avg generation throughput: 260.0 "
    "tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: 14.2%%\n"
)


def document(folder: Path) -> Mapping[str, Any]:
    """A gateway's log, and those of its engines."""
    return {
        "sources": [
            {"name": "gateway", "path": [f"{folder}/requests*"], "format": "jsonl", "start": "beginning"},
            {"name": "engines", "path": [f"{folder}/vllm-*"], "format": "vllm", "start": "beginning", "pool": "chat"},
        ],
        "pools": [{"name": "chat"}],
    }


def lines(number: int, first: int, begins: float, lasts: float) -> Iterator[bytes]:
    """The lines of a file: this week's tenants, this day's routes and models, and strangers among them."""
    week, day = int(begins // (7 * DAY_S)), int(begins // DAY_S)
    for place in range(PER_FILE):
        sequence = first + place
        if place % STRANGERS:
            names = b"w%d-%d" % (week, place % 300), b"/d%d/%d" % (day, place % 7), b"m%d-%d" % (day, place % 3)
        else:
            names = b"s%d" % sequence, b"/s/x%dx" % sequence, b"s-%d" % sequence
        tokens = 100 + sequence * 7 % 997, sequence * 3 % 100, 1 + sequence * 11 % 499
        yield _LINE % (sequence, begins + lasts * place / PER_FILE, *names, *tokens)


def rotate(folder: Path, number: int, begins: float) -> None:
    """The live file gets the name of its number, the oldest goes; the engines are replaced."""
    (folder / "requests").rename(folder / f"requests.{number:06d}")
    (folder / f"requests.{number - LATELY:06d}").unlink(missing_ok=True)
    stamp = time.strftime("%m-%d %H:%M:%S", time.gmtime(begins))
    for engine in range(ENGINES):
        (folder / f"vllm-{number:06d}-{engine}.log").write_text(_STATISTICS % (stamp, engine))
        (folder / f"vllm-{number - LATELY:06d}-{engine}.log").unlink(missing_ok=True)


def soak(folder: Path, total: int, days: float) -> list[tuple[float, float]]:
    """Run; (millions of lines, MiB resident) after each file."""
    daemon, found = Daemon(folder, document(folder)), []
    files = -(-total // PER_FILE)
    lasts = days * DAY_S / files
    begun = time.time() - days * DAY_S
    daemon.start()
    try:
        for number in range(files):
            with (folder / "requests").open("wb", buffering=1 << 20) as file:
                file.writelines(lines(number, number * PER_FILE, begun + number * lasts, lasts))
            read = (number + 1) * PER_FILE
            daemon.wait_for_lines({"gateway": max(0, read - PER_FILE)})
            rotate(folder, number, begun + number * lasts)
            found.append((read / 1e6, resident(daemon)))
            tell(daemon, *found[-1])
        daemon.wait_for_lines({"gateway": files * PER_FILE})
        samples = daemon.samples()
        counted = samples.total("requests_total") + samples.total("retired_requests_total")
        assert counted == files * PER_FILE == samples.total("lines_counted_total", source="gateway"), counted
        assert daemon.stop()[0] == 0
        until(lambda: daemon.process.poll() is not None, "the daemon has ended")
    finally:
        daemon.close()
    return found


def resident(daemon: Daemon) -> float:
    """MiB of the daemon's memory."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def tell(daemon: Daemon, millions: float, mib: float) -> None:
    """Print where it stands."""
    begun = time.perf_counter()
    samples = daemon.samples()
    took = time.perf_counter() - begun
    descriptors = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    state = sum(path.stat().st_size for path in (daemon.folder / "state").iterdir()) / 2**20
    series, retired = samples.total("series"), samples.total("retired_requests_total")
    print(
        f"{millions:8.1f} M lines  {mib:7.1f} MiB  {descriptors:3d} descriptors  {state:7.1f} MiB of state  "
        f"{series:7.0f} series  {retired:9.0f} retired  scrape {took:.2f} s",
        flush=True,
    )


def slope(found: list[tuple[float, float]]) -> float:
    """MiB for each million lines, over the second half."""
    late = found[len(found) // 2 :]
    return statistics.linear_regression(*zip(*late, strict=True)).slope


def main() -> int:
    """Say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--days", type=float, default=60.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        begun = time.monotonic()
        found = soak(Path(folder), chosen.lines, chosen.days)
        print(f"{time.monotonic() - begun:.0f} s; {slope(found):+.2f} MiB for each million lines in the second half")
    return 0


if __name__ == "__main__":
    sys.exit(main())
