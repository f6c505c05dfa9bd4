"""What is said: a status, a body and the headers that go with every answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

TEXT: Final = "text/plain; charset=utf-8"
NOTHING_ELSE: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""A content security policy under which a document loads and starts nothing, sends nothing and is framed nowhere."""
_ALWAYS: Final[Mapping[str, str]] = {
    "Server": "capwatch",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, whole before its first byte is sent. Headers hold no text from outside."""

    status: int
    body: bytes
    type: str = TEXT
    policy: str = NOTHING_ELSE
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def phrase(self) -> str:
        """The status in words."""
        return HTTPStatus(self.status).phrase

    def lines(self) -> list[tuple[str, str]]:
        """The headers, each name once; what is given later stands."""
        told = {
            "Content-Type": self.type,
            "Content-Length": str(len(self.body)),
            "Content-Security-Policy": self.policy,
            **_ALWAYS,
        }
        return [*(told | dict(self.headers)).items()]


def said(status: int, text: str, *headers: tuple[str, str]) -> Answer:
    """One line of plain text."""
    return Answer(status, f"{text}\n".encode(), headers=headers)
