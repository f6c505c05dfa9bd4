"""What is said: a status, a body and the headers that go with every answer."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

TEXT: Final = "text/plain; charset=utf-8"
NOTHING_ELSE: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""A content security policy under which a document loads and starts nothing, sends nothing and is framed nowhere."""
_ALWAYS: Final = (
    "Server: capwatch\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, whole before its first byte is sent. Headers hold no text from outside."""

    status: int
    body: bytes
    type: str = TEXT
    policy: str = NOTHING_ELSE
    headers: tuple[tuple[str, str], ...] = ()

    def head(self, *, keep: bool) -> bytes:
        """Status line and headers; ``keep`` says whether the connection stays open."""
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            f"Content-Type: {self.type}",
            f"Content-Length: {len(self.body)}",
            f"Content-Security-Policy: {self.policy}",
            *(f"{name}: {value}" for name, value in self.headers),
            f"Connection: {'keep-alive' if keep else 'close'}",
        ]
        return ("\r\n".join(lines) + "\r\n" + _ALWAYS + "\r\n").encode("ascii")


def said(status: int, text: str, *headers: tuple[str, str]) -> Answer:
    """One line of plain text."""
    return Answer(status, f"{text}\n".encode(), headers=headers)
