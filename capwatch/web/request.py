"""What a client asks: a request that h11 has read (RFC 9112), cut down to what is asked of an exporter.

There is no request with a body, and what could be read in two ways is refused, so that no proxy in front sees another
request than capwatch does: h11 does that for lengths, hosts and white space, and this module for what h11 lets through
on purpose: control characters in values, other versions, lines and heads of any length and number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import h11

MOST_LINE: Final = 8_192
"""Bytes of a target, and of a line that does not end: the standard asks for 8,000, and our longest has twenty."""
MOST_HEAD: Final = 32_768
"""Bytes of a head: room for a long token of a proxy, and nothing to fill the memory with."""
MOST_HEADERS: Final = 100
"""Header lines; what servers commonly allow."""

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


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


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that cannot be understood, or is too large: status and reason for the client, who is then cut off."""

    status: int
    reason: str


UNREADABLE: Final = Refused(400, "no HTTP request that can be read in one way only")
LONG_LINE: Final = Refused(414, f"the request line is longer than {MOST_LINE} bytes")
LONG_HEAD: Final = Refused(431, f"the headers are longer than {MOST_HEAD} bytes")
MANY_HEADERS: Final = Refused(431, f"more than {MOST_HEADERS} headers")
OTHER_VERSION: Final = Refused(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")


def understand(request: h11.Request) -> Asked | Refused:
    """The request as it can be answered, or why not.

    >>> headers = [("Host", "here"), ("Accept", "a"), ("accept", "b")]
    >>> understand(h11.Request(method="GET", target="/metrics?x=1", headers=headers))
    Asked(method='GET', path='/metrics', headers={'host': 'here', 'accept': 'a, b'}, body=False)
    """
    if request.http_version not in (b"1.0", b"1.1"):
        return OTHER_VERSION
    if len(request.target) > MOST_LINE:
        return LONG_LINE
    if len(request.headers) > MOST_HEADERS:
        return MANY_HEADERS
    headers: dict[str, str] = {}
    for raw, value in request.headers:
        if _CONTROL.search(value):
            return UNREADABLE
        name, text = raw.decode("ascii"), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    body = "transfer-encoding" in headers or int(headers.get("content-length", "0")) != 0
    return Asked(request.method.decode("ascii"), _path(request.target.decode("ascii")), headers, body)


def _path(target: str) -> str:
    """The path of a target, which is a path or a whole address; anything else is as it is and names no path here."""
    if target.lower().startswith(("http://", "https://")):
        _, slash, rest = target.partition("//")[2].partition("/")
        target = slash + rest or "/"
    return target.partition("?")[0]
