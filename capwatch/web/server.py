"""The server: a thread for each connection, limits on everything, and a watch that cuts off whoever is too slow.

HTTP itself is h11's (`dialogue`); what is here is what no server of PyPI does. Those looked at, and what they lack: in
cheroot the TLS handshake is made by the thread that accepts, so that one silent client stops all others; waitress has
no TLS; uvicorn and hypercorn have no limit on the time that the head of a request takes, and none takes a certificate
anew without a restart. `http.server` has neither limit, takes 6 MB of headers and repeats input in its errors. Nothing
a client does is answered by more than a fixed line, and nothing it leaves undone holds up another.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Condition, Event, Semaphore, Thread
from typing import Final

from capwatch.errors import UsageError
from capwatch.web.address import listening
from capwatch.web.answer import Answer, said
from capwatch.web.door import Door
from capwatch.web.line import Line
from capwatch.web.request import Asked, Refused
from capwatch.web.shown import Shown
from capwatch.web.site import Site

TICK_S: Final = 0.25
"""How exact the watch is."""
STUCK: Final = 4
"""Looks of the watch for which a client has taken nothing before it may lose its place to another."""
_FAILED: Final = said(500, "capwatch made a mistake; its log says which")
_BUSY: Final = said(503, "too many scrapes at once", ("Retry-After", "1"))


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of what a server bears; seconds are kept to a quarter."""

    head_s: float = 5.0
    """From the connection, or the first byte of a later request, to the end of the headers (TLS handshake included)."""
    idle_s: float = 120.0
    """Between two requests; Prometheus scrapes once a minute or more often."""
    chunk_s: float = 5.0
    """For a client to take 64 KiB of an answer: more than 13 kB/s."""
    answer_s: float = 60.0
    """For a whole answer, made and sent; no scrape may take longer, since most intervals are a minute at most."""
    parting_s: float = 2.0
    """For a client to hang up after the last answer, so that it can read it."""
    scrapes: int = 40
    """Scrapes at once, from the request to the last byte of its answer."""
    connections: int = 256
    """Open at once; one more cuts off the one that has been waiting for longest without asking anything."""


