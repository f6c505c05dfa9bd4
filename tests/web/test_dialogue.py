"""Streams of bytes: the same requests however they are cut, refusals of what is not plain, bounds on everything."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.web.answer import Answer, said
from capwatch.web.dialogue import RECEIVED, Dialogue
from capwatch.web.request import MOST_HEAD, MOST_HEADERS, MOST_LINE, Asked, Refused

from .talk import request

HOST = b"\r\nHost: here"
GET = b"GET / HTTP/1.1" + HOST

REFUSED = [
    pytest.param(b"\r\n", 400, id="nothing"),
    pytest.param(b"GET /", 400, id="HTTP/0.9"),
    pytest.param(b"GET  / HTTP/1.1" + HOST, 400, id="two blanks"),
    pytest.param(b"GET / HTTP/1.1 " + HOST, 400, id="a blank at the end"),
    pytest.param(b"GET /\0 HTTP/1.1" + HOST, 400, id="NUL in the path"),
    pytest.param(b"GET /\xc3\xa9 HTTP/1.1" + HOST, 400, id="a path that is not ASCII"),
    pytest.param(b"G\xc3\xa9T / HTTP/1.1" + HOST, 400, id="a method that is no word"),
    pytest.param(b"GET / http/1.1" + HOST, 400, id="the protocol in small letters"),
    pytest.param(b"PRI * HTTP/2.0", 505, id="HTTP/2 at first sight"),
    pytest.param(b"GET / HTTP/1.7" + HOST, 505, id="a version nobody speaks"),
    pytest.param(b"\x16\x03\x01\x02\x00", 400, id="TLS where there is none"),
    pytest.param(b"GET / HTTP/1.1", 400, id="no Host"),
    pytest.param(GET + HOST, 400, id="two Hosts"),
    pytest.param(b"GET / HTTP/1.1\r\n folded" + HOST, 400, id="a fold before the first header"),
    pytest.param(GET + b"\r\nAccept : a", 400, id="a blank before the colon"),
    pytest.param(GET + b"\r\nAccept: a\0b", 400, id="NUL in a header"),
    pytest.param(GET + b"\r\nAccept: a\x07b", 400, id="a control character in a header"),
    pytest.param(GET + b"\r\nAccept: a\rb", 400, id="a lone carriage return"),
    pytest.param(GET + b"\r\nno colon", 400, id="no colon"),
    pytest.param(GET + b"\r\nContent-Length: 1\r\nContent-Length: 2", 400, id="two lengths"),
    pytest.param(GET + b"\r\nContent-Length: 1, 2", 400, id="two lengths in one"),
    pytest.param(GET + b"\r\nContent-Length: +1", 400, id="a length with a sign"),
    pytest.param(GET + b"\r\nContent-Length: x", 400, id="a length that is no number"),
    pytest.param(GET + b"\r\nContent-Length: " + b"9" * 5000, 400, id="a length of 5000 digits"),
    pytest.param(GET + b"\r\nTransfer-Encoding: xchunked", 400, id="a coding nobody knows"),
    pytest.param(GET + b"\r\nTransfer-Encoding: chunked, identity", 400, id="two codings"),
    pytest.param(GET + b"\r\nTransfer-Encoding: chunked" * 2, 400, id="a coding twice"),
    pytest.param(GET + b"\r\nA: b" * MOST_HEADERS, 431, id="very many headers"),
    pytest.param(b"G" * (MOST_HEAD + RECEIVED), 414, id="a line that never ends"),
    pytest.param(b"GET /" + b"a" * MOST_LINE + b" HTTP/1.1" + HOST, 414, id="a long path"),
    pytest.param(GET + b"\r\nA: " + b"a" * (MOST_HEAD + RECEIVED), 431, id="a long header"),
    pytest.param(GET + b"\r\nA: b" * MOST_HEAD, 431, id="headers that never end"),
]


def begun(raw: bytes) -> tuple[Dialogue, Asked | Refused | None]:
    """A connection over which this has come, and what it begins with."""
    talk = Dialogue()
    for begin in range(0, len(raw), RECEIVED):
        talk.hear(raw[begin : begin + RECEIVED])
        if (asked := talk.asked()) is not None:
            return talk, asked
    return talk, None


def first(raw: bytes) -> Asked:
    """The request that a stream begins with."""
    _, asked = begun(raw)
    assert isinstance(asked, Asked), asked
    return asked


@pytest.mark.parametrize(("head", "status"), REFUSED)
def test_what_is_not_plain_is_refused(head: bytes, status: int) -> None:
    """Whatever could be read in two ways, or in none, is refused with a fixed line, and the connection is over."""
    talk, found = begun(head + b"\r\n\r\n")
    assert isinstance(found, Refused)
    sent = b"".join(talk.said(said(found.status, found.reason), keep=False)).lower()
    assert (found.status, talk.goes_on, b"\r\nconnection: close\r\n" in sent) == (status, False, True)


def test_the_longest_head_is_taken() -> None:
    """Up to the limits everything is taken."""
    head = b"GET /" + b"a" * (MOST_LINE - 20) + b" HTTP/1.1" + HOST + b"\r\nA: "
    head += b"a" * (MOST_HEAD - len(head) - 4)
    assert first(head + b"\r\n\r\n").headers["a"]


@pytest.mark.parametrize(
    ("raw", "goes_on"),
    [
        (GET, True),
        (GET + b"\r\nConnection: keep-alive, Close", False),
        (b"GET / HTTP/1.0", False),
        (b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 0", True),
        (b"POST / HTTP/1.1" + HOST + b"\r\nContent-Length: 5", False),
        (GET + b"\r\nTransfer-Encoding: chunked", False),
        (GET + b"\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", False),
        (GET + b"\r\nUpgrade: h2c\r\nConnection: Upgrade", False),
    ],
)
def test_when_a_connection_stays(raw: bytes, goes_on: bool) -> None:
    """HTTP/1.1 keeps a connection unless the client closes it or a body follows, which is never read."""
    talk = Dialogue()
    talk.hear(raw + b"\r\n\r\n")
    assert isinstance(talk.asked(), Asked)
    assert talk.goes_on is goes_on


def test_requests_in_a_row_are_cut_one_by_one() -> None:
    """Each answer makes room for the next request; the last one is not there yet."""
    talk = Dialogue()
    talk.hear(request("GET", "/a") + request("HEAD", "/b") + b"GET /c")
    paths = []
    while isinstance(asked := talk.asked(), Asked):
        paths.append(asked.path)
        assert b"".join(talk.said(said(200, "yes"), keep=True)).endswith(b"yes\n" if asked.path == "/a" else b"\r\n")
    assert (paths, talk.begun) == (["/a", "/b"], True)


def test_nonsense_after_head_is_refused_in_words() -> None:
    """What was asked before is over: the refusal has its body."""
    talk = Dialogue()
    talk.hear(request("HEAD", "/") + b"\0")
    assert isinstance(talk.asked(), Asked)
    assert b"yes" not in b"".join(talk.said(said(200, "yes"), keep=True))
    assert isinstance(talk.asked(), Refused)
    assert b"".join(talk.said(said(400, "no"), keep=False)).endswith(b"\r\n\r\nno\n")


def test_an_answer_is_its_body_piece_by_piece() -> None:
    """However long a body is, it goes out whole, announced by its length."""
    talk, body = Dialogue(), bytes(range(256)) * 1000
    talk.hear(GET + b"\r\n\r\n")
    talk.asked()
    head, _, rest = b"".join(talk.said(Answer(200, body), keep=True)).partition(b"\r\n\r\n")
    assert (rest == body, b"Content-Length: 256000" in head) == (True, True)


def test_bare_line_feeds_will_do() -> None:
    """Lines may end without a carriage return."""
    assert first(b"GET / HTTP/1.0\nAccept: a\n\n").headers == {"accept": "a"}


WORDS = (
    *(b"GET ", b"HEAD ", b"POST ", b"PUT ", b"/metrics", b"/", b"//", b"/%2e%2e", b"/../etc/passwd", b"http://h/"),
    *(b" HTTP/1.1", b" HTTP/1.0", b" HTTP/0.9", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b"\r\n ", b"\r\n\t"),
    *(
        b"Host: here\r\n",
        b"Content-Length: ",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"0\r\n\r\n",
    ),
    *(b"Connection: close\r\n", b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Expect: 100-continue\r\n", b"5\r\nhello"),
    *(b"Authorization: Basic ", b":", b" ", b"\xff", b"A: " + b"a" * 9000, b"a" * MOST_LINE),
)
STREAMS = st.binary(max_size=300) | st.lists(st.sampled_from(WORDS) | st.binary(max_size=9), max_size=25).map(b"".join)
PLAIN = request("GET", "/metrics", accept="*/*", authorization="Basic YTpi") + request("HEAD", "/")


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Good requests with a few bytes put in, taken out or changed."""
    raw = bytearray(PLAIN)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(raw)))
        raw[place : place + draw(st.integers(0, 3))] = draw(st.sampled_from(WORDS) | st.binary(max_size=3))
    return bytes(raw)


