"""A writer that knows the truth: it numbers its lines, 100 to a tenant, so one less is loss and one more a double."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

TICK_S = 0.005
"""Between two writes: often enough that a rotation or a kill meets a line that is half written."""
LINES_A_TENANT = 100

Wrap = Callable[[bytes, int], bytes]
Steps = Iterator[None]


def line(sequence: int, at: float, prefix: str = "t") -> bytes:
    """One finished request, in as many bytes as every other one, and without an id that would hide a double."""
    told = (at, prefix.encode(), sequence // LINES_A_TENANT, sequence // LINES_A_TENANT % 3, *tokens(sequence))
    return (
        b'{"finished_at": %.3f, "tenant": "%b%06d", "route": "/v%d", "model": "chat", "prompt_tokens": %4d, '
        b'"cached_tokens": %3d, "output_tokens": %3d, "duration_s": 2.250, "ttft_s": 0.250, "outcome": "ok"}\n' % told
    )


def tokens(sequence: int) -> tuple[int, int, int]:
    """Prompt, cached and output tokens of a line."""
    return 100 + sequence * 7 % 997, sequence * 3 % 100, 1 + sequence * 11 % 499


def plain(text: bytes, sequence: int) -> bytes:
    """The line as it is."""
    return text


def cri(text: bytes, sequence: int) -> bytes:
    """The line as a container runtime writes it: in one to four parts, each a line of its own."""
    stamp = b"2026-03-03T09:15:02.430000190Z stdout"
    body = text.rstrip(b"\n")
    size = -(-len(body) // (1 + sequence % 4))
    parts = [body[begin : begin + size] for begin in range(0, len(body), size)]
    return b"".join(b"%b %b %b\n" % (stamp, b"F" if part is parts[-1] else b"P", part) for part in parts)


class Writer:
    """A thread that appends lines at a steady rate through one descriptor, as a gateway does, torn in any place."""

    def __init__(self, path: Path, rate: float, *, prefix: str = "t", wrap: Wrap = plain, seed: int = 1) -> None:
        self.path = path
        self.lines = 0
        self.bytes = 0
        """Ever written, an unfinished line included."""
        self._rate = rate
        self._prefix = prefix
        self._wrap = wrap
        self._random = Random(seed)
        self._tail = b""
        self._quiet = threading.RLock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._file = self._opened()

    def start(self) -> Writer:
        """Begin to write."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Finish the last line and end."""
        self._stopping.set()
        self._thread.join()
        self._finish()
        os.close(self._file)

    def truth(self) -> dict[str, list[float]]:
        """By tenant: requests, and tokens computed, cached and output."""
        found: dict[str, list[float]] = {}
        for sequence in range(self.lines):
            prompt, cached, output = tokens(sequence)
            sums = found.setdefault(f"{self._prefix}{sequence // LINES_A_TENANT:06d}", [0.0, 0.0, 0.0, 0.0])
            for place, value in enumerate((1, prompt - cached, cached, output)):
                sums[place] += value
        return found

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is written meanwhile, and no line is half written; what is due comes afterwards."""
        with self._quiet:
            self._finish()
            yield

    def reopen(self) -> None:
        """Go on in a file of the live name, after the line in hand has been finished in the old one."""
        with self._quiet:
            self._finish()
            os.close(self._file)
            self._file = self._opened()

    def _opened(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stopping.is_set():
            time.sleep(TICK_S)
            with self._quiet:
                due = int((time.monotonic() - begun) * self._rate)
                data, now = self._tail, time.time()
                for sequence in range(self.lines, due):
                    data += self._wrap(line(sequence, now, self._prefix), sequence)
                cut = max(0, len(data) - self._random.randrange(200))
                self.lines = max(self.lines, due)
                self._write(data[:cut])
                self._tail = data[cut:]

    def _finish(self) -> None:
        tail, self._tail = self._tail, b""
        self._write(tail)

    def _write(self, data: bytes) -> None:
        self.bytes += len(data)  # before the write, since the reader may be quicker than this thread
        while data:
            data = data[os.write(self._file, data) :]


# Rotations as generators: between two steps a test may kill, start or wait, while the writer writes on.


def rename(writer: Writer, number: int) -> Steps:
    """The live file gets a name with a date; the writer goes on in the old one until it opens the new one."""
    writer.path.rename(f"{writer.path}.20260303-{number:06d}")
    yield
    writer.reopen()
    yield


def chain(writer: Writer, number: int) -> Steps:
    """Logrotate with `rotate 3`: .2 → .3, .1 → .2, live → .1; the oldest goes."""
    for one in (2, 1, 0):
        old = Path(f"{writer.path}.{one}") if one else writer.path
        if old.exists():
            old.rename(f"{writer.path}.{one + 1}")
            yield
    writer.reopen()
    yield


def copytruncate(writer: Writer, number: int) -> Steps:
    """The live file is copied under the glob in pieces, then cut; nothing is written in between, so nothing is lost."""
    with writer.quiet():
        copy = Path(f"{writer.path}.20260303-{number:06d}")
        with writer.path.open("rb") as source, copy.open("wb", buffering=0) as target:
            while piece := source.read(256 << 10):
                target.write(piece)
                yield
        os.truncate(writer.path, 0)
        yield


def recreate(writer: Writer, number: int) -> Steps:
    """The live file is deleted and made anew; what was in it can be read by whoever has it open."""
    writer.path.unlink()
    yield
    writer.reopen()
    yield


Rotation = Callable[[Writer, int], Steps]
ROTATIONS: dict[str, Rotation] = {
    "rename": rename,
    "chain": chain,
    "copytruncate": copytruncate,
    "recreate": recreate,
}
