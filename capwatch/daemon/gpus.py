"""Looking at the GPUs: one thread that asks their library at intervals, and may hang in it without harm.

It is the only one that ever calls the library. Where a call does not come back there is no second thread to try it
again: what was known is withdrawn, and comes back with the call.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Literal

from capwatch.errors import LibraryError
from capwatch.gpus import Library
from capwatch.record import GpuReading

INTERVAL_S: Final = 5.0
"""Between two readings."""
PATIENCE_S: Final = 30.0
"""Without a reading for so long, nothing is known of any card."""
FIRST_PAUSE_S: Final = 10.0
"""Before the library is opened again that did not answer, or has lost a card; each further time twice as long."""
LONGEST_PAUSE_S: Final = 300.0
END_S: Final = 0.5
"""For the thread to end with the daemon; one that hangs in a call ends with the process."""

Mode = Literal["auto", "on", "off"]

_log = logging.getLogger(__name__)


class GpuWatch:
    """The thread, and what it has to tell. It lives as long as the daemon, over all reloads."""

    def __init__(self, open_library: Callable[[], Library], clock: Callable[[], float] = time.monotonic) -> None:
        """Nobody looks yet; ``clock`` tells seconds that never go back."""
        self._open = open_library
        self._clock = clock
        self._mode: Mode = "off"
        self._told: SimpleQueue[GpuReading | None] = SimpleQueue()
        self._told_at = clock()
        self._known = True
        """Whether anything is shown that would have to be withdrawn; at the start, what the last daemon left."""
        self._awake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="gpus", daemon=True)

    def want(self, mode: Mode) -> None:
        """Look from now on, or no more; `on` says aloud why nothing can be seen."""
        self._mode = mode
        self._awake.set()
        if mode != "off" and not self._thread.is_alive() and not self._stopping:
            self._thread.start()

    def stop(self) -> None:
        """End, without waiting for a call that hangs."""
        self._stopping = True
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join(END_S)

    def news(self) -> list[GpuReading | None]:
        """Readings since the last call; None where nothing is known any more, which is told once."""
        found: list[GpuReading | None] = []
        while True:
            try:
                found.append(self._told.get_nowait())
            except Empty:
                break
        if self._mode == "off":
            found = [None] if self._known else []
        elif found:
            self._told_at = self._clock()
        elif self._known and self._clock() - self._told_at > PATIENCE_S:
            found = [None]
        if found:
            self._known = found[-1] is not None
        return found

    def _run(self) -> None:
        look = _Look(self._open)
        while not self._stopping:
            self._awake.clear()
            if self._mode == "off":
                look.end()
                self._awake.wait()
                continue
            self._told.put(look.read(self._clock(), aloud=self._mode == "on"))
            self._awake.wait(look.pause)
        look.end()


class _Look:
    """The library while it is open, and when it is opened again. The thread's own."""

    def __init__(self, open_library: Callable[[], Library]) -> None:
        self._open = open_library
        self._library: Library | None = None
        self._seen: set[str] = set()
        """UUIDs of cards that have answered, without MIG instances, which come and go as somebody wants."""
        self._pause = FIRST_PAUSE_S
        self._again_at = 0.0
        self._said = ""
        self.pause = 0.0
        """Seconds until the next reading."""

    def read(self, now: float, *, aloud: bool) -> GpuReading | None:
        """A reading at ``now`` (s, any origin); None where the library does not answer."""
        try:
            if self._library is None:
                self._library = self._open()
            reading = self._library.read()
        except LibraryError as error:
            self._say(str(error), aloud=aloud)
            self.end()
            self.pause = self._longer()
            return None
        self.pause = INTERVAL_S
        cards = {card.uuid for card in reading.cards if ":" not in card.gpu}
        missing = self._seen - cards
        self._seen |= cards
        if reading.whole and not missing:
            self._say("", aloud=True)
            self._pause, self._again_at = FIRST_PAUSE_S, 0.0
            return reading
        # A card that has fallen off its bus is found again only by a library that was opened after it came back.
        self._say(f"{len(missing) or 'some'} of the GPUs do not answer", aloud=True)
        if not self._again_at:
            self._again_at = now + self._longer()
        elif now >= self._again_at:
            self.end()
            self._again_at = now + self._longer()
        return reading

    def end(self) -> None:
        """Give the library back."""
        library, self._library = self._library, None
        if library is not None:
            library.close()

    def _longer(self) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE_S)
        return pause

    def _say(self, problem: str, *, aloud: bool) -> None:
        """Say what is new, once."""
        if problem != self._said:
            log = _log.warning if aloud and problem else _log.info
            log("GPUs: %s", problem or "all of them answer")
            self._said = problem
