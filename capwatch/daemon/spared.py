"""What many ask for and one thread makes: an answer that stands for a moment, so that asking often costs nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Spared(Generic[T]):
    """The last value of a function, made anew when it is older than so many seconds; one thread at a time makes it."""

    def __init__(self, make: Callable[[], T], seconds: float) -> None:
        self._make = make
        self._seconds = seconds
        self._lock = threading.Lock()
        self._made: tuple[float, T] | None = None

    def value(self) -> T:
        """The value. Whoever asks while it is made waits for it."""
        with self._lock:
            now = time.monotonic()
            if self._made is None or now - self._made[0] >= self._seconds:
                self._made = now, self._make()
            return self._made[1]