def conversation(raw: bytes, *cuts: int) -> tuple[list[tuple[int, str]], bool]:
    """Status and path of every answer to a stream, cut at these places, and whether the connection goes on."""
    talk, heard = Dialogue(), []
    places = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts), *range(0, len(raw), RECEIVED)})
    for begin, end in pairwise(places):
        talk.hear(raw[begin:end])
        while (asked := talk.asked()) is not None:
            status = asked.status if isinstance(asked, Refused) else 200
            keep = isinstance(asked, Asked) and talk.goes_on
            sent = b"".join(talk.said(said(status, "fixed"), keep=keep))
            assert sent.startswith(b"HTTP/1.1 %d " % status)
            heard.append((status, "" if isinstance(asked, Refused) else asked.path))
            if not keep:
                return heard, False
    return heard, True


@given(STREAMS | mutated(), st.lists(st.integers(0, 900), max_size=6))
def test_no_stream_fails_and_no_cut_matters(raw: bytes, cuts: list[int]) -> None:
    """Any bytes are requests, refusals of fixed statuses, or a wait for more; the same however they come in pieces.

    Only what is refused early, since it can never become a request, may be refused later when it comes as a whole.
    """
    whole, pieces = conversation(raw), conversation(raw, *cuts)
    assert {status for status, _ in whole[0]} <= {200, 400, 414, 431, 505}
    asked = [one for one in whole[0] if one[0] == 200]
    assert asked == [one for one in pieces[0] if one[0] == 200]
    assert whole[1] == pieces[1]
