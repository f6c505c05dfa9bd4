"""What is said: a status, a body and the headers that go with every answer."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

TEXT: Final = "text/plain; charset=utf-8"
NOTHING_ELSE: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""A content security policy under which a document loads and starts nothing, sends nothing and is framed nowhere."""
LEAST: Final = 1024
"""Bytes below which packing saves no packet."""
LEVEL: Final = 5
"""Phones are far away: a third less than the fastest level gives, for some milliseconds."""
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

    def packed(self, *, compressed: bool) -> Answer:
        """As gzip where the client takes that (``compressed``) and it is worth it; caches are told what it hangs on."""
        headers = (*self.headers, ("Vary", "Accept-Encoding"))
        if not compressed or len(self.body) < LEAST:
            return replace(self, headers=headers)
        body = gzip.compress(self.body, LEVEL, mtime=0)  # HEAD and GET must agree
        return replace(self, body=body, headers=(*headers, ("Content-Encoding", "gzip")))

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
