"""Fetching: what comes is a page or a reason, in time, whatever the other side does."""

from __future__ import annotations

import socket
from threading import Event

import pytest

from capwatch.scrape.fetch import MOST_BYTES, Failure, fetch

from .endpoint import answer, endpoint, page, saying

PATIENT = 30.0  # much longer than any answer that comes at all
SHORT = 0.3


def test_a_page_is_its_text() -> None:
    """A good answer is the page; bytes that are no UTF-8 are replaced."""
    with endpoint(saying(answer(b"a 1\nb\xff 2\n"))) as url:
        assert fetch(f"{url}/metrics", PATIENT) == "a 1\nb\ufffd 2\n"


def test_a_page_may_end_with_the_connection() -> None:
    """Without a length the page ends where the other side hangs up, at the end of a line."""
    with endpoint(saying(b"HTTP/1.0 200 OK\r\n\r\na 1\n")) as url:
        assert fetch(url, PATIENT) == "a 1\n"


def test_a_chunked_page_is_whole() -> None:
    """Servers that send in chunks are understood."""
    with endpoint(
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n2\r\nb \r\n2\r\n2\n\r\n0\r\n\r\n")
    ) as url:
        assert fetch(url, PATIENT) == "a 1\nb 2\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (answer("no", "500 Internal Server Error"), "status 500"),
        (answer("no", "401 Unauthorized"), "status 401"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "connection failed"),
        (b"", "connection failed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\n", "page cut short"),
        (b"HTTP/1.0 200 OK\r\n\r\na 1\nb 12", "page cut short"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n9\r\nb", "connection failed"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n", "connection failed"),
        (answer("a 1\n", "200 OK", "Content-Encoding: gzip"), "encoded page"),
        (answer("", "302 Found", "Location: http://127.0.0.2/metrics"), "redirected to another host"),
        (answer("", "302 Found", "Location: https://127.0.0.1/metrics"), "redirected to another host"),
        (answer("", "302 Found", "Location: file:///etc/passwd"), "redirected to another host"),
        (answer("", "302 Found", "Location: /metrics/"), "too many redirects"),
    ],
)
def test_what_is_no_page_has_a_reason(data: bytes, reason: str) -> None:
    """Errors, garbage, halves and redirects away are told in a few fixed words."""
    with endpoint(saying(data)) as url:
        assert fetch(url, PATIENT) == Failure(reason)


def test_the_same_host_may_send_elsewhere() -> None:
    """Engines that serve their page at `/metrics/` are followed there."""

    def reply(head: str, line: socket.socket, _over: Event) -> None:
        found = head.startswith("GET /metrics/ ")
        line.sendall(answer("a 1\n") if found else answer("", "307 Temporary Redirect", "Location: /metrics/"))

    with endpoint(reply) as url:
        assert fetch(f"{url}/metrics", PATIENT) == "a 1\n"


def test_a_page_too_large_is_not_read_to_its_end() -> None:
    """More than the limit is refused without holding more than the limit."""

    def reply(_head: str, line: socket.socket, over: Event) -> None:
        line.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        while not over.is_set():  # without end: only a reader that gives up comes back
            line.sendall(b"a 1\n" * 16_384)

    with endpoint(reply) as url:
        assert fetch(url, PATIENT) == Failure("page too large")
    assert MOST_BYTES == 16 * 1024 * 1024


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"])
@pytest.mark.parametrize("drip", [b"", b"x"])
def test_nobody_holds_the_caller(begin: bytes, drip: bytes) -> None:
    """An engine that hangs, or drips byte by byte, before, in and after its head, costs the time-out and no more."""

    def reply(_head: str, line: socket.socket, over: Event) -> None:
        line.sendall(begin)
        while not over.wait(0.01):
            line.sendall(drip)

    with endpoint(reply) as url:
        assert fetch(url, SHORT) == Failure("timeout")


def test_nobody_there() -> None:
    """A port without a server is told at once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert fetch(f"http://127.0.0.1:{port}/metrics", PATIENT) == Failure("connection refused")


def test_a_failed_handshake_is_told_apart() -> None:
    """An https address of a server that speaks plain HTTP is a fault of TLS, not of the network."""
    with endpoint(saying(answer(page()))) as url:
        assert fetch(url.replace("http:", "https:"), PATIENT) == Failure("TLS failed")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "no http address"),
        ("ftp://127.0.0.1/metrics", "no http address"),
        ("http:///metrics", "no http address"),
        ("http://127.0.0.1:99999/metrics", "no usable address"),
        ("http://[::1/metrics", "no usable address"),
    ],
)
def test_other_addresses_are_not_fetched(url: str, reason: str) -> None:
    """Only http and https, and nothing that is no address."""
    assert fetch(url, PATIENT) == Failure(reason)


def test_user_and_password_go_into_the_header() -> None:
    """Basic auth comes from the address, and stays out of the request line."""
    heads: list[str] = []

    def reply(head: str, line: socket.socket, _over: Event) -> None:
        heads.append(head)
        line.sendall(answer(page()))

    with endpoint(reply) as url:
        fetch(url.replace("//", "//u%40x:p%3A1@") + "/metrics?model=m", PATIENT)
    assert heads[0].splitlines()[0] == "GET /metrics?model=m HTTP/1.1"
    assert "Authorization: Basic dUB4OnA6MQ==" in heads[0].splitlines()
