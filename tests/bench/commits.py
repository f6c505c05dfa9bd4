"""What the daemon costs: bytes written an hour, milliseconds a commit, memory, descriptors, bytes of history a day.

`python -m tests.bench.commits [SECONDS]` prints the tables of docs/performance.md, section "The daemon": three rates of
SECONDS (75) each, then an hour of log in six minutes. Lines are spread evenly over 3,000 pairs of tenant and route, the
dearest case for a delta; the daemon is the real one, on the disk of the temporary folder, scraped once a second.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from tests.end_to_end.faults.daemon import Daemon

RATES = (200, 2_000, 20_000)
TENANTS, ROUTES = 150, 20
SPARE = 4 / 3
"""Of the names that limits grant, a quarter is kept for late ones."""
WARM_S = 15.0
"""Before anything is measured: all pairs have been seen, and the first commits are over."""
TICK_S = 0.01
ENDINGS = 30_000
"""Different lines; they come again, but with another time."""
SOAK_RATE, SOAK_S, SPEED = 2_000, 360.0, 10.0
"""Lines a second of wall time, its length, and seconds of log in each."""
TURN_S = 30.0
"""Between two rotations of the soak: five minutes of log."""


class Lines:
    """Seeded requests over all pairs, made once, to be finished at any time."""

    def __init__(self) -> None:
        random = Random(3000)
        self._endings = [_ending(random, number) for number in range(ENDINGS)]
        self._next = 0

    def take(self, count: int, at: float) -> bytes:
        """So many lines, finished at a time (s, epoch)."""
        begin = b'{"finished_at": %.3f, ' % at
        chosen = (self._endings[(self._next + one) % ENDINGS] for one in range(count))
        self._next += count
        return b"".join(begin + ending for ending in chosen)


def _ending(random: Random, number: int) -> bytes:
    tenant, route = divmod(number * 7919 % (TENANTS * ROUTES), ROUTES)
    prompt, output = int(random.lognormvariate(7.0, 0.8)), int(random.lognormvariate(5.0, 0.7)) + 1
    ttft = random.lognormvariate(-1.0, 0.5)
    told = (tenant, route, prompt, random.randrange(prompt + 1), output, ttft + output * 0.02, ttft)
    return (
        b'"tenant": "team-%03d", "route": "/v1/route-%02d", "model": "chat-70b", "prompt_tokens": %d, '
        b'"cached_tokens": %d, "output_tokens": %d, "duration_s": %.4f, "ttft_s": %.4f, "outcome": "ok", '
        b'"status": 200}\n' % told
    )


@dataclass
class Measured:
    """One run."""

    seconds: float = 0.0
    lines: float = 0.0
    written: int = 0
    """Bytes, by the kernel's count for the process."""
    processor: float = 0.0
    """Seconds of one core."""
    commits: list[float] = field(default_factory=list)
    """Seconds of those seen at a scrape."""
    pages: list[float] = field(default_factory=list)
    """Seconds of every scrape."""
    memory: list[int] = field(default_factory=list)
    """Resident bytes, once a second."""
    peak: int = 0
    """The most there ever were, by the kernel's count."""
    descriptors: list[int] = field(default_factory=list)
    history: int = 0
    """Bytes of `history.db` and its log at the end."""


class Feed:
    """Writes lines at a steady rate into a file that rotates, with the log's own clock."""

    def __init__(self, path: Path, rate: float, clock: Callable[[float], float], turn_s: float) -> None:
        self.lines = 0
        self._path = path
        self._rate = rate
        self._clock = clock
        self._turn_s = turn_s
        self._made = Lines()
        self._begun = time.monotonic()
        self._turned = 0

    def until(self, moment: float) -> None:
        """Write what is due, again and again, until ``moment`` (monotonic)."""
        while (now := time.monotonic()) < moment:
            elapsed = now - self._begun
            if elapsed // self._turn_s > self._turned:
                self._turned += 1
                self._path.rename(f"{self._path}.{20260303000000 + self._turned}")
                for old in sorted(self._path.parent.glob(f"{self._path.name}.*"))[:-3]:
                    old.unlink()
            due = int(elapsed * self._rate) - self.lines
            if due:
                with self._path.open("ab", buffering=0) as file:
                    file.write(self._made.take(due, self._clock(elapsed)))
                self.lines += due
            time.sleep(TICK_S)


