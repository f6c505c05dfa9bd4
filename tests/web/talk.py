"""A server with a made-up daemon behind it, and a client that says whatever bytes it likes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from capwatch.web import Bytes, Commit, Door, Limits, Lines, PoolStatus, Server, SourceStatus, Status
from capwatch.web.negotiate import Form
from capwatch.web.now import Finding, History, Now, Recent
from capwatch.web.status import Drifts

PATIENCE_S = 30.0
"""No test waits longer for a byte; only a broken server comes near it."""

SOURCE = SourceStatus(
    name="gateway",
    format="litellm",
    role="count",
    up=True,
    files=2,
    lag_bytes=1536,
    lines=Lines(read=12_345, counted=12_000, skipped=300, dropped={"malformed": 45, "too_long": 0}),
    bytes=Bytes(read=9_000_000, skipped=10, lost={"truncated": 7}),
    last_event=1_764_500_000.0,
    rotations=3,
)
STATUS = Status(
    version="1.2.3",
    at=1_764_500_010.0,
    started_at=1_764_490_000.0,
    ready=True,
    clock=1_764_500_000.0,
    commit=Commit(timestamp=1_764_500_009.5, duration_s=0.012),
    sources=[SOURCE],
    pools=[PoolStatus(name="chat", assumed=True, prefill_tokens_per_second=4000.0, decode_tokens_per_second=160.0)],
)

NOW = Now(clock=1_764_500_000.0, findings=[Finding(kind="quiet", severity="good", text="Nothing has changed.")])


@dataclass
class Daemon:
    """What a server shows: pages that name what was asked for."""

    told: Status = STATUS
    page: bytes = b""
    before: Callable[[], object] = field(default=lambda: None)
    """Called first by every scrape."""

    def metrics(self, form: Form, *, compressed: bool) -> bytes:
        """The page."""
        self.before()
        return self.page or f"{form} {'gzip' if compressed else 'plain'}\n".encode()

    def status(self) -> Status:
        """The status."""
        return self.told

    def drifts(self) -> Drifts:
        """None."""
        return Drifts()

    def now(self) -> Now:
        """That nothing has changed."""
        return NOW

    def recent(self) -> Recent:
        """Nobody."""
        return Recent()

    def history(self) -> History:
        """None."""
        return History()

    def ready(self) -> bool:
        """Whether it is ready."""
        return self.told.ready


@dataclass(frozen=True)
class Reply:
    """An answer as it came over the wire."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    """One connection."""

    def __init__(self, line: socket.socket) -> None:
        line.settimeout(PATIENCE_S)
        self.line = line
        self._file = line.makefile("rb")

    def say(self, data: bytes) -> Client:
        """Send bytes, as far as the other side takes them."""
        with suppress(BrokenPipeError, ConnectionResetError):  # it may refuse what it had already
            self.line.sendall(data)
        return self

    def hear(self, *, body: bool = True) -> Reply | None:
        """The next answer; None where the connection has ended instead."""
        try:
            first = self._file.readline()
        except ConnectionResetError:
            return None
        if not first:
            return None
        protocol, status, _ = first.split(b" ", 2)
        assert protocol == b"HTTP/1.1"
        headers = {}
        while (text := self._file.readline()) != b"\r\n":
            name, _, value = text.decode().partition(": ")
            headers[name.lower()] = value.rstrip("\r\n")
        length = int(headers["content-length"]) if body else 0
        return Reply(int(status), headers, self._file.read(length))

    def answer(self, *, body: bool = True) -> Reply:
        """The next answer, which there is."""
        found = self.hear(body=body)
        assert found is not None
        return found

    def ended(self) -> bool:
        """Whether the other side has hung up, saying nothing more."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self.line.close()


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    port: int
    tls: ssl.SSLContext | None = None
    """How clients speak TLS; None: they do not."""

    def connect(self) -> Client:
        """A new connection."""
        line = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        return Client(line if self.tls is None else self.tls.wrap_socket(line, server_hostname="localhost"))

    def ask(self, raw: bytes, *, body: bool = True) -> Reply:
        """What is answered to these bytes on a connection of their own."""
        with closing(self.connect()) as client:
            return client.say(raw).answer(body=body)

    def get(self, path: str, **headers: str) -> Reply:
        """What is answered to GET; ``accept_encoding="gzip"`` is a header."""
        return self.ask(request("GET", path, **headers))


def request(method: str, path: str, **headers: str) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: here"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@contextmanager
def serving(
    daemon: Daemon | None = None,
    *,
    limits: Limits | None = None,
    reload: Callable[[], bool] | None = None,
    door: Door | None = None,
) -> Iterator[Address]:
    """A server for as long as the block lasts."""
    server = Server(["127.0.0.1:0"], daemon or Daemon(), reload=reload, limits=limits, door=door)
    server.start()
    try:
        yield Address(int(server.addresses[0].rpartition(":")[2]))
    finally:
        server.stop()
