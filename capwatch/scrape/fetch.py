"""One page by HTTP, within a time and a size whatever the other side does; what goes wrong is a value, not an error."""

from __future__ import annotations

import re
import socket
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLError
from threading import Timer
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

MOST_BYTES: Final = 16 * 2**20
"""Engines' pages are tens of kilobytes; more than this is not read to its end."""
MOST_HOPS: Final = 3
"""Redirects followed, on the same host only: some engines send `/metrics` to `/metrics/`."""
CHUNK_BYTES: Final = 65_536
MOVED: Final = frozenset({301, 302, 303, 307, 308})

_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no page: a short fixed reason that quotes nothing of the other side but its status."""

    reason: str


def fetch(url: str, timeout: float) -> str | Failure:
    """The text of a page, bytes that are no UTF-8 replaced.

    Args:
        url: an http or https address, with `user:password@` where the page wants basic auth. Proxies are not used.
        timeout: seconds for all of it, redirects too (only the look-up of the name may take longer).
    """
    call = _Call(timeout)
    try:
        return call.follow(url)
    except TimeoutError:
        return Failure("timeout")
    except ConnectionRefusedError:
        return Failure("timeout" if call.over else "connection refused")
    except SSLError:
        return Failure("timeout" if call.over else "TLS failed")
    except (OSError, HTTPException):
        return Failure("timeout" if call.over else "connection failed")
    except ValueError:
        return Failure("no usable address")
    finally:
        call.end()


class _Call:
    """One call and its end: a timer cuts the connection, so that no dripping answer holds the caller."""

    def __init__(self, timeout: float) -> None:
        self.over = False
        self._timeout = timeout
        self._connection: HTTPConnection | None = None
        self._timer = Timer(timeout, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def _cut(self) -> None:
        self.over = True
        line = self._connection.sock if self._connection else None
        if line is not None:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Give timer and connection back."""
        self._timer.cancel()
        if self._connection:
            self._connection.close()

    def follow(self, url: str) -> str | Failure:
        """The page at ``url``, or where the same host sends the caller."""
        for _ in range(1 + MOST_HOPS):
            place = urlsplit(url)
            if place.scheme not in ("http", "https") or not place.hostname:
                return Failure("no http address")
            answer = self._ask(place)
            if answer.status not in MOVED:
                return self._page(answer)
            url = urljoin(url, answer.headers.get("Location", ""))
            if _host(urlsplit(url)) != _host(place):
                return Failure("redirected to another host")
        return Failure("too many redirects")

    def _ask(self, place: SplitResult) -> HTTPResponse:
        if self._connection:
            self._connection.close()
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        self._connection = kind(place.hostname or "", place.port, timeout=self._timeout)
        self._connection.connect()
        self._in_time()
        path = (place.path or "/") + (f"?{place.query}" if place.query else "")
        if not _VISIBLE.fullmatch(path):
            raise ValueError("a path with blanks or control characters")
        headers = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity", "Connection": "close"}
        if place.username is not None:
            pair = f"{unquote(place.username)}:{unquote(place.password or '')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        self._connection.request("GET", path, headers=headers)
        return self._connection.getresponse()

    def _page(self, answer: HTTPResponse) -> str | Failure:
        if answer.status != 200:
            return Failure(f"status {answer.status}")
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            return Failure("encoded page")
        measured = answer.length is not None or answer.chunked
        page = bytearray()
        while chunk := answer.read1(CHUNK_BYTES):
            self._in_time()
            page += chunk
            if len(page) > MOST_BYTES:
                return Failure("page too large")
        self._in_time()
        # Half a page is none: half a sum of counters would look like a restart.
        if answer.length or (not measured and not page.endswith(b"\n")):
            return Failure("page cut short")
        return page.decode(errors="replace")

    def _in_time(self) -> None:
        if self.over:
            raise TimeoutError


def _host(place: SplitResult) -> tuple[str, str | None, int | None]:
    return place.scheme, place.hostname, place.port
