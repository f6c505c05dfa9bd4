"""One connection: its socket, what is said over it, and how long it has."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, field

from capwatch.web.answer import Answer
from capwatch.web.dialogue import RECEIVED, Dialogue


@dataclass(eq=False, slots=True)
class Line:
    """Its thread alone reads and writes; the watch may cut it."""

    socket: socket.socket
    until: int
    """The tick at which it is cut."""
    waiting: bool = True
    """Whether the client is to do something, and has nothing under way."""
    talk: Dialogue = field(default_factory=Dialogue)
    cut: bool = False
    scraping: bool = False
    """Whether it takes one of the places for scrapes."""
    sent: int = 0
    """Pieces of the answer that have gone out or are under way."""
    still: int = 0
    """Looks of the watch since another piece went out."""
    _seen: int = 0

    def look(self) -> None:
        """See whether the client takes its answer."""
        self.still = self.still + 1 if self.sent == self._seen else 0
        self._seen = self.sent

    def receive(self) -> bytes:
        """What has come in; nothing when the other side is gone."""
        try:
            self.socket.settimeout(None)  # the watch has its own patience
            return self.socket.recv(RECEIVED)
        except OSError:
            return b""

    def send(self, answer: Answer, timeout: float, *, keep: bool) -> bool:
        """Send an answer, each piece in so many seconds; whether it went out."""
        try:
            self.socket.settimeout(timeout)
            for piece in self.talk.said(answer, keep=keep):
                self.sent += 1
                self.socket.sendall(piece)
        except OSError:
            return False
        return True

    def part(self, timeout: float) -> None:
        """Say that no more comes, and read on until the client hangs up: unread data would take the answer back."""
        with suppress(OSError, ValueError):  # ValueError: TLS has ended already
            if isinstance(self.socket, ssl.SSLSocket):
                self.socket.settimeout(timeout)
                self.socket = self.socket.unwrap()
            self.socket.shutdown(socket.SHUT_WR)
        while self.receive():
            pass

    def end(self) -> None:
        """Stop both directions, whoever is waiting in them; the kernel's own call, since TLS must not be asked."""
        self.cut = True
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