class Server:
    """Answers on one address from `start` to `stop`."""

    def __init__(
        self,
        listen: Sequence[str],
        shown: Shown,
        *,
        telemetry_path: str = "/metrics",
        reload: Callable[[], bool] | None = None,
        door: Door | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Take the addresses; connections wait until `start`.

        Args:
            listen: hosts and ports, such as `127.0.0.1:10077` or `[::1]:0`; no host means every address.
            shown: what the daemon lends.
            telemetry_path: where the metrics are.
            reload: loads the configuration anew and says whether that went well; None: there is no `/-/reload`.
            door: who may come in, and by TLS or not; None: everybody.
            limits: None means the usual ones.

        Raises:
            UsageError: an address cannot be had.
        """
        self._site = Site(shown, telemetry_path, reload)
        self._door = door or Door()
        self._limits = limits or Limits()
        self._scrapes = Semaphore(self._limits.scrapes)
        self._over = Event()
        self._changed = Condition()
        self._lines: dict[Line, None] = {}  # oldest first
        self._now = 0  # ticks of the watch
        self._listeners: list[socket.socket] = []
        try:
            for address in listen:
                self._listeners.append(listening(address))
        except UsageError:
            self._close()
            raise

    @property
    def addresses(self) -> list[str]:
        """Hosts and ports that are listened on."""
        found = (listener.getsockname()[:2] for listener in self._listeners)
        return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in found]

    def start(self) -> None:
        """Begin to answer, in threads of its own."""
        for listener in self._listeners:
            Thread(target=self._accept, args=(listener,), name="web", daemon=True).start()
        Thread(target=self._watch, name="web-watch", daemon=True).start()

    def stop(self) -> None:
        """Let go of the address, and of the clients: those who wait at once, an answer under way within seconds."""
        self._over.set()
        self._close()
        with self._changed:
            for line in self._lines:
                if line.waiting:
                    line.end()
            self._changed.wait_for(lambda: not self._lines, self._limits.parting_s)
            for line in self._lines:
                line.end()

    def _close(self) -> None:
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while not self._over.is_set():
            try:
                accepted, _ = listener.accept()
            except OSError:  # the client is gone again, or there are no more file descriptors
                with self._changed:
                    self._make_room()
                self._over.wait(TICK_S)
                continue
            line = Line(accepted, self._tick(self._limits.head_s))
            with self._changed:
                if sum(not one.cut for one in self._lines) >= self._limits.connections and not self._make_room():
                    accepted.close()
                    continue
                self._lines[line] = None
            try:
                Thread(target=self._serve, args=(line,), name="web-client", daemon=True).start()
            except RuntimeError:  # no more threads
                self._forget(line)

    def _make_room(self) -> bool:
        """Cut off the client that would be first to lose the watch's patience; whether there was one to cut."""
        waiting = [line for line in self._lines if line.waiting and not line.cut]
        if waiting:
            min(waiting, key=lambda line: line.until).end()
        return bool(waiting)

    def _watch(self) -> None:
        while not self._over.wait(TICK_S):
            self._now += 1
            with self._changed:
                for line in self._lines:
                    line.look()
                    if line.until < self._now:
                        line.end()

    def _tick(self, seconds: float) -> int:
        """The tick that lies so many seconds ahead."""
        return self._now + round(seconds / TICK_S)

    def _patience(self, line: Line, seconds: float, *, waiting: bool) -> None:
        line.waiting, line.until = waiting, self._tick(seconds)

    def _forget(self, line: Line) -> None:
        with self._changed:  # so that the watch never touches a number that the system has given to another file
            line.socket.close()
            del self._lines[line]
            self._changed.notify_all()

    def _serve(self, line: Line) -> None:
        """The life of a connection."""
        try:
            if self._let_in(line):
                while self._one(line) and not self._over.is_set():
                    self._patience(line, self._limits.idle_s, waiting=True)
                if not self._over.is_set():
                    self._patience(line, self._limits.parting_s, waiting=True)
                    line.part(self._limits.parting_s)
        finally:
            self._forget(line)

    def _let_in(self, line: Line) -> bool:
        """Make it TLS where that is asked; whether the client may stay."""
        try:
            line.socket = self._door.wrap(line.socket)  # the watch must be able to cut the handshake
            return self._door.greet(line.socket)
        except (OSError, ValueError):  # ValueError: cut off between the two
            return False

    def _one(self, line: Line) -> bool:
        """Answer one request; whether another may follow."""
        asked = self._asked(line)
        if asked is None:
            return False
        self._patience(line, self._limits.answer_s, waiting=False)
        if isinstance(asked, Refused):
            return self._say(line, said(asked.status, asked.reason), keep=False)
        if (turned_away := self._door.admit(asked)) is not None:
            return self._say(line, turned_away)
        if not self._site.is_scrape(asked):
            return self._answer(line, asked)
        if not self._take_place():
            return self._say(line, _BUSY)
        try:
            line.scraping, line.sent = True, 0
            return self._answer(line, asked)
        finally:
            line.scraping = False
            self._scrapes.release()

    def _take_place(self) -> bool:
        """Take a place among the scrapes, if need be that of a client which takes nothing more of its answer."""
        if self._scrapes.acquire(blocking=False):
            return True
        with self._changed:
            stuck = [one for one in self._lines if one.scraping and one.sent and one.still >= STUCK and not one.cut]
            if stuck:
                max(stuck, key=lambda one: one.still).end()
        return bool(stuck) and self._scrapes.acquire(timeout=TICK_S)

    def _asked(self, line: Line) -> Asked | Refused | None:
        """The next request; None where none comes."""
        while (asked := line.talk.asked()) is None:
            if line.talk.begun:  # the patience with a request is not renewed by more of it
                line.until = min(line.until, self._tick(self._limits.head_s))
            more = line.receive()
            if not more:
                return None
            line.talk.hear(more)
        return asked

    def _answer(self, line: Line, asked: Asked) -> bool:
        answer = _FAILED
        try:
            answer = self._site.answer(asked)
        finally:  # a mistake of ours ends this thread and is told to the log, never to the client
            kept = self._say(line, answer, keep=answer is not _FAILED)
        return kept

    def _say(self, line: Line, answer: Answer, *, keep: bool = True) -> bool:
        """Send an answer; whether the connection goes on, which the client may not want either."""
        keep = keep and line.talk.goes_on
        dressed = replace(answer, headers=(*answer.headers, *self._door.headers))
        return line.send(dressed, self._limits.chunk_s, keep=keep) and keep
