"""Slow, rude and many clients: each is answered or cut off, and none delays another."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from queue import Empty, Queue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capwatch.errors import UsageError
from capwatch.web import Limits, Server

from .talk import PATIENCE_S, Address, Client, Daemon, request, serving

SCRAPE = request("GET", "/metrics")
BRIEF = Limits(head_s=0.25, idle_s=0.25, chunk_s=0.25, answer_s=1.0, parting_s=0.25)
FOREVER = Limits(head_s=600, idle_s=600, chunk_s=600, answer_s=600)
"""Nobody loses patience: what gets through then, gets through at once."""


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """A server with the usual limits."""
    with serving() as found:
        yield found


class Gate:
    """Scrapes stop at it until it opens."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self._waiting: Queue[None] = Queue()

    def __call__(self) -> None:
        self._waiting.put(None)
        assert self.open.wait(PATIENCE_S)

    def wait_for(self, count: int) -> None:
        """Wait until so many scrapes have come."""
        for _ in range(count):
            self._waiting.get(timeout=PATIENCE_S)

    def nobody_waits(self) -> bool:
        """Whether no other scrape has come."""
        try:
            self._waiting.get_nowait()
        except Empty:
            return True
        return False


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: here\r\n\r\n", 414),
        (b"G" * 100_000, 414),
        (b"GET / HTTP/1.1\r\nHost: here\r\nA: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: here\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"GET /\0 HTTP/1.1\r\nHost: here\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ],
)
def test_what_cannot_be_understood_is_refused_and_ended(address: Address, raw: bytes, status: int) -> None:
    """The client reads why, although it may have sent more, and the connection ends."""
    client = address.connect().say(raw)
    reply = client.answer()
    assert (reply.status, reply.headers["connection"], client.ended()) == (status, "close", True)
    client.close()


def test_requests_in_a_row_are_answered_in_order(address: Address) -> None:
    """Requests sent without waiting are answered one by one, until one of them closes."""
    paths = ["/-/healthy", "/nowhere", "/metrics", "/-/ready"]
    client = address.connect()
    client.say(b"".join(request("GET", path) for path in paths) + request("GET", "/", connection="close") + SCRAPE)
    assert [client.answer().status for _ in paths] == [200, 404, 200, 200]
    assert (client.answer().headers["connection"], client.ended()) == ("close", True)
    client.close()


def test_a_request_may_come_byte_by_byte(address: Address) -> None:
    """However a request is cut into pieces, it is one request."""
    client = address.connect()
    for byte in request("GET", "/-/healthy"):
        client.say(bytes([byte]))
    assert client.answer().status == 200
    client.close()


def test_one_scrape_too_many_is_refused_at_once() -> None:
    """While 40 scrapes are under way the next is told 503, everything else goes on, and a free place is taken again."""
    gate = Gate()
    with serving(Daemon(before=gate), limits=FOREVER) as address, ExitStack() as stack:
        clients = [stack.enter_context(closing(address.connect())) for _ in range(40)]
        for client in clients:
            client.say(SCRAPE)
        gate.wait_for(40)
        busy = stack.enter_context(closing(address.connect()))
        reply = busy.say(SCRAPE).answer()
        assert (reply.status, reply.headers["connection"], gate.nobody_waits()) == (503, "keep-alive", True)
        assert address.get("/-/healthy").status == 200
        gate.open.set()
        assert [client.answer().status for client in clients] == [200] * 40
        assert busy.say(SCRAPE).answer().status == 200


def test_half_requests_do_not_delay_a_scrape() -> None:
    """With 200 clients that never finish their headers, and endless patience with them, a scrape is answered."""
    with serving(limits=FOREVER) as address, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(closing(address.connect())).say(b"GET /metrics HTTP/1.1\r\nHost: he")
        assert address.get("/metrics").status == 200


