"""Progress of long work: a line on a terminal that renews itself, nothing where stderr is piped."""

from __future__ import annotations

import sys

_WIDTH = 30


class Progress:
    """Shows how much of ``whole`` is done."""

    def __init__(self, whole: int, what: str) -> None:
        self._whole = max(whole, 1)
        self._what = what
        self._shown = sys.stderr.isatty()
        self._last = -1

    def show(self, done: int) -> None:
        """Renew the line, if a whole per cent has been added."""
        percent = min(100, 100 * done // self._whole)
        if self._shown and percent > self._last:
            self._last = percent
            bar = "#" * (percent * _WIDTH // 100)
            print(f"\r{self._what} [{bar:{_WIDTH}}] {percent:3} %", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self._shown and self._last >= 0:
            print("\r" + " " * (_WIDTH + len(self._what) + 12) + "\r", end="", file=sys.stderr, flush=True)