def run(folder: Path, feed: Feed, daemon: Daemon, seconds: float) -> Measured:
    """Feed a daemon, and look at it once a second."""
    found = Measured()
    daemon.start()
    feed.until(time.monotonic() + WARM_S)
    begun, lines, written, processor = time.monotonic(), feed.lines, _written(daemon), _processor(daemon)
    for second in range(1, int(seconds) + 1):
        feed.until(begun + second)
        asked = time.monotonic()
        samples = daemon.samples()
        found.pages.append(time.monotonic() - asked)
        found.commits.append(samples.total("commit_duration_seconds"))
        found.memory.append(_resident(daemon, "VmRSS"))
        found.descriptors.append(len(os.listdir(f"/proc/{daemon.process.pid}/fd")))
    found.seconds = time.monotonic() - begun
    found.lines = feed.lines - lines
    found.written = _written(daemon) - written
    found.processor = _processor(daemon) - processor
    found.peak = _resident(daemon, "VmHWM")
    daemon.wait_for_lines({"gateway": feed.lines})
    assert daemon.stop()[0] == 0
    found.history = sum(one.stat().st_size for one in (folder / "state").glob("history.db*"))
    return found


def _written(daemon: Daemon) -> int:
    return int(Path(f"/proc/{daemon.process.pid}/io").read_text().split("\nwrite_bytes: ")[1].split()[0])


def _processor(daemon: Daemon) -> float:
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(daemon: Daemon, name: str) -> int:
    return 1024 * int(Path(f"/proc/{daemon.process.pid}/status").read_text().split(f"{name}:")[1].split()[0])


def document(path: Path) -> dict[str, object]:
    """The configuration: one source, room for all pairs, one SLO."""
    return {
        "sources": [
            {"name": "gateway", "path": [str(path), f"{path}.*"], "format": "jsonl", "start": "beginning"},
        ],
        "slo": [{"match": {}, "ttft": "1.5s", "tpot": "60ms"}],
        "limits": {"tenants": int(TENANTS * SPARE), "tenant_routes": int(TENANTS * ROUTES * SPARE)},
    }


def measured(rate: float, seconds: float, speed: float, turn_s: float) -> Measured:
    """One run in a folder of its own; the log's clock ends at the present."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "requests.jsonl"
        daemon = Daemon(folder, document(path))
        start = time.time() - (WARM_S + seconds) * (speed - 1)
        try:
            return run(folder, Feed(path, rate, lambda elapsed: start + elapsed * speed, turn_s), daemon, seconds)
        finally:
            daemon.close()


def main() -> None:
    """Print the tables."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 75.0
    print(
        "| lines/s | written/h | a line | commit, median (p95, longest) | page | one core | peak memory | descriptors |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for rate in RATES:
        print(_row(measured(rate, seconds, 1.0, TURN_S), f"{rate:,}"), flush=True)
    soak = measured(SOAK_RATE, SOAK_S, SPEED, TURN_S)
    print(_row(soak, f"soak, {SOAK_RATE:,}"))
    third = len(soak.memory) // 3
    grown = [max(part) / 2**20 for part in (soak.memory[:third], soak.memory[third:-third], soak.memory[-third:])]
    hours = (WARM_S + SOAK_S) * SPEED / 3600
    print(f"\nMost memory in each third of the soak: {', '.join(f'{one:.0f} MiB' for one in grown)}.")
    a_day = soak.history / hours * 24 / 1e6
    print(f"History: {soak.history / 1e6:.1f} MB for {hours:.2f} h of log, {a_day:.0f} MB a day.")


def _row(one: Measured, name: str) -> str:
    commits = sorted(one.commits)
    cells = (
        name,
        f"{one.written / one.seconds * 3600 / 1e6:,.0f} MB",
        f"{one.written / one.lines:,.0f} B",
        f"{median(commits) * 1e3:.1f} ms ({commits[int(len(commits) * 0.95)] * 1e3:.0f}, {commits[-1] * 1e3:.0f})",
        f"{median(one.pages) * 1e3:.0f} ms",
        f"{one.processor / one.seconds:.0%}",
        f"{one.peak / 2**20:.0f} MiB",
        f"{min(one.descriptors)}–{max(one.descriptors)}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