def test_clients_beyond_the_limit_push_out_idle_ones() -> None:
    """One connection more than there may be costs the oldest that asks nothing, and is served; so is a busy one."""
    gate = Gate()
    limits = Limits(head_s=600, idle_s=600, answer_s=600, connections=8)
    with serving(Daemon(before=gate), limits=limits) as address, ExitStack() as stack:
        busy = stack.enter_context(closing(address.connect())).say(SCRAPE)
        gate.wait_for(1)
        idle = [stack.enter_context(closing(address.connect())).say(b"GET") for _ in range(8)]
        assert address.get("/-/healthy").status == 200
        assert idle[0].ended()
        gate.open.set()
        assert busy.answer().status == 200


def test_busy_clients_are_not_pushed_out() -> None:
    """Where every connection has an answer under way, one more is turned away."""
    gate = Gate()
    with serving(Daemon(before=gate), limits=Limits(connections=2, answer_s=600)) as address, ExitStack() as stack:
        busy = [stack.enter_context(closing(address.connect())).say(SCRAPE) for _ in range(2)]
        gate.wait_for(2)
        more = stack.enter_context(closing(address.connect()))
        assert more.ended()
        gate.open.set()
        assert [client.answer().status for client in busy] == [200, 200]


def test_headers_that_never_end_are_cut_off() -> None:
    """A client that keeps sending a header, bit by bit, is cut off when its time is over."""
    with serving(limits=BRIEF) as address, closing(address.connect()) as client:
        over = threading.Event()

        def drip() -> None:
            client.say(b"GET / HTTP/1.1\r\nA: ")
            while not over.wait(0.05):
                client.say(b"a")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            assert client.hear() is None
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("first", [b"", b"GET /-/healthy HTTP/1.1\r\nHost: here\r\n\r\n"])
def test_silence_is_cut_off(first: bytes) -> None:
    """A client that says nothing, at first or after a request, does not stay."""
    with serving(limits=BRIEF) as address, closing(address.connect()) as client:
        client.say(first)
        if first:
            assert client.answer().status == 200
        assert client.ended()


def slow_reader(address: Address) -> Client:
    """A client that asks for the metrics and takes a byte of the answer now and then."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", address.port))
    client = Client(line).say(SCRAPE)
    assert line.recv(1) == b"H"
    return client


def test_a_slow_reader_does_not_delay_a_scrape() -> None:
    """While a client takes its answer byte by byte, and may, another has its whole page."""
    page = bytes(8 << 20)
    with serving(Daemon(page=page), limits=FOREVER) as address, closing(slow_reader(address)) as slow:
        assert len(address.get("/metrics").body) == len(page)
        assert slow.line.recv(1) == b"T"


def test_a_slow_reader_is_cut_off_and_its_place_is_free() -> None:
    """A client that does not take its answer in time loses it, and the scrape that it was counts no longer."""
    page = bytes(8 << 20)
    limits = Limits(chunk_s=0.25, scrapes=1)
    with serving(Daemon(page=page), limits=limits) as address, closing(slow_reader(address)) as slow:
        later = threading.Event()
        statuses: list[int] = []
        while statuses[-1:] != [200] and len(statuses) < PATIENCE_S / 0.05:
            statuses.append(address.get("/metrics").status)
            later.wait(0.05)
        assert (statuses[0], statuses[-1]) == (503, 200)
        assert len(everything(slow.line)) < len(page)


def test_readers_that_have_stopped_do_not_keep_others_out() -> None:
    """Where all places are taken by clients who take nothing, one of them loses its own; patience has no part in it."""
    page, limits = bytes(8 << 20), Limits(head_s=600, idle_s=600, chunk_s=600, answer_s=600, scrapes=2)
    with serving(Daemon(page=page), limits=limits) as address, ExitStack() as stack:
        slow = [stack.enter_context(closing(slow_reader(address))) for _ in range(2)]
        later = threading.Event()
        statuses: list[int] = []
        while statuses[-1:] != [200] and len(statuses) < PATIENCE_S / 0.05:
            statuses.append(address.get("/metrics").status)
            later.wait(0.05)
        assert statuses[-1] == 200
        assert len(everything(slow[0].line)) < len(page)  # the one that has been still for longest


def everything(line: socket.socket) -> bytes:
    """What comes until the other side hangs up."""
    heard = bytearray()
    with suppress(ConnectionResetError):
        while more := line.recv(1 << 16):
            heard += more
    return bytes(heard)


def test_a_mistake_of_ours_stays_with_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """When making an answer fails, the client gets 500 and not a word of why; the thread's error goes to the log."""
    told: Queue[BaseException | None] = Queue()
    monkeypatch.setattr(threading, "excepthook", lambda args: told.put(args.exc_value))

    def fail() -> None:
        raise ZeroDivisionError("secret")

    with serving(Daemon(before=fail)) as address:
        client = address.connect().say(SCRAPE)
        reply = client.answer()
        assert (reply.status, reply.body) == (500, b"capwatch made a mistake; its log says which\n")
        assert client.ended()
        client.close()
        assert repr(told.get(timeout=PATIENCE_S)) == "ZeroDivisionError('secret')"
        assert address.get("/-/healthy").status == 200


