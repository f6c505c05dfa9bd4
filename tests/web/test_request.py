"""Heads of requests: cut from any stream, understood in one way only, refused with the right status."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.web.request import MOST_HEAD, MOST_HEADERS, MOST_LINE, Asked, Refused, cut, understand

from .talk import request

HOST = b"\r\nHost: here"

REFUSED = [
    pytest.param(b"", 400, id="nothing"),
    pytest.param(b"GET /", 400, id="HTTP/0.9"),
    pytest.param(b"GET  / HTTP/1.1" + HOST, 400, id="two blanks"),
    pytest.param(b"GET / HTTP/1.1 " + HOST, 400, id="a blank at the end"),
    pytest.param(b"GET /\0 HTTP/1.1" + HOST, 400, id="NUL in the path"),
    pytest.param(b"GET /\xc3\xa9 HTTP/1.1" + HOST, 400, id="a path that is not ASCII"),
    pytest.param(b"G\xc3\xa9T / HTTP/1.1" + HOST, 400, id="a method that is no word"),
    pytest.param(b"GET / http/1.1" + HOST, 400, id="the protocol in small letters"),
    pytest.param(b"PRI * HTTP/2.0", 505, id="HTTP/2 at first sight"),
    pytest.param(b"GET / HTTP/1.1", 400, id="no Host"),
    pytest.param(b"GET / HTTP/1.1" + HOST + HOST, 400, id="two Hosts"),
    pytest.param(b"GET / HTTP/1.1" + HOST + b"\r\n folded", 400, id="a folded header"),
    pytest.param(b"GET / HTTP/1.1" + HOST + b"\r\nAccept : a", 400, id="a blank before the colon"),
    pytest.param(b"GET / HTTP/1.1" + HOST + b"\r\nAccept: a\0b", 400, id="NUL in a header"),
    pytest.param(b"GET / HTTP/1.1" + HOST + b"\r\nAccept: a\rb", 400, id="a lone carriage return"),
    pytest.param(b"GET / HTTP/1.1" + HOST + b"\r\nno colon", 400, id="no colon"),
    pytest.param(b"GET / HTTP/1.1" + HOST + b"\r\nA: b" * MOST_HEADERS, 431, id="very many headers"),
]


def asked(head: bytes) -> Asked:
    """A head that is understood."""
    found = understand(head)
    assert isinstance(found, Asked), found
    return found


@pytest.mark.parametrize(("head", "status"), REFUSED)
def test_what_is_not_plain_is_refused(head: bytes, status: int) -> None:
    """Whatever could be read in two ways, or in none, is refused."""
    found = understand(head)
    assert isinstance(found, Refused)
    assert found.status == status


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "/"),
        ("/metrics", "/metrics"),
        ("/metrics?collect[]=a&b=/c", "/metrics"),
        ("//metrics", "//metrics"),
        ("/%2e%2e/etc/passwd", "/%2e%2e/etc/passwd"),
        ("/../metrics", "/../metrics"),
        ("http://here:10077/metrics", "/metrics"),
        ("HTTP://here", "/"),
        ("*", "*"),
    ],
)
def test_a_path_is_taken_as_it_is(target: str, path: str) -> None:
    """Only query and address are taken off; nothing is decoded and no dots are resolved."""
    assert asked(f"GET {target} HTTP/1.1".encode() + HOST).path == path


@pytest.mark.parametrize(
    ("line", "headers", "keep"),
    [
        (b"GET / HTTP/1.1", HOST, True),
        (b"GET / HTTP/1.1", HOST + b"\r\nConnection: keep-alive, Close", False),
        (b"GET / HTTP/1.0", b"", False),
        (b"POST / HTTP/1.1", HOST + b"\r\nContent-Length: 0", True),
        (b"POST / HTTP/1.1", HOST + b"\r\nContent-Length: 5", False),
        (b"POST / HTTP/1.1", HOST + b"\r\nContent-Length: 0\r\nContent-Length: 5", False),
        (b"GET / HTTP/1.1", HOST + b"\r\nTransfer-Encoding: chunked", False),
    ],
)
def test_when_a_connection_stays(line: bytes, headers: bytes, keep: bool) -> None:
    """HTTP/1.1 keeps a connection unless the client closes it or a body follows, which is never read."""
    assert asked(line + headers).keep is keep


def test_headers_of_one_name_are_joined() -> None:
    """Several headers of a name are one list."""
    assert asked(b"GET / HTTP/1.0\r\nAccept: a \r\nACCEPT:b").headers == {"accept": "a, b"}


def test_bare_line_feeds_will_do() -> None:
    """Lines may end without a carriage return."""
    found = cut(b"GET / HTTP/1.0\nAccept: a\n\nrest")
    assert found == (b"GET / HTTP/1.0\nAccept: a", b"rest")
    assert asked(b"GET / HTTP/1.0\nAccept: a").headers == {"accept": "a"}


@pytest.mark.parametrize(
    ("received", "status"),
    [
        (b"G" * MOST_LINE, 414),
        (b"GET /" + b"a" * MOST_LINE + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * MOST_HEAD, 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * MOST_HEAD, 431),
    ],
)
def test_size_is_bounded(received: bytes, status: int) -> None:
    """A request line has a limit, and all headers together have one."""
    found = cut(received)
    assert isinstance(found, Refused)
    assert found.status == status


def test_the_longest_head_is_taken() -> None:
    """Up to the limits everything is taken."""
    head = b"GET /" + b"a" * (MOST_LINE - 20) + b" HTTP/1.1" + HOST + b"\r\nA: "
    head += b"a" * (MOST_HEAD - len(head) - 4)
    assert cut(head + b"\r\n\r\n") == (head, b"")


@given(st.binary(max_size=300), st.integers(0, 300))
def test_cutting_does_not_depend_on_the_pieces(raw: bytes, first: int) -> None:
    """What a part of a stream decides stays decided when more comes; only "more is needed" may change."""
    early, late = cut(raw[:first]), cut(raw)
    if isinstance(early, tuple):
        assert isinstance(late, tuple)
        assert late[0] == early[0]
    elif isinstance(early, Refused):
        assert late == early


@given(st.binary(max_size=200) | st.from_regex(rb"(GET|PUT) [!-~]{1,20} HTTP/1\.[01](\r\n[a-zA-Z]+:[ -~]{0,9}){0,4}"))
def test_any_bytes_are_understood_or_refused(head: bytes) -> None:
    """No head makes the reader fail."""
    assert isinstance(understand(head), Asked | Refused)


def test_the_whole_stream_is_used() -> None:
    """Requests that follow each other without a pause are cut one by one."""
    found = cut(request("GET", "/a") + request("GET", "/b"))
    assert isinstance(found, tuple)
    assert asked(found[0]).path == "/a"
    assert cut(found[1]) == (b"GET /b HTTP/1.1\r\nHost: here", b"")
