"""What a client asks: the head of an HTTP/1 request, cut from a stream of bytes and understood (RFC 9112, RFC 9110).

Understood is what is asked of an exporter and no more: there is no request with a body, and whatever else could be read
in two ways (folded headers, control characters, two lengths) is refused, so that no proxy in front sees another request
than capwatch does. Lines may end in a bare line feed, as the standard allows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOST_LINE: Final = 8_192
"""Bytes of a request line: the standard asks for 8,000 at least, and the longest path here has twenty."""
MOST_HEAD: Final = 32_768
"""Bytes of a head: room for a long token of a proxy, and nothing to fill the memory with."""
MOST_HEADERS: Final = 100
"""Header lines; what servers commonly allow."""

_END = re.compile(rb"\r?\n\r?\n")
_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/([0-9])\.([0-9])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[!-~\x80-\xff][\t -~\x80-\xff]*)?)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that can be answered."""

    method: str
    path: str
    """As it was sent, without the query: not decoded and not tidied, since only exact paths exist."""
    headers: Mapping[str, str]
    """By name in lower case; those given several times are joined by commas."""
    body: bool
    """Whether a body is announced. None is ever read, so the connection ends with the answer."""
    keep: bool
    """Whether the connection stays open for another request."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that cannot be understood, or is too large: status and reason for the client, who is then cut off."""

    status: int
    reason: str


def cut(received: bytes) -> tuple[bytes, bytes] | Refused | None:
    r"""The first head in what was received, and what follows it. None means that more must come.

    >>> cut(b"GET / HTTP/1.0\r\n\r\nGET"), cut(b"GET / HT")
    ((b'GET / HTTP/1.0', b'GET'), None)
    """
    received = received.removeprefix(b"\r\n")  # clients of old send one after a body
    end = _END.search(received, 0, MOST_HEAD)
    line = received.find(b"\n", 0, MOST_LINE)
    if line < 0 and len(received) >= MOST_LINE:
        return Refused(414, f"the request line is longer than {MOST_LINE} bytes")
    if end is not None:
        return received[: end.start()], received[end.end() :]
    if len(received) >= MOST_HEAD:
        return Refused(431, f"the headers are longer than {MOST_HEAD} bytes")
    return None


def understand(head: bytes) -> Asked | Refused:
    r"""The request behind a head.

    >>> asked = understand(b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\nAccept: a\r\naccept: b")
    >>> asked.path, asked.headers["accept"], asked.keep
    ('/metrics', 'a, b', True)
    >>> understand(b"GET /metrics HTTP/1.1").reason
    'exactly one Host header is needed'
    """
    first, *rest = (line.removesuffix("\r") for line in head.decode("latin-1").split("\n"))
    line = _LINE.fullmatch(first)
    if line is None:
        return Refused(400, "no HTTP request line")
    method, target, major, minor = line.groups()
    if major != "1":
        return Refused(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
    if len(rest) > MOST_HEADERS:
        return Refused(431, f"more than {MOST_HEADERS} headers")
    headers: dict[str, str] = {}
    for text in rest:
        header = _HEADER.fullmatch(text)
        if header is None:
            return Refused(400, "a header line cannot be read")
        name, value = header[1].lower(), header[2].rstrip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    modern = minor != "0"
    hosts = sum(text[:5].lower() == "host:" for text in rest)
    if hosts > 1 or (modern and not hosts):
        return Refused(400, "exactly one Host header is needed")
    body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
    closing = "close" in (word.strip().lower() for word in headers.get("connection", "").split(","))
    return Asked(method, _path(target), headers, body, keep=modern and not body and not closing)


def _path(target: str) -> str:
    """The path of a target, which is a path or a whole address; anything else is as it is and names no path here."""
    if target.lower().startswith(("http://", "https://")):
        _, slash, rest = target.partition("//")[2].partition("/")
        target = slash + rest or "/"
    return target.partition("?")[0]
