"""Lines that nobody should write: 20,000 bad ones a second, one without end, parts whose end never comes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.end_to_end.faults.daemon import Daemon

from .daemon import peak_mib, source

CANARY = "SYNTHETIC-PROMPT-CANARY"
BAD: dict[str, list[bytes]] = {
    "malformed": [f'{{"prompt": "{CANARY}"'.encode(), CANARY.encode(), b"\0" + CANARY.encode(), b"[1, 2]"],
    "bad_utf8": [b'{"finished_at": 1, "tenant": "\xff' + CANARY.encode() + b'"}'],
    "bad_time": [f'{{"duration_s": 1.0, "finished_at": "{CANARY}"}}'.encode()],
    "too_long": [CANARY.encode() * 200],
}
LINE_BYTES = 4096
RATE, SECONDS, TICK_S = 20_000, 3.0, 0.05
GOOD = b'{"finished_at": 1772529300, "tenant": "acme", "outcome": "ok"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty log."""
    found = tmp_path / "log"
    found.touch()
    return found


def started(path: Path, line_bytes: int, wrapper: str = "none") -> Iterator[Daemon]:
    """A daemon on the log, with this longest line."""
    document = {"sources": [source(path, wrapper=wrapper)], "limits": {"line_bytes": line_bytes}}
    daemon = Daemon(path.parent, document)
    daemon.start()
    yield daemon
    daemon.close()


@pytest.fixture
def daemon(path: Path) -> Iterator[Daemon]:
    """A daemon that takes lines of 4 KiB."""
    yield from started(path, LINE_BYTES)


@pytest.fixture
def roomy(path: Path) -> Iterator[Daemon]:
    """A daemon that takes lines of 8 MiB."""
    yield from started(path, 8 << 20)


@pytest.fixture
def joining(path: Path) -> Iterator[Daemon]:
    """A daemon that joins the parts of a container's lines of 8 MiB."""
    yield from started(path, 8 << 20, "cri")


def test_the_own_log_stays_small_and_quotes_no_line(daemon: Daemon, path: Path) -> None:
    """20,000 bad lines a second: every one counted with its reason, a sentence or two of log, none of their text."""
    kinds = [(reason, line) for reason, lines in BAD.items() for line in lines]
    written: Counter[str] = Counter()
    endless = cycle(kinds)
    begun = time.monotonic()
    with path.open("ab", buffering=0) as file:
        for tick in range(int(SECONDS / TICK_S)):
            chosen = list(islice(endless, int(RATE * TICK_S)))
            written.update(reason for reason, _ in chosen)
            file.write(b"".join(line + b"\n" for _, line in chosen))
            time.sleep(max(0.0, begun + (tick + 1) * TICK_S - time.monotonic()))
    daemon.wait_for_lines({"log": written.total()})
    found = daemon.samples()
    dropped = {reason: n for (reason,), n in found.by("lines_dropped_total", "reason").items() if n}
    log = daemon.log.read_text()
    assert (dropped, found.total("lines_read_total")) == (dict(written), written.total())
    assert (CANARY in log, "lines dropped" in log, len(log.splitlines()) < 10) == (False, True, True)
    assert daemon.process.poll() is None


def test_a_line_without_end_takes_no_memory(roomy: Daemon, path: Path) -> None:
    """200 MiB without a newline, then its end: one drop, twice the longest line in memory, the next line whole."""
    path.write_bytes(GOOD)
    roomy.wait_for_lines({"log": 1})
    before = peak_mib(roomy)
    with path.open("ab") as file:
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + GOOD)
    roomy.wait_for_lines({"log": 3})
    found = roomy.samples()
    assert [found.total("lines_dropped_total", reason="too_long"), found.total("requests_total")] == [1, 2]
    assert peak_mib(roomy) - before < 2 * 8 + 8


def test_parts_without_end_take_no_memory(joining: Daemon, path: Path) -> None:
    """100 MiB of parts of one record, then its end: one drop, each part a line, the next record whole."""
    stamp = b"2026-03-03T09:15:02.43Z stdout "
    path.write_bytes(stamp + b"F " + GOOD)
    joining.wait_for_lines({"log": 1})
    before, parts = peak_mib(joining), 6400
    with path.open("ab") as file:
        for _ in range(parts):
            file.write(stamp + b"P " + b"x" * (16 << 10) + b"\n")
        file.write(stamp + b"F end\n" + stamp + b"F " + GOOD)
    joining.wait_for_lines({"log": parts + 3})
    found = joining.samples()
    fates = [found.total("lines_skipped_total"), found.total("lines_dropped_total", reason="too_long")]
    assert (fates, found.total("requests_total")) == ([parts, 1], 2)
    assert peak_mib(joining) - before < 2 * 8 + 64, "one read, what is gathered of it, and the open record"