WORDS = (
    *(b"GET ", b"HEAD ", b"POST ", b"/metrics", b"/", b"//", b"%2e", b"\0", b" HTTP/1.1", b" HTTP/1.0", b"\r\n"),
    *(b"\n", b"\r", b"Host: here", b"Accept: ", b"*/*;q=", b"Content-Length: ", b"Transfer-Encoding: chunked"),
    *(b"Connection: close", b"Accept-Encoding: gzip;q=", b":", b" ", b"\xff", b"a" * 9000),
)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=20), max_size=30))
def test_any_bytes_are_survived(address: Address, pieces: list[bytes]) -> None:
    """Whatever is sent, what comes back begins with an answer and has no traceback, and the next client is served."""
    with closing(address.connect()) as client:
        client.say(b"".join(pieces))
        with suppress(OSError):  # it may have hung up already
            client.line.shutdown(socket.SHUT_WR)
        heard = everything(client.line)
    assert (heard == b"" or heard.startswith(b"HTTP/1.1 "), b"Traceback" in heard) == (True, False)
    assert address.get("/-/healthy").status == 200


def test_a_taken_port_is_one_clear_line() -> None:
    """Who else holds the address is not known, so the line names the address and what can be done."""
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError) as refused:
            Server([f"127.0.0.1:{port}"], Daemon())
    assert str(refused.value) == (
        f"cannot listen on 127.0.0.1:{port}: another program listens there; stop it, or choose another port"
        " (`listen`, --web.listen-address)"
    )


@pytest.mark.parametrize(("listen", "why"), [("203.0.113.7:0", "no such address"), ("no..host:0", "no such host")])
def test_an_address_that_cannot_be_had_is_refused(listen: str, why: str) -> None:
    """An address of another machine and an unknown name are mistakes of use."""
    with pytest.raises(UsageError, match=why):
        Server([listen], Daemon())


def test_a_stopped_server_is_gone() -> None:
    """After a stop nobody listens and idle clients are cut off; the address can be taken at once."""
    with serving(limits=FOREVER) as address:
        idle = address.connect()
        assert idle.say(request("GET", "/-/healthy")).answer().status == 200
    assert idle.ended()
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        address.connect()
    again = Server([f"127.0.0.1:{address.port}"], Daemon())
    assert again.addresses == [f"127.0.0.1:{address.port}"]
    again.stop()


def test_a_stop_lets_an_answer_end() -> None:
    """A scrape that is under way when the server stops is still answered."""
    gate = Gate()
    with ExitStack() as stack:
        with serving(Daemon(before=gate)) as address:
            client = stack.enter_context(closing(address.connect())).say(SCRAPE)
            gate.wait_for(1)
            threading.Timer(0.2, gate.open.set).start()
        assert client.answer().status == 200
