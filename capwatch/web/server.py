"""The sockets: a thread for each connection, limits on everything, and a watch that cuts off whoever is too slow.

Written on plain sockets. `http.server` has no limit on the time of a request as a whole (a byte every four seconds
keeps it waiting for ever), takes 6 MB of headers and repeats input in its errors; the WSGI and ASGI servers of PyPI
bring workers, frameworks and bodies for what are five paths without any. Nothing a client does is answered by more
than a fixed line, and nothing it leaves undone holds up another.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Event, Semaphore, Thread
from typing import Final

from capwatch.web.address import listening
from capwatch.web.answer import Answer, said
from capwatch.web.request import Asked, Refused, cut, understand
from capwatch.web.shown import Shown
from capwatch.web.site import Site

CHUNK: Final = 65_536
"""Bytes received or sent at once."""
TICK_S: Final = 0.25
"""How exact the watch is."""
_FAILED: Final = said(500, "capwatch made a mistake; its log says which")
_BUSY: Final = said(503, "too many scrapes at once", ("Retry-After", "1"))

Wrap = Callable[[socket.socket], socket.socket]


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


@dataclass(eq=False, slots=True)
class _Line:
    """One connection. Its thread alone reads and writes; the watch may cut it."""

    socket: socket.socket
    until: int
    """The tick at which it is cut."""
    waiting: bool = True
    """Whether the client is to do something, and has nothing under way."""
    received: bytes = b""
    cut: bool = False

    def receive(self) -> bytes:
        """What has come in; nothing when the other side is gone."""
        try:
            self.socket.settimeout(None)  # the watch has its own patience
            return self.socket.recv(CHUNK)
        except OSError:
            return b""

    def send(self, answer: Answer, timeout: float, *, body: bool, keep: bool) -> bool:
        """Send an answer; whether it went out."""
        content = memoryview(answer.body if body else b"")
        try:
            self.socket.settimeout(timeout)
            self.socket.sendall(b"".join((answer.head(keep=keep), content[:CHUNK])))
            for begin in range(CHUNK, len(content), CHUNK):
                self.socket.sendall(content[begin : begin + CHUNK])
        except OSError:
            return False
        return True

    def end(self) -> None:
        """Stop both directions, whoever is waiting in them; the kernel's own call, since TLS must not be asked."""
        self.cut = True
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


class Server:
    """Answers on one address from `start` to `stop`."""

    def __init__(
        self,
        listen: str,
        shown: Shown,
        *,
        telemetry_path: str = "/metrics",
        reload: Callable[[], bool] | None = None,
        wrap: Wrap | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Take the address; connections wait until `start`.

        Args:
            listen: host and port, such as `127.0.0.1:10077` or `[::1]:0`; no host means every address.
            shown: what the daemon lends.
            telemetry_path: where the metrics are.
            reload: loads the configuration anew and says whether that went well; None: there is no `/-/reload`.
            wrap: makes a connection another (TLS). Called in the connection's own thread; it must leave the handshake
                to the first read, which has a time limit.
            limits: None means the usual ones.

        Raises:
            UsageError: the address cannot be had.
        """
        self._site = Site(shown, telemetry_path, reload)
        self._wrap = wrap
        self._limits = limits or Limits()
        self._scrapes = Semaphore(self._limits.scrapes)
        self._over = Event()
        self._changed = Condition()
        self._lines: dict[_Line, None] = {}  # oldest first
        self._now = 0  # ticks of the watch
        self._listener = listening(listen)

    @property
    def address(self) -> str:
        """Host and port that are listened on."""
        host, port = self._listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        """Begin to answer, in threads of its own."""
        Thread(target=self._accept, name="web", daemon=True).start()
        Thread(target=self._watch, name="web-watch", daemon=True).start()

    def stop(self) -> None:
        """Let go of the address, and of the clients: those who wait at once, an answer under way within seconds."""
        self._over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
        self._listener.close()
        with self._changed:
            for line in self._lines:
                if line.waiting:
                    line.end()
            self._changed.wait_for(lambda: not self._lines, self._limits.parting_s)
            for line in self._lines:
                line.end()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                accepted, _ = self._listener.accept()
            except OSError:  # the client is gone again, or there are no more file descriptors
                with self._changed:
                    self._make_room()
                self._over.wait(TICK_S)
                continue
            line = _Line(accepted, self._tick(self._limits.head_s))
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
                    if line.until < self._now:
                        line.end()

    def _tick(self, seconds: float) -> int:
        """The tick that lies so many seconds ahead."""
        return self._now + round(seconds / TICK_S)

    def _patience(self, line: _Line, seconds: float, *, waiting: bool) -> None:
        line.waiting, line.until = waiting, self._tick(seconds)

    def _forget(self, line: _Line) -> None:
        with self._changed:  # so that the watch never touches a number that the system has given to another file
            line.socket.close()
            del self._lines[line]
            self._changed.notify_all()

    def _serve(self, line: _Line) -> None:
        """The life of a connection."""
        try:
            if self._wrapped(line):
                while self._one(line) and not self._over.is_set():
                    self._patience(line, self._limits.idle_s, waiting=True)
                if not self._over.is_set():
                    self._part(line)
        finally:
            self._forget(line)

    def _wrapped(self, line: _Line) -> bool:
        if self._wrap is None:
            return True
        try:
            line.socket = self._wrap(line.socket)
        except OSError:
            return False
        return True

    def _one(self, line: _Line) -> bool:
        """Answer one request; whether another may follow."""
        asked = self._asked(line)
        if asked is None:
            return False
        self._patience(line, self._limits.answer_s, waiting=False)
        if isinstance(asked, Refused):
            return self._say(line, said(asked.status, asked.reason), None)
        if not self._site.is_scrape(asked):
            return self._answer(line, asked)
        if not self._scrapes.acquire(blocking=False):
            return self._say(line, _BUSY, asked)
        try:
            return self._answer(line, asked)
        finally:
            self._scrapes.release()

    def _asked(self, line: _Line) -> Asked | Refused | None:
        """The next request; None where none comes."""
        while True:
            found = cut(line.received)
            if isinstance(found, Refused):
                return found
            if found is not None:
                head, line.received = found
                return understand(head)
            if line.received:  # a request has begun; the patience with it is not renewed by more of it
                line.until = min(line.until, self._tick(self._limits.head_s))
            more = line.receive()
            if not more:
                return None
            line.received += more

    def _answer(self, line: _Line, asked: Asked) -> bool:
        answer = _FAILED
        try:
            answer = self._site.answer(asked)
        finally:  # a mistake of ours ends this thread and is told to the log, never to the client
            kept = self._say(line, answer, asked)
        return kept

    def _say(self, line: _Line, answer: Answer, asked: Asked | None) -> bool:
        """Send an answer; whether the connection goes on."""
        keep = asked is not None and asked.keep and answer is not _FAILED
        body = asked is None or asked.method != "HEAD"
        return line.send(answer, self._limits.chunk_s, body=body, keep=keep) and keep

    def _part(self, line: _Line) -> None:
        """Say that no more comes, and read on until the client hangs up: unread data would take the answer back."""
        self._patience(line, self._limits.parting_s, waiting=True)
        with suppress(OSError):
            line.socket.shutdown(socket.SHUT_WR)
        while line.receive():
            pass
