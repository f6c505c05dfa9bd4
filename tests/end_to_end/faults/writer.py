"""A writer that knows the truth: it numbers its lines, 100 to a tenant, so one less is loss and one more a double."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

TICK_S = 0.005
"""Between two writes: often enough that a rotation or a kill meets a line that is half written."""
LINES_A_TENANT = 100

Wrap = Callable[[bytes, int], bytes]
Truth = dict[str, list[float]]
"""By tenant: requests, and tokens computed, cached and output."""


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


def truth(lines: int, prefix: str = "t", *, without: Container[int] = ()) -> Truth:
    """What the first so many lines amount to, without those of some numbers."""
    found: Truth = {}
    for sequence in range(lines):
        if sequence not in without:
            prompt, cached, output = tokens(sequence)
            sums = found.setdefault(f"{prefix}{sequence // LINES_A_TENANT:06d}", [0.0, 0.0, 0.0, 0.0])
            for place, value in enumerate((1, prompt - cached, cached, output)):
                sums[place] += value
    return found


def plain(text: bytes, sequence: int) -> bytes:
    """The line as it is."""
    return text


class Writer:
    """A thread that appends lines at a steady rate through one descriptor, as a gateway does, torn in any place."""

    def __init__(
        self,
        path: Path,
        rate: float,
        *,
        prefix: str = "t",
        wrap: Wrap = plain,
        seed: int = 1,
        tick: float = TICK_S,
        torn: bool = True,
        clock: Callable[[int], float] = lambda sequence: time.time(),
        most: int = 1 << 60,
    ) -> None:
        """A writer of ``rate`` lines/s, every ``tick`` seconds what is due by then, ``torn`` within a line or not.

        ``clock`` tells when (s, epoch) the request of a line finished; after ``most`` lines it is silent.
        """
        self.path = path
        self.lines = 0
        self.bytes = 0
        """Ever written, an unfinished line included."""
        self.opened_at = 0
        """Lines written before the file that it writes to now."""
        self.finished: Counter[int] = Counter()
        """Requests that finished in a second (epoch), as the lines say."""
        self._rate = rate
        self._prefix = prefix
        self._wrap = wrap
        self._tick = tick
        self._torn = torn
        self._clock = clock
        self.most = most
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

    def truth(self, *, without: Container[int] = ()) -> Truth:
        """See `truth`."""
        return truth(self.lines, self._prefix, without=without)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is written meanwhile, and no line is half written; what is due comes afterwards."""
        with self._quiet:
            self._finish()
            yield

    def reopen(self) -> None:
        """Go on in a file of the live name, after the line in hand has been finished in the old one.

        The parts of a wrapped line are lines: the next one comes in the new file.
        """
        with self._quiet:
            begun, end, self._tail = self._tail.partition(b"\n")
            self._write(begun + end)
            os.close(self._file)
            self._file = self._opened()
            self.opened_at = self.lines

    def _opened(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stopping.is_set():
            time.sleep(self._tick)
            with self._quiet:
                due = min(int((time.monotonic() - begun) * self._rate), self.most)
                data = self._tail
                for sequence in range(self.lines, due):
                    at = round(self._clock(sequence), 3)
                    self.finished[int(at)] += 1
                    data += self._wrap(line(sequence, at, self._prefix), sequence)
                cut = max(0, len(data) - self._random.randrange(200)) if self._torn else len(data)
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
